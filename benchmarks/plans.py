"""Every plan run to the same quality, beside what the optimizer chose and predicted.

For each data set: all plans for one task, each from the raw rows until the objective is
within the tolerance of its minimum, in turn and (fast ones) three times; the loss on rows
that were held out must then be the same. Printed: seconds predicted and measured, passes
predicted (after speculation of ten seconds) and taken, the chosen plan, planning included,
against the best, and the worst against the best. A plan that takes longer than the limit is
stopped: its time is then a lower bound.

usage: plans.py [--data a9a,covtype,imdb,california,tall,large] [--limit 60] [--rows N]

"large" reads 2.4 GB from a file in a process that may hold 2 GiB (Linux).
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import os
import resource
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
from sklearn.datasets import load_svmlight_file

import mlopt
import mlopt.errors

FOLDER = Path(os.environ.get("MLOPT_DATA", Path(__file__).parents[2] / "shared/data"))
TOLERANCE = 1e-3
REPEATS, FAST = 9, 1.0
"""Runs of what takes less than so many seconds."""
CAP = 2 << 30
DETERMINISTIC = {
    "lbfgs", "newton-cholesky", "bgd/eager", "line-search/eager", "saga",
    "primal-coordinate-descent", "dual-coordinate-descent", "sparse_cg",
}  # fmt: skip


def scaled(X):
    """Columns of mean 0 and deviation 1."""
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)


def a9a(rows):
    """Adult, one-hot: 32,561 x 123, sparse."""
    X, y = load_svmlight_file(str(FOLDER / "a9a/a9a.gz"))
    return X[:rows], y[:rows], mlopt.gd.Task("logistic", l2=1e-4)


def covtype(rows):
    """Forest cover, the second class against the rest: 581,012 x 54."""
    table = np.loadtxt(
        FOLDER / "covtype/covtype.csv.gz", delimiter=",", skiprows=1, max_rows=rows
    )
    X, y = scaled(table[:, :-1]), table[:, -1] == 2
    return X, y.astype(int), mlopt.gd.Task("logistic", l2=1e-5)


def imdb(rows):
    """Reviews of films, TF-IDF: 25,000 rows, sparse."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    with gzip.open(FOLDER / "imdb/imdb_train.jsonl.gz", "rt") as lines:
        reviews = [json.loads(line) for line in lines][:rows]
    X = TfidfVectorizer(min_df=3, sublinear_tf=True).fit_transform(
        r["text"] for r in reviews
    )
    return X, np.array([r["label"] for r in reviews]), mlopt.gd.Task("logistic", l2=1e-5)


def california(rows):
    """Prices of houses: 20,433 x 8, a regression."""
    table = np.genfromtxt(
        FOLDER / "california_housing/housing.csv.gz", delimiter=",", skip_header=1,
        usecols=range(9), max_rows=rows,
    )  # fmt: skip
    table = table[np.isfinite(table).all(axis=1)]
    return scaled(table[:, :-1]), table[:, -1] / 1e5, mlopt.gd.Task("squared", l2=1e-3)


def tall(rows):
    """Synthetic, dense: 1,000,000 x 50, features of different scale, correlated."""
    from solvers import tall as made

    X, y = made(rows or 1_000_000)
    return X, y, mlopt.gd.Task("logistic", l2=1e-6)


def large(rows):
    """Synthetic, dense, from a file: 3,000,000 x 100."""
    n, rng = rows or 3_000_000, np.random.default_rng(0)
    path = Path(tempfile.gettempdir()) / f"mlopt_plans_{n}.npy"
    truth = rng.normal(size=100)
    y = np.empty(n)
    made = np.lib.format.open_memmap(path, "w+", np.float64, (n, 100))
    for start in range(0, n, 50_000):
        part = rng.normal(size=(min(50_000, n - start), 100))
        made[start : start + len(part)] = part
        p = 1 / (1 + np.exp(-(part @ truth / 5)))
        y[start : start + len(part)] = rng.random(len(part)) < p
    made.flush()
    del made
    return np.load(path, mmap_mode="r"), y, mlopt.gd.Task("logistic", l2=1e-6)


DATA = {
    "a9a": a9a, "covtype": covtype, "imdb": imdb, "california": california,
    "tall": tall, "large": large,
}  # fmt: skip


def split(X, y):
    """Four fifths to train, one fifth to validate; the last rows of a file."""
    n = len(y)
    if isinstance(X, np.memmap):
        cut = n - n // 50
        return X[:cut], y[:cut], np.asarray(X[cut:]), y[cut:]
    order = np.random.default_rng(0).permutation(n)
    train, valid = order[n // 5 :], order[: n // 5]
    return X[train], y[train], X[valid], y[valid]


def loss(task, X, y, result):
    """The mean loss, without the penalty."""
    z = np.asarray(X @ result.coef).ravel() + result.intercept
    if task.loss == "squared":
        return float(np.mean((z - y) ** 2) / 2)
    sign = np.where(y == result.classes[1], 1.0, -1.0)
    return float(np.logaddexp(0, -sign * z).mean())


def timed(task, X, y, limit, **settings):
    """(seconds from the raw rows, the plan, the result)."""
    start = time.perf_counter()
    plan = mlopt.gd.plan(task, X, y, tolerance=TOLERANCE, n_jobs=2, **settings)
    result = plan.chosen.run(time_limit=limit) if limit else plan.run()
    return time.perf_counter() - start, plan, result


def report(name, limit, rows):
    """All plans of one data set."""
    X, y, task = DATA[name](rows)
    if name == "large":
        resource.setrlimit(resource.RLIMIT_DATA, (CAP, CAP))
    X, y, X_valid, y_valid = split(X, y)
    print(f"{name}: {X.shape[0]} x {X.shape[1]}, {task.loss}, l2 {task.l2:g}", flush=True)
    few = slice(0, 3000)
    warm = mlopt.gd.plan(task, X[few], y[few], tolerance=0.1, n_jobs=2)
    for alternative in warm.alternatives:
        alternative.run(time_limit=0.5)  # kernels compiled, as a second run finds them
    ranked = mlopt.gd.plan(
        task, X, y, tolerance=TOLERANCE, n_jobs=2, speculation=10.0
    ).alternatives
    runs = {}
    for alternative in ranked:
        best = min((seconds for seconds, _ in runs.values()), default=limit)
        most = min(limit, max(5.0, 40 * best))
        settings = {"methods": [alternative.name], "speculation": False}
        try:
            found = [timed(task, X, y, most, **settings)]
        except (MemoryError, mlopt.errors.MloptError) as error:
            print(f"  {alternative.name}: {type(error).__name__}", flush=True)
            found = None
            gc.collect()
            continue
        if found[0][2].converged and found[0][0] < FAST:
            found += [timed(task, X, y, most, **settings) for _ in range(2)]
        runs[alternative.name] = (statistics.median(s for s, _, _ in found), found[0][2])
    show(task, ranked, runs, X_valid, y_valid)
    del ranked, warm, found, alternative
    gc.collect()
    converged = {name: s for name, (s, result) in runs.items() if result.converged}
    race(task, X, y, sorted(converged, key=converged.get)[:3], runs, X_valid, y_valid)


def race(task, X, y, best, runs, X_valid, y_valid):
    """The chosen plan, planning included, in turn with each of the best ones."""
    chosen, others = [], {name: [] for name in best}
    while len(chosen) < 3 or (len(chosen) < REPEATS and chosen[0][0] < FAST):
        chosen.append(timed(task, X, y, None))
        for name, took in others.items():
            took.append(timed(task, X, y, None, methods=[name], speculation=False)[0])
    name, least = min(
        ((name, statistics.median(took)) for name, took in others.items()),
        key=lambda pair: pair[1],
    )
    worst = max(seconds for seconds, _ in runs.values())
    seconds = statistics.median(s for s, _, _ in chosen)
    _, plan, result = chosen[-1]
    running = statistics.median(r.seconds for _, _, r in chosen)
    predicted = statistics.median(p.chosen.predicted_seconds for _, p, _ in chosen)
    print(
        f"  chosen {plan.chosen.name}: {seconds:.3f} s with planning, "
        f"{seconds / least:.2f}x the best ({name}, {least:.3f} s); worst/best "
        f"{worst / least:.0f}x and more\n"
        f"  predicted {predicted:.3f} s, ran {running:.3f} s ({predicted / running:.2f}); "
        f"loss {loss(task, X_valid, y_valid, result):.5f}"
    )


def show(task, ranked, runs, X_valid, y_valid):
    """The table, and how right the passes were."""
    print(f"  {'plan':32s} {'predicted':>10s} {'measured':>10s} {'passes':>17s}  loss")
    off = {}
    for alternative in ranked:
        if alternative.name not in runs:
            continue
        seconds, result = runs[alternative.name]
        more = " " if result.converged else ">"
        passes = f"{alternative.passes.expected:.0f} / {result.n_iter}"
        print(
            f"  {alternative.name:32s} {alternative.predicted_seconds:8.3f} s "
            f"{more}{seconds:7.3f} s {passes:>17s}  "
            f"{loss(task, X_valid, y_valid, result):.5f} {alternative.passes.source}"
        )
        if result.converged and alternative.name in DETERMINISTIC:
            off[alternative.name] = alternative.passes.expected / result.n_iter
    within = sum(0.5 <= ratio <= 2 for ratio in off.values())
    shown = ", ".join(f"{k} {v:.2f}" for k, v in off.items())
    print(f"  passes predicted / taken, within 2x on {within} of {len(off)}: {shown}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    names = options.data.split(",")
    if len(names) == 1:
        report(names[0], options.limit, options.rows)
        return
    for name in names:  # each in its own process: a cap on memory stays with it
        more = ["--rows", str(options.rows)] if options.rows else []
        subprocess.run(
            [
                sys.executable,
                __file__,
                "--data",
                name,
                "--limit",
                str(options.limit),
                *more,
            ],
            check=True,
        )


if __name__ == "__main__":
    main()
