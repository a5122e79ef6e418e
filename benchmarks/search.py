"""Searches side by side: same data, same folds, same two threads, in one run.

(a) 64 values of C x 5 folds of logistic regression: `mlopt.ModelSearchCV`, all columns of
    one matrix, without and with a bandit, against `GridSearchCV(LogisticRegression)` with
    its fastest solver (found first, by timing each solver on three fits).
(b) 64 random configurations of loss x alpha x schedule x step size of `SGDClassifier`, at
    most 27 epochs: against `HalvingRandomSearchCV`, whose first look comes after training
    on a 27th of the rows, and dask-ml's Hyperband and successive halving, whose first look
    comes after one pass ("halving") or, as ours, after a 27th of one ("halving-parts").
    dask-ml's searches need older versions of dask: name the Python of an environment with
    benchmarks/dask-ml.txt installed by --dask-ml (`make bench` makes one).

usage: search.py [--part a,b] [--data adult,synthetic,mnist] [--seeds 5] [--rows N]
                 [--dask-ml PYTHON]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "2")
warnings.filterwarnings("ignore")

import numpy as np
from datasets import load
from scipy.stats import loguniform
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import (
    GridSearchCV,
    HalvingRandomSearchCV,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

import mlopt
from mlopt.tuning.bandits import SuccessiveHalving

C_VALUES = np.logspace(-4, 4, 64).tolist()
SOLVERS = ("newton-cholesky", "lbfgs", "newton-cg", "liblinear", "sag")
N, EPOCHS, FACTOR = 64, 27, 3
FIRST = 1 / 27
"""Of the rows: all that look within the first pass do so first after this part."""
DASK_ML = "hyperband", "halving", "halving-parts"
SGD_SPACE = {
    "loss": ["log_loss", "hinge"],
    "alpha": loguniform(1e-7, 1e-1),
    "learning_rate": ["optimal", "invscaling", "constant"],
    "eta0": loguniform(1e-3, 1),
}


def timed(search, X, y):
    """(seconds of fit, the fitted search)."""
    start = time.perf_counter()
    search.fit(X, y)
    return time.perf_counter() - start, search


def fastest_solver(X, y):
    """The solver of LogisticRegression that takes least for three values of C, one fold."""
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    train, _ = next(cv.split(X, y))
    took = {}
    for solver in SOLVERS:
        start = time.perf_counter()
        for C in (C_VALUES[8], C_VALUES[32], C_VALUES[55]):
            LogisticRegression(C=C, solver=solver).fit(X[train], y[train])
            if took and time.perf_counter() - start > 3 * min(took.values()):
                break  # slower already
        took[solver] = time.perf_counter() - start
    print(
        "    three fits: " + ", ".join(f"{s} {t:.2f} s" for s, t in took.items()),
        flush=True,
    )
    return min(took, key=took.get)


def part_a(name, rows):
    """64 values of C x 5 folds."""
    X, y, X_test, y_test = load(name, rows)
    print(f"(a) {name}: {X.shape[0]} x {X.shape[1]} {X.dtype}, 64 values of C x 5 folds")
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    ours = {"no bandit": None, "bandit": "successive-halving"}
    solver = fastest_solver(X, y)
    mlopt.ModelSearchCV(  # compiled code is warm, as a second search would find it
        LogisticRegression(), {"C": C_VALUES[:2]}, sampler="grid", bandit=None, cv=2
    ).fit(X[:500], y[:500])
    results = {}
    for label, bandit in ours.items():
        runs = [
            timed(
                mlopt.ModelSearchCV(
                    LogisticRegression(),
                    {"C": C_VALUES},
                    sampler="grid",
                    n_trials=64,
                    cv=cv,
                    n_jobs=2,
                    bandit=bandit,
                ),
                X,
                y,
            )
            for _ in range(3)
        ]
        seconds = statistics.median(s for s, _ in runs)
        results[label] = (seconds, runs[-1][1])
    peer = GridSearchCV(LogisticRegression(solver=solver), {"C": C_VALUES}, cv=cv, n_jobs=2)
    peer_seconds, peer = timed(peer, X, y)
    test = peer.score(X_test, y_test)
    print(
        f"    GridSearchCV {solver:16s} {peer_seconds:8.2f} s  best {peer.best_score_:.4f}"
        f"  test {test:.4f}"
    )
    for label, (seconds, search) in results.items():
        print(
            f"    mlopt {label:23s} {seconds:8.2f} s  best {search.best_score_:.4f}"
            f"  test {search.score(X_test, y_test):.4f}  {peer_seconds / seconds:6.1f}x"
            f"  passes {search.passes_}",
            flush=True,
        )


def part_b(name, rows, seeds, dask_ml):
    """64 random configurations of stochastic gradient descent."""
    X, y, X_test, y_test = load(name, rows)
    print(
        f"(b) {name}: {X.shape[0]} x {X.shape[1]} {X.dtype}, 64 random SGD configurations"
    )
    table: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, X=X, y=y, X_test=X_test, y_test=y_test)
        mlopt_sgd(X[:500], y[:500], 0)  # warm the kernels
        for seed in range(seeds):
            seconds, search = mlopt_sgd(X, y, seed)
            table.setdefault("mlopt", []).append((seconds, search.score(X_test, y_test)))
            seconds, search = halving(X, y, seed)
            table.setdefault("HalvingRandomSearchCV", []).append(
                (seconds, search.score(X_test, y_test))
            )
            for method in DASK_ML if dask_ml else ():
                run = [
                    dask_ml,
                    str(Path(__file__).parent / "peer_dask_ml.py"),
                    str(path),
                    method,
                    str(N),
                    str(seed),
                ]
                lines = subprocess.run(
                    run, capture_output=True, text=True, check=True
                ).stdout
                found = json.loads(lines.strip().splitlines()[-1])
                row = (found["seconds"], found["test"])
                table.setdefault(f"dask-ml {method}", []).append(row)
    base = statistics.median(s for s, _ in table["mlopt"])
    for label, rows_ in table.items():
        seconds = statistics.median(s for s, _ in rows_)
        score = statistics.mean(t for _, t in rows_)
        print(
            f"    {label:24s} {seconds:8.2f} s  test {score:.4f}  {seconds / base:6.1f}x",
            flush=True,
        )


def mlopt_sgd(X, y, seed):
    """(seconds, search) of ours."""
    return timed(
        mlopt.ModelSearchCV(
            SGDClassifier(max_iter=EPOCHS, tol=1e-3),
            SGD_SPACE,
            n_trials=N,
            sampler="random",
            bandit=SuccessiveHalving(min_passes=FIRST),
            max_passes=EPOCHS,
            random_state=seed,
            n_jobs=2,
            cv=StratifiedShuffleSplit(1, test_size=0.25, random_state=seed),
        ),
        X,
        y,
    )


def halving(X, y, seed):
    """(seconds, search) of scikit-learn's successive halving over rows."""
    return timed(
        HalvingRandomSearchCV(
            SGDClassifier(max_iter=EPOCHS, tol=1e-3, random_state=seed),
            SGD_SPACE,
            n_candidates=N,
            factor=FACTOR,
            random_state=seed,
            n_jobs=2,
            min_resources=max(len(X) // FACTOR**3, 100),
            cv=StratifiedShuffleSplit(1, test_size=0.25, random_state=seed),
        ),
        X,
        y,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", default="a,b")
    parser.add_argument("--data", default="adult,synthetic,mnist")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--dask-ml", help="Python of an environment with dask-ml")
    options = parser.parse_args()
    for name in options.data.split(","):
        if "a" in options.part.split(","):
            part_a(name, options.rows)
        if "b" in options.part.split(","):
            part_b(name, options.rows, options.seeds, options.dask_ml)


if __name__ == "__main__":
    main()
