"""What a search costs over models that grow or that cannot be trained in part.

For each family: 16 configurations x 3 folds on 10,000 x 28, `GridSearchCV` at its best
set-up (one process or two) and `ModelSearchCV` with all its defaults in turn, final fits
included. Printed: seconds of both, the median of their ratios, best scores, trials pruned,
and what the plan predicted. With `--page` the example of the front page, measured beside
its prediction: what the prices "batch.*" and "search.*" say; in an environment whose
NUMBA_CACHE_DIR is empty, "kernels.compiled" too. With `--looks` the prices
"growth.*": what a look at an ensemble costs, in members and as a share of growing one. With
`--begin` the price "processes.begin".

usage: growth.py [--families hist,forest,svc,knn,tree] [--rows 10000] [--runs 3]
       growth.py --page | --looks | --begin
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings

os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day

import numpy as np
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import mlopt
from mlopt.cluster import Threads, single_threaded
from mlopt.tuning.crews.fitting import Fold, fit_fold
from mlopt.tuning.crews.growing import GROWING

TRIALS, FOLDS, FEW = 16, 3, 10
FAMILIES = {
    "hist": (
        HistGradientBoostingClassifier(random_state=0),
        {"learning_rate": [0.01, 0.03, 0.1, 0.3], "max_leaf_nodes": [7, 15, 31, 63]},
    ),
    "gb": (
        GradientBoostingClassifier(random_state=0, n_estimators=50),
        {"learning_rate": [0.01, 0.03, 0.1, 0.3], "max_depth": [2, 3, 4, 5]},
    ),
    "forest": (
        RandomForestClassifier(random_state=0),
        {"max_depth": [2, 4, 8, None], "max_features": [0.1, 0.2, 0.4, 0.8]},
    ),
    "svc": (SVC(), {"C": [0.1, 1, 10, 100], "gamma": [1e-3, 1e-2, 1e-1, 1.0]}),
    "knn": (
        KNeighborsClassifier(),
        {"n_neighbors": [1, 3, 5, 9, 15, 25, 50, 100], "weights": ["uniform", "distance"]},
    ),
    "tree": (
        DecisionTreeClassifier(random_state=0),
        {"max_depth": [2, 4, 8, None], "min_samples_leaf": [1, 5, 20, 100]},
    ),
}


def timed(search, X, y):
    """(seconds on the clock, CPU seconds of this process, the fitted search)."""
    clock, cpu = time.perf_counter(), time.process_time()
    search.fit(X, y)
    return time.perf_counter() - clock, time.process_time() - cpu, search


def best_jobs(model, space, X, y):
    """Processes with which `GridSearchCV` is faster."""
    few = {name: values[1:3] for name, values in space.items()}
    took = {}
    for jobs in (2, 1):
        search = GridSearchCV(model, few, cv=FOLDS, n_jobs=jobs)
        timed(search, X[:500], y[:500])  # starts the processes
        took[jobs] = timed(search, X, y)[0]
    return min(took, key=took.get)


def report(name, rows, runs, bandit):
    """One family."""
    model, space = FAMILIES[name]
    X, y = make_classification(
        rows, 28, n_informative=10, flip_y=0.05, class_sep=0.7, random_state=0
    )
    ours = mlopt.ModelSearchCV(model, space, n_trials=TRIALS, cv=FOLDS, bandit=bandit)
    ours.fit(X[:300], y[:300])  # compiled, as a second search
    jobs = best_jobs(model, space, X, y)
    print(f"{name}: {rows} x 28, {TRIALS} x {FOLDS}; GridSearchCV(n_jobs={jobs})")
    ratios = []
    for _ in range(runs):
        theirs = GridSearchCV(model, space, cv=FOLDS, n_jobs=jobs)
        clock, cpu, search = timed(ours, X, y)
        peer_clock, _, peer = timed(theirs, X, y)
        predicted = search.plan_.predicted or float("nan")
        ratios.append(clock / peer_clock)
        print(
            f"    mlopt {clock:6.2f} s (CPU {cpu:6.2f}, fits "
            f"{np.nansum(search.cv_results_['mean_fit_time']) * FOLDS:6.2f}) best "
            f"{search.best_score_:.4f}, {search.n_pruned_} pruned, predicted "
            f"{predicted:.2f} s ({predicted / clock:.2f}x)   GridSearchCV "
            f"{peer_clock:6.2f} s (fits "
            f"{np.nansum(peer.cv_results_['mean_fit_time']) * FOLDS:6.2f}) best "
            f"{peer.best_score_:.4f}   {clock / peer_clock:.2f}x",
            flush=True,
        )
    print(f"  median {statistics.median(ratios):.2f}x of GridSearchCV's time", flush=True)
    return search


def page():
    """The example of the front page."""
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    for _ in range(3):
        search = mlopt.ModelSearchCV(model, {"C": loguniform(1e-4, 1e4)}, n_trials=64)
        clock, _, search = timed(search, X, y)
        predicted = search.plan_.predicted
        print(f"front page: predicted {predicted:.3f} s, measured {clock:.3f} s")
    print(search.plan_.explain())


def looks():
    """What begins anew under `warm_start`, and what scores take, by CPU of one thread."""
    for name in ("hist", "forest", "gb"):
        model = FAMILIES[name][0]
        count = GROWING[type(model)].parameter
        for rows, columns in ((1000, 28), (6667, 28), (6667, 100)):
            X, y = make_classification(rows, columns, n_informative=10, random_state=0)
            found = [_look(model, count, X, y) for _ in range(3)]
            few, many, more, score = np.min(found, axis=0)
            member = (many - few) / FEW
            print(
                f"{type(model).__name__} {rows} x {columns}: a member {member:.4f} s, "
                f"again {(few + more - many) / member:.1f} members, judged "
                f"{score / (2 * FEW) / member:.3f}",
                flush=True,
            )


def begin():
    """Seconds until processes have started, one a core, and each has fitted a little."""
    X, y = make_classification(100, 4, random_state=0)
    threads = Threads()
    count = threads.apart()
    start = time.perf_counter()
    model = HistGradientBoostingClassifier(max_iter=2)
    # What a search calls: they import all that its fits need.
    fits = [threads.beside(fit_fold, model, Fold(X, y)) for _ in range(count)]
    for fit in fits:
        threads.result(fit)
    print(f"{count} processes: {time.perf_counter() - start:.2f} s", flush=True)
    threads.close()


def _look(model, count, X, y):
    """Seconds of few members, of twice as many, of as many more, and of a score."""
    few, many = (clone(model).set_params(**{count: n}) for n in (FEW, 2 * FEW))
    grown = clone(few).set_params(warm_start=True)
    with single_threaded():
        took = [_cpu(lambda: few.fit(X, y)), _cpu(lambda: many.fit(X, y))]
        grown.fit(X, y).set_params(**{count: 2 * FEW})
        took += [_cpu(lambda: grown.fit(X, y)), _cpu(lambda: grown.score(X, y))]
    return took


def _cpu(call):
    start = time.thread_time()
    call()
    return time.thread_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", default="hist,forest,svc,knn,tree")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--bandit", default="action-elimination")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--looks", action="store_true")
    parser.add_argument("--begin", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.looks:
        looks()
        return
    if options.begin or options.page:
        (begin if options.begin else page)()
        return
    bandit = None if options.bandit == "none" else options.bandit
    for name in options.families.split(","):
        search = report(name, options.rows, options.runs, bandit)
        print(search.plan_.explain(), flush=True)


if __name__ == "__main__":
    main()
