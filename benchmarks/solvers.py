"""One fit of a penalised linear model: seconds until the objective is near its minimum.

Every peer is run with tighter and tighter tolerances until its objective is within the gap
(relative) of the least that any of them found; the time of the fastest such run counts.
`mlopt.gd.plan` gets the gap as its tolerance, and its time includes planning. Same data,
same objective, same two threads, one after the other; medians of three runs of ours.

The sets "drawn" and "drawn-wide" are sparse ones whose size, density, scale, noise and
penalty come from --seed, so that nothing can have been tuned on them.

usage: solvers.py [--data tall,text,a9a,wide,ridge,ridge-wide,drawn,drawn-wide]
                  [--gaps 1e-3,1e-6] [--limit 60] [--rows N] [--seed 0] [--peers PYTHON]

Peers: scikit-learn's solvers, and of the environment that --peers names (`make bench`
makes one from benchmarks/peers.txt) glum, skglm, scikit-learn-intelex, snapml, Vowpal
Wabbit and, where there is Java, Spark MLlib; see peer_solvers.py. Each runs by itself, with
two threads, compiled and imported before its clock starts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "2")
os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day
warnings.filterwarnings("ignore")

import numpy as np
from peer_solvers import PEERS, objective
from scipy import sparse
from sklearn.datasets import load_svmlight_file

import mlopt

FOLDER = Path(os.environ.get("MLOPT_DATA", Path(__file__).parents[2] / "shared/data"))


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


def wide(rows=50_000):
    """Dense, 2000 correlated columns."""
    X, rng = _factors(rows, 2000), np.random.default_rng(1)
    z = X @ rng.normal(size=2000) / 20
    return X, (rng.random(rows) < 1 / (1 + np.exp(-z))).astype(int)


def ridge(rows=500_000):
    """A regression on 200 correlated columns."""
    return _regression(rows, 200)


def ridge_wide(rows=20_000):
    """A regression on 5000 correlated columns."""
    return _regression(rows, 5000)


def _factors(n, d):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X += rng.normal(size=(n, 20)) @ rng.normal(size=(20, d))
    return X / X.std(axis=0)


def _regression(n, d):
    X, rng = _factors(n, d), np.random.default_rng(1)
    return X, X @ rng.normal(size=d) / np.sqrt(d) + rng.normal(size=n) + 3


def drawn(seed, wide=False):
    """(X, y), l2: sparse, more rows than columns, or many more columns than rows."""
    rng = np.random.default_rng([seed, wide])
    n, d = (
        (int(rng.integers(1000, 4000)), int(rng.integers(20_000, 60_000)))
        if wide
        else (int(rng.integers(20_000, 100_000)), int(rng.integers(100, 2000)))
    )
    each = int(rng.integers(20, 200) if wide else rng.integers(5, min(40, d // 4)))
    popular = np.arange(1, d + 1) ** -rng.uniform(0.2, 1.1)
    columns = rng.choice(d, size=n * each, p=popular / popular.sum())
    values = np.exp(rng.uniform(0, 1) * rng.normal(size=n * each))
    starts = np.arange(0, n * each + 1, each)
    X = sparse.csr_matrix((values, columns, starts), shape=(n, d))
    X.sum_duplicates()
    z = X @ (rng.normal(size=d) * rng.uniform(0.2, 3) / np.sqrt(each))
    y = (rng.random(n) < 1 / (1 + np.exp(-(z - np.median(z))))).astype(int)
    return (X, y), float(10 ** rng.uniform(-6, -3))


DATA = {
    "tall": (tall, "logistic", 1e-6), "text": (text, "logistic", 1e-5),
    "a9a": (a9a, "logistic", 1e-5), "wide": (wide, "logistic", 1e-5),
    "ridge": (ridge, "ridge", 1e-5), "ridge-wide": (ridge_wide, "ridge", 5e-5),
}  # fmt: skip
LOSSES = {"logistic": "logistic", "ridge": "squared"}


def ours(task, X, y, l2, tol):
    """Planning included."""
    found = mlopt.gd.plan(mlopt.gd.Task(LOSSES[task], l2=l2), X, y, tolerance=tol, n_jobs=2)
    result = found.run()
    return result.coef, result.intercept, found.chosen.name


def measured(task, X, y, l2, gap):
    """(median seconds, objective, chosen plan) of three runs."""
    took = []
    for _ in range(3):
        start = time.perf_counter()
        coef, intercept, chosen = ours(task, X, y, l2, gap)
        took.append(time.perf_counter() - start)
    return statistics.median(took), objective(task, X, y, l2, coef, intercept), chosen


def peers(task, X, y, l2, limit, other):
    """{name: [(seconds, objective), ...]} of all peers that could be run."""
    names = [name for name, (kind, _) in PEERS.items() if kind == task]
    own = [n for n in names if n.startswith(("scikit-learn ", "SGD", "numpy"))]
    if sparse.issparse(X) and X.shape[1] > 5000:
        own = [n for n in own if not n.endswith("newton-cholesky")]  # a matrix of d x d
    calls = [(sys.executable, own)]
    if other:
        calls.append(
            (other, [n for n in names if n not in own and "scikit-learn " not in n])
        )
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        if sparse.issparse(X):
            np.savez(
                path, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y
            )
        else:
            np.savez(path, X=X, y=y)
        script = str(Path(__file__).with_name("peer_solvers.py"))
        for python, chosen in calls:
            for name in chosen:
                run = [python, script, str(path), task, str(l2), str(limit), name]
                done = subprocess.run(run, capture_output=True, text=True)
                line = done.stdout.strip().splitlines()[-1:] or ['{"error": "it crashed"}']
                told = json.loads(line[0])
                if "runs" in told:
                    found[name] = told["runs"]
                else:
                    print(f"    {name}: {told['error']}", flush=True)
    return found


def report(name, gaps, options):
    """Run all, and print a line for each."""
    if name in DATA:
        make, task, l2 = DATA[name]
        X, y = make(options.rows) if options.rows else make()
    else:
        (X, y), l2 = drawn(options.seed, name == "drawn-wide")
        task = "logistic"
    print(f"{name}: {X.shape[0]} x {X.shape[1]}, {task}, l2 {l2:g}", flush=True)
    few = slice(0, 5000)
    ours(task, X[few], y[few], l2, 1e-3)  # kernels compiled, as a second fit finds them
    mine = {gap: measured(task, X, y, l2, gap) for gap in gaps}
    runs = peers(task, X, y, l2, options.limit, options.peers)
    tight = objective(task, X, y, l2, *ours(task, X, y, l2, 1e-10)[:2])
    least = min([tight] + [value for found in runs.values() for _, value in found])
    for gap in gaps:
        seconds, reached, chosen = mine[gap]
        again = measured(task, X, y, l2, gap)[0]
        print(
            f"  gap {gap:g}: mlopt ({chosen}) {seconds:.3f} s before the peers, "
            f"{again:.3f} s after them, reached {reached / least - 1:.1e}"
        )
        for peer, found in runs.items():
            times = [t for t, value in found if value <= least * (1 + gap)]
            if times:
                print(f"    {peer:32s} {min(times):8.3f} s {min(times) / again:7.1f}x")
            else:
                print(f"    {peer:32s} not reached within {options.limit:g} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=",".join((*DATA, "drawn", "drawn-wide")))
    parser.add_argument("--gaps", default="1e-3,1e-6")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--seed", type=int, default=0, help="of the drawn sets")
    parser.add_argument("--peers", help="Python of an environment with more peers")
    options = parser.parse_args()
    gaps = [float(gap) for gap in options.gaps.split(",")]
    for name in options.data.split(","):
        report(name, gaps, options)


if __name__ == "__main__":
    main()
