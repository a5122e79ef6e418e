"""One L2-regularised logistic regression: seconds until the objective is near its minimum.

Every solver is run with tighter and tighter tolerances until its objective is within the
gap (relative) of the least that any of them found; the time of that single run counts.
`mlopt.gd.plan` gets the gap as its tolerance, and its time includes planning. Same data,
same objective, same two threads, one after the other; medians of three runs for fast ones.

usage: solvers.py [--data tall,text,a9a] [--gaps 1e-3,1e-6] [--limit 60] [--rows N]

Peers: scikit-learn's solvers; glum, skglm and scikit-learn-intelex where installed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "2")
warnings.filterwarnings("ignore")

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression, SGDClassifier

import mlopt

FOLDER = Path(os.environ.get("MLOPT_DATA", Path(__file__).parents[2] / "shared/data"))
L2 = {"tall": 1e-6, "text": 1e-5, "a9a": 1e-5}
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
FAST = 2.0
"""Seconds: what takes less is run three times."""


def tall(rows=1_000_000):
    """Dense, many more rows than columns, features of different scale, correlated."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 50)) @ rng.normal(size=(50, 50)) / 7
    X *= np.logspace(-1, 1, 50)
    p = 1 / (1 + np.exp(-(X @ rng.normal(size=50) / 5)))
    return X, (rng.random(rows) < p).astype(int)


def text(rows=100_000):
    """Sparse, as many columns as words: 0.1% of the values, frequent and rare columns."""
    rng = np.random.default_rng(0)
    d, each = 50_000, 50
    popular = 1 / np.arange(1, d + 1) ** 0.9
    columns = rng.choice(d, size=rows * each, p=popular / popular.sum())
    values = np.abs(rng.normal(size=rows * each)) + 0.1
    starts = np.arange(0, rows * each + 1, each)
    X = sparse.csr_matrix((values, columns, starts), shape=(rows, d))
    X.sum_duplicates()
    X = sparse.diags(1 / np.sqrt(X.multiply(X).sum(axis=1).A1)) @ X
    z = X @ (rng.normal(size=d) * 3)
    return X.tocsr(), (rng.random(rows) < 1 / (1 + np.exp(-z))).astype(int)


def a9a(rows=None):
    """Adult, one-hot: 32,561 x 123, sparse."""
    X, y = load_svmlight_file(str(FOLDER / "a9a/a9a.gz"))
    return X[:rows], (y[:rows] > 0).astype(int)


DATA = {"tall": tall, "text": text, "a9a": a9a}


def objective(X, y, l2, coef, intercept):
    """Mean logistic loss and penalty."""
    z = np.asarray(X @ np.ravel(coef)).ravel() + float(np.ravel(intercept)[0])
    return float(np.logaddexp(0, np.where(y == 1, -z, z)).mean()) + 0.5 * l2 * float(
        np.sum(np.square(coef))
    )


def ours(X, y, l2, tol):
    """Planning included."""
    found = mlopt.gd.plan(mlopt.gd.Task("logistic", l2=l2), X, y, tolerance=tol, n_jobs=2)
    result = found.run()
    return result.coef, result.intercept, found.chosen.name


def scikit(solver):
    """LogisticRegression with one of its solvers."""

    def fit(X, y, l2, tol):
        model = LogisticRegression(
            C=1 / (l2 * len(y)), solver=solver, tol=tol, max_iter=5000
        ).fit(X, y)
        return model.coef_, model.intercept_, ""

    return fit


def sgd(X, y, l2, tol):
    """SGDClassifier, which stops by its own rule."""
    model = SGDClassifier(
        loss="log_loss", alpha=l2, tol=tol, max_iter=200, random_state=0
    ).fit(X, y)
    return model.coef_, model.intercept_, ""


def glum(X, y, l2, tol):
    """Iteratively reweighted least squares."""
    from glum import GeneralizedLinearRegressor

    model = GeneralizedLinearRegressor(
        family="binomial", alpha=l2, l1_ratio=0, gradient_tol=tol, max_iter=500
    ).fit(X, y)
    return model.coef_, model.intercept_, ""


def intelex(X, y, l2, tol):
    """scikit-learn-intelex, lbfgs."""
    from sklearnex.linear_model import LogisticRegression as Patched

    model = Patched(C=1 / (l2 * len(y)), tol=tol, max_iter=5000).fit(X, y)
    return model.coef_, model.intercept_, ""


PEERS = {
    **{f"scikit-learn {s}": scikit(s) for s in (
        "newton-cholesky", "lbfgs", "newton-cg", "liblinear", "saga", "sag")},
    "SGDClassifier": sgd,
    "glum": glum,
    "scikit-learn-intelex": intelex,
}  # fmt: skip


def ladder(fit, X, y, l2, limit):
    """(seconds, objective, tolerance, note) of runs with tighter and tighter tolerances."""
    runs, spent = [], 0.0
    for tol in TOLERANCES:
        start = time.perf_counter()
        coef, intercept, note = fit(X, y, l2, tol)
        took = time.perf_counter() - start
        runs.append((took, objective(X, y, l2, coef, intercept), tol, note))
        spent += took
        if spent > limit:
            break
    return runs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="tall,text,a9a")
    parser.add_argument("--gaps", default="1e-3,1e-6")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    gaps = [float(gap) for gap in options.gaps.split(",")]
    for name in options.data.split(","):
        X, y = DATA[name](options.rows) if options.rows else DATA[name]()
        report(name, X, y, gaps, options.limit)


def report(name, X, y, gaps, limit):
    """Run all, and print a line for each."""
    l2 = L2[name]
    print(f"{name}: {X.shape[0]} x {X.shape[1]}, l2 {l2:g}", flush=True)
    ours(X[:5000], y[:5000], l2, 1e-3)  # kernels compiled, as a second fit would find them
    runs = {}
    for peer, fit in PEERS.items():
        if sparse.issparse(X) and peer.endswith("newton-cholesky") and X.shape[1] > 5000:
            continue  # a matrix of d x d
        try:
            runs[peer] = ladder(fit, X, y, l2, limit)
        except ImportError:
            continue
        except Exception as error:
            print(f"    {peer}: {type(error).__name__}", flush=True)
    mine = {}
    for gap in gaps:
        took = []
        for _ in range(3):
            start = time.perf_counter()
            coef, intercept, chosen = ours(X, y, l2, gap)
            took.append(time.perf_counter() - start)
        reached = objective(X, y, l2, coef, intercept)
        mine[gap] = (statistics.median(took), reached, chosen)
    tight = ours(X, y, l2, 1e-10)
    least = min(
        [objective(X, y, l2, *tight[:2])]
        + [value for ladder_ in runs.values() for _, value, _, _ in ladder_]
    )
    for gap in gaps:
        seconds, reached, chosen = mine[gap]
        print(
            f"  gap {gap:g}: mlopt ({chosen}) {seconds:.3f} s, reached "
            f"{reached / least - 1:.1e}"
        )
        for peer, found in runs.items():
            times = [t for t, value, _, _ in found if value <= least * (1 + gap)]
            if times:
                print(f"    {peer:32s} {min(times):8.3f} s {min(times) / seconds:7.1f}x")
            else:
                print(f"    {peer:32s} not reached within {limit:g} s")


if __name__ == "__main__":
    main()
