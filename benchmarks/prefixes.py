"""A search over a pipeline, side by side: every step fitted once a fold, models in batches.

StandardScaler > PCA > LogisticRegression, 4 numbers of components x 16 values of C x 5
folds: `mlopt.ModelSearchCV` against `GridSearchCV` with `memory=` (an empty folder each
time) on one and on two processes, the same grid, folds and two threads, in one run,
interleaved. The steps count their fits in a file, so that processes count too; the refit on
all rows is counted apart.

usage: prefixes.py [--data adult,usps,mnist,synthetic] [--rows 8000] [--repeat 3]
                   [--jobs 1,2]

Without the file of a data set the synthetic one stands in. Ten classes (usps) take
scikit-learn several minutes a search.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day
os.environ.setdefault("PYTHONWARNINGS", "ignore")
warnings.filterwarnings("ignore")
os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *sys.path])

import numpy as np
from counted import COUNTS, CountedPCA, CountedScaler
from datasets import load
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline

import mlopt

COMPONENTS = (10, 20, 40, 60)
C_VALUES = np.logspace(-3, 3, 16).tolist()
GRID = {"pca__n_components": list(COMPONENTS), "clf__C": C_VALUES}


def pipeline(memory=None):
    """The same for both; the seed is what a search of ours would set."""
    steps = [
        ("scale", CountedScaler()),
        ("pca", CountedPCA(random_state=0)),
        ("clf", LogisticRegression(max_iter=1000)),
    ]
    return Pipeline(steps, memory=memory)


def counted(search, X, y, rows):
    """(seconds of fit, the fitted search, fits of each step, those of the refit)."""
    counts = Path(os.environ[COUNTS])
    counts.write_text("")
    start = time.perf_counter()
    search.fit(X, y)
    seconds = time.perf_counter() - start
    lines = [line.split() for line in counts.read_text().splitlines()]
    folds = [name for name, n in lines if rows / 2 < int(n) < rows]
    last = [name for name, n in lines if int(n) == rows]
    return (
        seconds,
        search,
        *(
            {name: found.count(name) for name in ("scale", "pca")}
            for found in (folds, last)
        ),
    )


def ours(X, y, cv):
    """Our search of the grid, every configuration trained to the end."""
    search = mlopt.ModelSearchCV(
        pipeline(), GRID, sampler="grid", n_trials=None, bandit=None, cv=cv, n_jobs=2
    )
    return counted(search, X, y, len(y))


def peer(X, y, cv, jobs):
    """scikit-learn's, with its cache of fitted transformers."""
    with tempfile.TemporaryDirectory() as folder:
        search = GridSearchCV(pipeline(folder), GRID, cv=cv, n_jobs=jobs)
        return counted(search, X, y, len(y))


def table(search):
    """Mean scores, (settings of PCA, values of C), in the order of the grid."""
    scores = {
        (params["pca__n_components"], params["clf__C"]): score
        for params, score in zip(
            search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
        )
    }
    return np.array([[scores[k, C] for C in C_VALUES] for k in COMPONENTS])


def compare(name, rows, repeat, jobs):
    """All searches in turn, ``repeat`` times; medians and ratios."""
    try:
        X, y, X_test, y_test = load(name, rows)
    except FileNotFoundError as error:
        print(f"{name}: no {error.filename}, so synthetic data")
        X, y, X_test, y_test = load("synthetic", rows)
    print(f"{name}: {X.shape[0]} x {X.shape[1]} {X.dtype}, {len(COMPONENTS)} settings of "
          f"PCA x {len(C_VALUES)} values of C x 5 folds")  # fmt: skip
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    ours(X[:1000], y[:1000], cv)  # compiled code is warm, as a second search would find it
    runs = {"mlopt": lambda: ours(X, y, cv)}
    runs |= {f"GridSearchCV n_jobs={n}": lambda n=n: peer(X, y, cv, n) for n in jobs}
    seconds = {label: [] for label in runs}
    last = {}
    for n in jobs:  # its processes start before the clock
        peer(X[:1000], y[:1000], cv, n)
    for _ in range(repeat):
        for label, run in runs.items():
            took, *last[label] = run()
            seconds[label].append(took)
    medians = {label: statistics.median(took) for label, took in seconds.items()}
    for label, (search, fits, final) in last.items():
        print(
            f"    {label:22s} {medians[label]:8.2f} s  best {search.best_score_:.4f}"
            f"  test {search.score(X_test, y_test):.4f}"
            f"  fits {fits['scale']} scaler, {fits['pca']} PCA"
            f"  (refit {final['scale']}, {final['pca']})"
            f"  {medians[label] / medians['mlopt']:6.1f}x"
        )
    mine, *others = (table(search) for search, *_ in last.values())
    gaps = np.abs(mine - others[0])
    best = min(value for label, value in medians.items() if label != "mlopt")
    print(f"    mean scores of the 64: largest difference {gaps.max():.5f}, median "
          f"{np.median(gaps):.5f}")  # fmt: skip
    print(f"    against the better of scikit-learn's: {best / medians['mlopt']:.1f}x",
          flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="adult")
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--jobs", default="1,2")
    options = parser.parse_args()
    jobs = [int(n) for n in options.jobs.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        # Set before any process is started: all know where to count.
        os.environ[COUNTS] = str(Path(folder) / "counts")
        for name in options.data.split(","):
            compare(name, options.rows, options.repeat, jobs)


if __name__ == "__main__":
    main()
