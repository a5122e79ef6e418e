"""Searches side by side: same data, same folds, same two cores, in one run.

(a) 64 values of C x 5 folds of logistic regression, once for each metric:
    `mlopt.ModelSearchCV`, all columns of one matrix, without and with a bandit, against
    `GridSearchCV(LogisticRegression)` at its best: every solver is tried on a few values of
    C, in two processes of one thread and in one process of two, and the fastest set-up,
    which is printed, runs in full. Its processes are started, and have imported
    scikit-learn, before the clock does.
(b) 64 random configurations of loss x alpha x schedule x step size of `SGDClassifier`, at
    most 27 epochs: against `HalvingRandomSearchCV` (in one process or two, whichever is
    faster), whose first look comes after training on a 27th of the rows, and dask-ml's
    Hyperband and successive halving, whose first look comes after one pass ("halving") or,
    as ours, after a 27th of one ("halving-parts"). dask-ml's searches need older versions
    of dask: name the Python of an environment with benchmarks/dask-ml.txt installed by
    --dask-ml (`make bench` makes one).
(c) Scores: part (a) for every metric on drawn data, 6000 x 40, in seconds of CPU on one
    thread, against the fastest solver on one thread.

No variable limits the threads of libraries: joblib shares the cores among its processes,
which a variable would keep it from.

usage: search.py [--part a,b,c] [--data adult,synthetic,mnist] [--metrics accuracy,f1,...]
                 [--values 64] [--seeds 5] [--rows N] [--dask-ml PYTHON]
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

warnings.filterwarnings("ignore")

os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day

import numpy as np
from datasets import load
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  (enables it)
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import (
    GridSearchCV,
    HalvingRandomSearchCV,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from threadpoolctl import threadpool_limits

import mlopt
from mlopt.tuning.bandits import SuccessiveHalving

SOLVERS = ("newton-cholesky", "lbfgs", "newton-cg", "liblinear", "sag")
METRICS = "accuracy,f1,roc_auc,neg_log_loss"
SCORES = (
    "accuracy", "balanced_accuracy", "f1", "precision", "recall", "roc_auc",
    "average_precision", "neg_log_loss", "neg_brier_score", "matthews_corrcoef",
)  # fmt: skip
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


def grid(values, solver, jobs, metric="accuracy"):
    """The peer of part (a)."""
    return GridSearchCV(
        LogisticRegression(solver=solver),
        {"C": values},
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
        scoring=metric,
        n_jobs=jobs,
    )


def fastest_set_up(values, X, y):
    """(solver, processes) with which `GridSearchCV` takes least for four values of C."""
    few = [values[int(share * (len(values) - 1))] for share in (0.1, 0.4, 0.7, 0.95)]
    took = {}
    for jobs in (2, 1):
        grid(few[:2], "lbfgs", jobs).fit(X[:500], y[:500])
        for solver in SOLVERS:
            trial = grid(few[:1], solver, jobs)  # hopeless ones are not tried further
            first = timed(trial, X, y)[0]
            if took and first > 2 * min(took.values()):
                print(f"    GridSearchCV, {jobs} processes, {solver}: one C {first:.2f} s")
                continue
            took[solver, jobs] = timed(grid(few, solver, jobs), X, y)[0]
            print(
                f"    GridSearchCV, {jobs} processes, {solver}: four values of C "
                f"{took[solver, jobs]:.2f} s",
                flush=True,
            )
    return min(took, key=took.get)


def part_a(name, rows, n_values, metrics):
    """Values of C x 5 folds."""
    X, y, _, _ = load(name, rows)
    values = np.logspace(-4, 4, n_values).tolist()
    print(f"(a) {name}: {X.shape[0]} x {X.shape[1]} {X.dtype}, {n_values} values of C")
    solver, jobs = fastest_set_up(values, X, y)
    threads = "one thread each" if jobs == 2 else "two threads"
    print(f"    peer: LogisticRegression(solver={solver!r}), n_jobs={jobs}, {threads}")
    for metric in metrics:
        ours(values[:2], metric, None).fit(X[:500], y[:500])  # compiled, as a second search
        rows_, peers = {None: [], "successive-halving": []}, []
        for _ in range(3):
            for bandit, runs in rows_.items():
                runs.append(timed(ours(values, metric, bandit), X, y))
            peers.append(timed(grid(values, solver, jobs, metric), X, y))
        peer_seconds, peer = statistics.median(s for s, _ in peers), peers[-1][1]
        print(
            f"    {metric}: GridSearchCV {peer_seconds:8.2f} s  best {peer.best_score_:.4f}"
        )
        for bandit, runs in rows_.items():
            seconds, search = statistics.median(s for s, _ in runs), runs[-1][1]
            print(
                f"      mlopt, bandit={bandit!s:20s} {seconds:8.2f} s  best "
                f"{search.best_score_:.4f}  {peer_seconds / seconds:6.1f}x"
                f"{_apart(search, peer) if bandit is None else ''}",
                flush=True,
            )


def _apart(search, peer):
    """How far the scores of all configurations are from the peer's."""
    mine, theirs = (
        {p["C"]: s for p, s in zip(found["params"], found["mean_test_score"], strict=True)}
        for found in (search.cv_results_, peer.cv_results_)
    )
    apart = np.abs([mine[C] - theirs[C] for C in theirs])
    return f"  scores apart: median {np.median(apart):.1e}, at most {apart.max():.1e}"


def ours(values, metric, bandit, jobs=2):
    """Parts (a) and (c) by mlopt."""
    return mlopt.ModelSearchCV(
        LogisticRegression(),
        {"C": values},
        sampler="grid",
        n_trials=len(values),
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
        scoring=metric,
        n_jobs=jobs,
        bandit=bandit,
    )


def part_c(n_values=32, runs=3):
    """Every metric, in seconds of CPU on one thread."""
    X, y = make_classification(6000, 40, n_informative=10, flip_y=0.1, random_state=0)
    values = np.logspace(-4, 4, n_values).tolist()
    print(f"(c) {X.shape[0]} x {X.shape[1]}, {n_values} values of C, CPU of one thread")
    with threadpool_limits(1):
        took = {}
        for solver in SOLVERS:
            grid(values[:1], solver, None).fit(X[:500], y[:500])
            took[solver] = cpu(grid(values[:: n_values // 4], solver, None), X, y)[0]
        solver = min(took, key=took.get)
        print(f"    peer: LogisticRegression(solver={solver!r})")
        for metric in SCORES:
            ours(values[:2], metric, None, 1).fit(X[:500], y[:500])
            pairs = []
            for _ in range(runs):
                seconds, search = cpu(ours(values, metric, None, 1), X, y)
                peer_seconds, peer = cpu(grid(values, solver, None, metric), X, y)
                pairs.append((peer_seconds / seconds, peer_seconds, seconds))
            ratio, peer_seconds, seconds = sorted(pairs)[runs // 2]
            print(
                f"    {metric:18s} GridSearchCV {peer_seconds:5.2f} s  mlopt "
                f"{seconds:5.3f} s  {ratio:5.1f}x{_apart(search, peer)}",
                flush=True,
            )


def cpu(search, X, y):
    """(seconds of CPU of fit, the fitted search)."""
    start = time.process_time()
    search.fit(X, y)
    return time.process_time() - start, search


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
        jobs = fastest_halving(X, y)
        print(f"    peer: HalvingRandomSearchCV(n_jobs={jobs})")
        for seed in range(seeds):
            seconds, search = mlopt_sgd(X, y, seed)
            table.setdefault("mlopt", []).append((seconds, search.score(X_test, y_test)))
            seconds, search = halving(X, y, seed, jobs)
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


def fastest_halving(X, y):
    """Processes with which scikit-learn's search is faster; both are warm afterwards."""
    for jobs in (1, 2):
        halving(X[:3000], y[:3000], 0, jobs)
    return min((1, 2), key=lambda jobs: halving(X, y, 0, jobs)[0])


def halving(X, y, seed, jobs):
    """(seconds, search) of scikit-learn's successive halving over rows."""
    return timed(
        HalvingRandomSearchCV(
            SGDClassifier(max_iter=EPOCHS, tol=1e-3, random_state=seed),
            SGD_SPACE,
            n_candidates=N,
            factor=FACTOR,
            random_state=seed,
            n_jobs=jobs,
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
    parser.add_argument("--metrics", default=METRICS, help="of part a")
    parser.add_argument("--values", type=int, default=64, help="of C, in part a")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--dask-ml", help="Python of an environment with dask-ml")
    options = parser.parse_args()
    if "c" in options.part.split(","):
        part_c()
    for name in options.data.split(","):
        if "a" in options.part.split(","):
            part_a(name, options.rows, options.values, options.metrics.split(","))
        if "b" in options.part.split(","):
            part_b(name, options.rows, options.seeds, options.dask_ml)


if __name__ == "__main__":
    main()
