"""Ridge regression: our choice beside each of our solvers and scikit-learn's.

Same data, same objective, alpha 1, two threads, side by side in turn; medians. Prints the
predicted seconds beside the measured ones, the error of the coefficients relative to the
normal equations, and how the choice compares with the best of ours and of scikit-learn's.

usage: ridge.py [--data 500000x200,20000x5000,200000x50] [--kind factors] [--repeat 3]
                [--limit 20]
       ridge.py --spectrum

With --spectrum: what eigenvectors of a Gram matrix take on one thread beside their price,
and beside a factor of one penalty: what the prices "spectrum.*" and "cholesky.reads" say.

A solver that took longer than the limit (seconds) is run once; "svd" is left out where its
predicted time is above it. Features have unit variance and are correlated: 20 common
factors and noise ("factors"), or a spectrum that falls as k^-1.4 ("power").
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "2")
os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day
warnings.filterwarnings("ignore")

import numpy as np
from sklearn.linear_model import Ridge as Peer

import mlopt
from mlopt.cluster import single_threaded
from mlopt.gd.least_squares_fit import SOLVERS
from mlopt.gd.normal_equations import Moments, factor_cost, solve
from mlopt.gd.ridge_path import spectrum_cost

PEERS = ("cholesky", "svd", "lsqr", "sparse_cg", "sag")
TIGHT = 1e-8
"""Tolerance of scikit-learn's iterative solvers, for coefficients good to about 1e-6."""


def data(n, d, kind):
    """Correlated features of unit variance and a noisy target."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    if kind == "factors":
        X += rng.standard_normal((n, 20)) @ rng.standard_normal((20, d))
    else:
        X *= np.arange(1, d + 1) ** -0.7
        X = X @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    X /= X.std(axis=0)
    return X, X @ rng.standard_normal(d) / np.sqrt(d) + rng.standard_normal(n) + 3


def models(X, y, limit):
    """Name to estimator, and to predicted seconds; solvers that would take too long not."""
    plan = mlopt.Ridge().explain(X, y).choices[0]
    seconds = {one.name: one.seconds for one in plan.rejected if one.seconds}
    seconds["auto"] = seconds[plan.chosen] = plan.predicted
    print(f"chosen: {plan.chosen}")
    ours = ["auto", *(name for name in SOLVERS if seconds.get(name, limit) < limit)]
    found = {f"mlopt {name}": mlopt.Ridge(solver=name) for name in ours}
    for name in PEERS:
        if name != "svd" or seconds["svd"] < limit:
            tol = 1e-4 if name in ("cholesky", "svd") else TIGHT
            found[f"sklearn {name}"] = Peer(solver=name, tol=tol, max_iter=200)
    return found, {f"mlopt {name}": value for name, value in seconds.items()}


def run(found, X, y, repeat, limit):
    """Seconds of every run and last coefficients, all estimators in turn."""
    times, coefs = {name: [] for name in found}, {}
    for _ in range(repeat):
        for name, model in found.items():
            if times[name] and max(times[name]) > limit / 4:
                continue
            start = time.perf_counter()
            coefs[name] = model.fit(X, y).coef_
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}, coefs


def compare(n, d, kind, repeat, limit):
    """One table."""
    X, y = data(n, d, kind)
    mlopt.Ridge(solver="sketched_cg").fit(X[: 40 * 8, :8], y[:320])  # compiles
    print(f"\n{n} x {d}, {kind}")
    found, predicted = models(X, y, limit)
    times, coefs = run(found, X, y, repeat, limit)
    truth = coefs["mlopt cholesky"]
    for name, seconds in sorted(times.items(), key=lambda pair: pair[1]):
        guess = f"{predicted[name]:8.3f}" if name in predicted else " " * 8
        error = np.linalg.norm(coefs[name] - truth) / np.linalg.norm(truth)
        print(f"{name:24s} {seconds:8.3f} s  predicted {guess}  error {error:.0e}")
    for who in ("mlopt", "sklearn"):
        best = min(s for name, s in times.items() if name.startswith(who))
        print(f"auto / best of {who}: {times['mlopt auto'] / best:.2f}")


def spectra(repeat=5):
    """Seconds of eigenvectors and of a factor, the least of some runs, by columns."""
    here = mlopt.Resources.probe()
    for d in (20, 50, 100, 200, 300, 600, 1000, 2000):
        X = np.random.default_rng(d).standard_normal((2 * d, d + 1))
        took = []
        for _ in range(repeat):
            found, begin = Moments(np.zeros(d), X.T @ X), time.perf_counter()
            _ = found.spectrum
            middle = time.perf_counter()
            solve(found, np.ones(1))
            took.append((middle - begin, time.perf_counter() - middle))
        all_vectors, factor = np.min(took, axis=0)
        priced = spectrum_cost(d).seconds(here)
        print(
            f"{d:5d} columns: eigenvectors {1e3 * all_vectors:8.2f} ms, priced "
            f"{1e3 * priced:8.2f}, {all_vectors / factor:5.1f} factors of "
            f"{1e3 * factor:.2f} ms, priced {1e3 * factor_cost(d).seconds(here):.2f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="500000x200,20000x5000,200000x50")
    parser.add_argument("--kind", default="factors", choices=("factors", "power"))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--spectrum", action="store_true")
    args = parser.parse_args()
    if args.spectrum:
        with single_threaded():
            spectra()
        return
    print(mlopt.Resources.probe())
    for shape in args.data.split(","):
        n, d = map(int, shape.split("x"))
        compare(n, d, args.kind, args.repeat, args.limit)


if __name__ == "__main__":
    main()
