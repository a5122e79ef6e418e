"""What plans of searches foresee, before the first fit, beside what the searches take.

Searches with all their defaults over every usual family, on tables that no price was fitted
to: scikit-learn's digits, wine and breast_cancer, spam (4,601 x 57), letters (26 classes)
and houses (a regression) of MLOPT_DATA. Each line: seconds predicted with their interval
and how the plan knows them, as corrected after the first fits, and measured; at the end how
many are within a factor of 2, and how many of the intervals hold. ``search.doubt.*`` of
the price list are judged by the last.

With --drawn 1,2 linear models are searched over instead, on rows that are drawn from these
seeds, on one thread, by processor time. With --fit as well, every scan of these runs all
ways, in lockstep, by Newton's method and in its dual, and ``batch.*`` of this script are
fitted: those that foresee passes to the passes that each took, whatever else the machine
did, and those that price scans to its seconds. Judge them on other seeds. With --paths
instead, Lasso and logistic regression with an L1 penalty: what their paths take, which
``columns.path-first`` and ``columns.model.*`` are judged by.

usage: predicted_searches.py [--data digits,spam] [--families forest,hist] [--trials 16]
                             [--folds 3] [--few] [--remember]
                             [--drawn 1,2 [--fit | --paths] [--problems 8]]
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
import warnings
from dataclasses import dataclass

if "--drawn" in sys.argv:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

import dask
import numpy as np
import pandas as pd
from datasets import FOLDER
from scipy.stats import loguniform
from sklearn import datasets, ensemble, linear_model, neighbors, neural_network, svm
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.gd.l1_training import L1Training
from mlopt.gd.newton_training import AlongPenalties
from mlopt.gd.quasi_newton import QuasiNewton
from mlopt.resources import Resources
from mlopt.tuning.crews import batching, scan, scans
from mlopt.tuning.crews.scans import DUAL, LOCKSTEP, NEWTON, Scans
from mlopt.tuning.crews.spaces import Space

WITHIN, FEW = 2.0, 4
LEAVES, DEPTHS = {"max_leaf_nodes": [7, 15, 31, 63]}, {"max_depth": [2, 4, 8, None]}
RATES = {"learning_rate": [0.01, 0.03, 0.1, 0.3]}
TREES, WIDTHS = {"n_estimators": [20, 50, 100]}, {"max_features": [0.1, 0.3, 1.0]}
NEAR = {"n_neighbors": [1, 3, 5, 9, 15, 25, 50, 100], "weights": ["uniform", "distance"]}
LAYERS = {"hidden_layer_sizes": [(10,), (50,), (100,)], "alpha": loguniform(1e-5, 1e-1)}
COSTS = {"C": loguniform(0.01, 100), "gamma": ["scale", "auto"]}
FAMILIES = {
    "forest": ("RandomForest", TREES | DEPTHS),
    "extra": ("ExtraTrees", TREES | WIDTHS),
    "gb": ("GradientBoosting", TREES | RATES | {"max_depth": [2, 3, 4]}),
    "hist": ("HistGradientBoosting", RATES | LEAVES),
    "knn": ("KNeighbors", NEAR),
    "svc": ("SVC", COSTS),
    "mlp": ("MLP", LAYERS),
    "logistic": ("LogisticRegression", {"C": loguniform(1e-4, 1e4)}),
    "scaled": ("scaled", {"C": loguniform(1e-4, 1e4)}),
    "l1": ("l1", {"C": loguniform(1e-2, 1e2)}),
}
ROOMS = (ensemble, neighbors, neural_network)


def model_of(kind, regression):
    """The estimator, of a kind that both have where there are two."""
    if kind == "SVC":
        return svm.SVR() if regression else svm.SVC()
    if kind in ("LogisticRegression", "scaled"):
        model = linear_model.Ridge() if regression else linear_model.LogisticRegression()
        return make_pipeline(StandardScaler(), model) if kind == "scaled" else model
    if kind == "l1":
        shrinking = linear_model.LogisticRegression(l1_ratio=1, solver="saga")
        return linear_model.Lasso() if regression else shrinking
    name = kind + ("Regressor" if regression else "Classifier")
    return next(getattr(room, name)() for room in ROOMS if hasattr(room, name))


def space_of(kind, space, regression):
    """As given, with the penalty by the name that the model has for it."""
    if regression and kind in ("LogisticRegression", "scaled", "l1"):
        return {"alpha": space["C"]}
    return space


def table(name):
    """(X, y, whether y is a number)."""
    if name in ("digits", "wine", "breast_cancer"):
        return *getattr(datasets, f"load_{name}")(return_X_y=True), False
    if name == "spam":
        frame = pd.read_csv(FOLDER / "spambase/spambase.data.gz", header=None)
        return frame.iloc[:, :-1].to_numpy(), frame.iloc[:, -1].to_numpy(), False
    if name == "letters":
        frame = pd.read_csv(FOLDER / "letter/letter-recognition.data.gz", header=None)
        return frame.iloc[:, 1:].to_numpy(dtype=float), frame[0].to_numpy(), False
    frame = pd.read_csv(FOLDER / "california_housing/housing.csv.gz").dropna()
    y = frame.pop("median_house_value").to_numpy() / 1e5
    return frame.drop(columns="ocean_proximity").to_numpy(), y, True


def one(data, family, trials, folds):
    """A line, and (predicted, measured, whether the interval holds)."""
    X, y, regression = table(data)
    kind, space = FAMILIES[family]
    model, space = model_of(kind, regression), space_of(kind, space, regression)
    search = mlopt.ModelSearchCV(model, space, n_trials=trials, cv=folds)
    begin = time.perf_counter()
    plan = search.fit(X, y).plan_
    took = time.perf_counter() - begin
    predicted = math.nan if plan.predicted is None else plan.predicted
    low, high, source, after = math.nan, math.nan, "unknown", math.nan
    if plan.estimates:
        first, last = plan.estimates[0], plan.estimates[-1]
        low, high, source, after = first.low, first.high, first.source, last.seconds
    print(
        f"{data:14}{family:9}{trials:3} x {folds}  predicted {predicted:7.2f} s "
        f"({low:.2f} to {high:.2f}, {source}), "
        f"corrected {after:7.2f} s, measured {took:7.2f} s: {predicted / took:5.2f}, "
        f"{after / took:5.2f}   {search.n_pruned_} pruned, best {search.best_score_:.4f}",
        flush=True,
    )
    return predicted, took, low <= took <= high


@dataclass(frozen=True)
class Took:
    """A scan that took so many seconds one way, and what it is priced by."""

    scans: Scans
    given: tuple
    way: str
    seconds: float
    passes: float
    """Over all rows: of the scan in lockstep, of a model in the mean by itself."""

    def priced(self):
        """Seconds by the list as it is now."""
        cost = self.scans.ways(*self.given).get(self.way)
        return None if cost is None else cost.seconds(self.given[-1])


@dataclass(frozen=True)
class Descended:
    """The passes of a scan, where `prices` has seconds."""

    took: Took

    @property
    def seconds(self):
        return max(self.took.passes, 1.0)

    def priced(self):
        """Passes as they are foreseen."""
        scans, models, way = self.took.scans, self.took.given[1], self.took.way
        return scans.passes(models) if way == LOCKSTEP else scans.alone(way, models)


def rows_of(rng):
    """X and y: planes between classes, or classes about points of their own."""
    n, d = round(10 ** rng.uniform(2.1, 3.6)), round(10 ** rng.uniform(0.6, 1.9))
    classes, noise = rng.choice([2, 2, 3, 6]), 10 ** rng.uniform(-1.5, 0.5)
    if rng.random() < 0.5:
        y = rng.integers(classes, size=n)
        X = 2 * rng.normal(size=(classes, d))[y] / d**0.25 + rng.normal(size=(n, d))
    else:
        X = rng.normal(size=(n, d)) + rng.uniform(0, 1) * rng.normal(size=(n, 1))
        z = X @ rng.normal(size=(d, classes))
        y = (z / z.std() + noise * rng.gumbel(size=z.shape)).argmax(axis=1)
    low = min(d, round(10 ** rng.uniform(0.6, 1.9)))  # columns that are nearly dependent
    X = X @ rng.normal(size=(d, low)) @ rng.normal(size=(low, d)) / d + 0.1 * X
    if rng.random() < 0.5:
        X = np.round(np.exp(X / X.std()))  # counts
    return X * 10 ** (rng.choice([0.0, 1.0]) * rng.normal(size=d)), y


def drawn(seeds, problems):
    """(name, search, X, y) of linear searches, on columns of like and of unlike scales."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        for _ in range(problems):
            X, y = rows_of(rng)
            models, folds = rng.choice([4, 16, 64]), rng.choice([3, 5])
            space = {"C": np.logspace(*rng.choice([(-4, 4), (-2, 2)]), models).tolist()}
            for model in (linear_model.LogisticRegression(), svm.LinearSVC()):
                search = mlopt.ModelSearchCV(
                    model, space, sampler="grid", bandit=None, n_trials=None, cv=folds,
                    n_jobs=1,
                )  # fmt: skip
                shape = "x".join(map(str, (*X.shape, len(set(y)))))
                name = f"{type(model).__name__} {shape} {models} x {folds}"
                yield name, search, X, y


def both_ways(search, X, y):
    """Each scan of a search, one way and the other; the quickest of two runs."""
    for way in (LOCKSTEP, NEWTON, DUAL):
        if way == DUAL and (len(set(y)) > 2 or isinstance(search.estimator, svm.LinearSVC)):
            continue  # of one logistic model alone
        runs = [scans_of(search, X, y, way) for _ in range(2)]
        for one in zip(*runs, strict=True):
            yield min(one, key=lambda took: took.seconds)


def scans_of(search, X, y, way):
    """The scans of a search that goes this way."""
    found, priced, passes, choose = [], [], [], scan.space_of
    ways, advance = Scans.ways, batching.BatchCrew._advance
    progress = QuasiNewton._progress

    def noted(self, *given, **how):
        priced.append((self, given))
        return ways(self, *given, **how)

    def forced(tasks, rows, problem):
        priced.clear()
        choose(tasks, rows, problem)
        return Space(way=way)

    def passed(self, *given):
        passes.append(self.rows.n)
        return progress(self, *given)

    def timed(*given):
        passes.clear()
        begin = time.process_time()
        outcome = advance(*given)
        took, training = time.process_time() - begin, given[1].training
        alone = isinstance(training, AlongPenalties)
        # Where models begin, passes over samples come first: they are no passes of these.
        made = training._steps.mean() if alone else passes.count(training.rows.n)
        found.append(Took(*priced[0], way, took, float(made)))
        return outcome

    scan.space_of, Scans.ways, batching.BatchCrew._advance = forced, noted, timed
    QuasiNewton._progress = passed
    try:
        search.fit(X, y)
    finally:
        scan.space_of, Scans.ways, batching.BatchCrew._advance = choose, ways, advance
        QuasiNewton._progress = progress
    return found


def fitted(options):
    """Print the prices of scans that fit what scans take."""
    import prices

    seen = []
    for name, search, X, y in drawn(options.drawn, options.problems):
        own = [one for one in both_ways(search, X, y) if one.priced() is not None]
        seen += own
        for way in (LOCKSTEP, NEWTON, DUAL):
            both = [(one.priced(), one.seconds) for one in own if one.way == way]
            if both:
                predicted, took = np.sum(both, axis=0)
                print(
                    f"{name:44}{way:9} {predicted:8.3f} s, took {took:8.3f} s", flush=True
                )
    prices.SCRIPT, prices.PREFIX = "predicted_searches.py", "batch."
    seconds, prices.UNITS = prices.UNITS, {"passes", "share"}
    prices.print_fitted([Descended(one) for one in seen], lambda one: one.took.way)
    prices.UNITS = seconds
    prices.print_fitted(seen, lambda one: one.way)


def paths(options):
    """What paths of L1 penalties take, by processor time, and what they are priced."""
    price, solve = scans.paths_cost, L1Training._solve_all
    foreseen, found = [], []

    def priced(*given):
        cost = price(*given)
        foreseen.append(cost.seconds(Resources.probe()))
        return cost

    def timed(self):
        begin = time.process_time()
        solve(self)
        found.append((time.process_time() - begin, len(self.models)))

    scans.paths_cost, L1Training._solve_all = priced, timed
    for name, search, X, y in drawn(options.drawn, options.problems):
        classes = isinstance(search.estimator, linear_model.LogisticRegression)
        if classes:
            estimator = linear_model.LogisticRegression(l1_ratio=1, solver="saga")
            search.set_params(estimator=estimator)
        else:
            rng, models = np.random.default_rng(len(y)), len(search.space["C"])
            y = X @ rng.normal(size=X.shape[1])
            y = y + y.std() * rng.normal(size=len(y))
            most = np.abs(X.T @ (y - y.mean())).max() / len(y)
            alphas = most * np.logspace(-3, 0, models)
            space = {"alpha": alphas.tolist()}
            search.set_params(estimator=linear_model.Lasso(), space=space)
        search.set_params(refit=False).fit(X, y)  # kernels are loaded
        foreseen.clear()
        found.clear()
        search.fit(X, y)
        took, models = np.sum(found, axis=0)
        print(
            f"{type(search.estimator).__name__:19}{name.split(maxsplit=1)[1]:20} "
            f"{foreseen[0]:7.3f} s, took {took:7.3f} s: "
            f"{1e3 * took / models:6.2f} ms a model",
            flush=True,
        )


def on_drawn(options):
    """Whole searches, predicted and measured, by processor time."""
    found = []
    for name, search, X, y in drawn(options.drawn, options.problems):
        search.fit(X, y)  # kernels are compiled, and loaded
        begin = time.process_time()
        plan = search.fit(X, y).plan_
        took = time.process_time() - begin
        first = plan.estimates[0]
        print(f"{name:44} {plan.predicted:8.3f} s, took {took:8.3f} s", flush=True)
        found.append((name, plan.predicted, took, first.low <= took <= first.high))
    for kind in ("LogisticRegression", "LinearSVC"):
        told([rest for name, *rest in found if name.startswith(kind)], kind + ": ")


def told(found, before=""):
    """How near predictions were."""
    off = np.array([max(p / t, t / p) for p, t, _ in found])
    held = sum(holds for *_, holds in found)
    print(
        f"{before}{np.sum(off <= WITHIN)} of {len(off)} within {WITHIN:g} times, at worst "
        f"{np.nanmax(off):.2f}; {held} of {len(off)} intervals hold what was measured"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits,spam")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--few", action="store_true", help="searches of 4 x 3 fits, too")
    parser.add_argument("--remember", action="store_true")
    parser.add_argument("--drawn", type=lambda text: [int(s) for s in text.split(",")])
    parser.add_argument("--problems", type=int, default=8, help="drawn of each seed")
    parser.add_argument("--fit", action="store_true", help="prices of scans to these")
    parser.add_argument("--paths", action="store_true", help="of L1 penalties")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.drawn:
        with dask.config.set({"mlopt.remember": False}):
            how = fitted if options.fit else paths if options.paths else on_drawn
            how(options)
        return
    found = []
    with dask.config.set({"mlopt.remember": options.remember}):
        for data in options.data.split(","):
            for family in options.families.split(","):
                sizes = (options.trials, *([FEW] if options.few else []))
                found += [one(data, family, trials, options.folds) for trials in sizes]
    told(found)


if __name__ == "__main__":
    main()
