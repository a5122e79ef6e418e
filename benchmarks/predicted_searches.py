"""What plans of searches foresee, before the first fit, beside what the searches take.

Searches with all their defaults over every usual family, on tables that no price was fitted
to: scikit-learn's digits, wine and breast_cancer, spam (4,601 x 57), letters (26 classes)
and houses (a regression) of MLOPT_DATA. Each line: seconds predicted with their interval
and how the plan knows them, as corrected after the first fits, and measured; at the end how
many are within a factor of 2, and how many of the intervals hold. ``search.doubt.*`` of
the price list are judged by the last.

usage: predicted_searches.py [--data digits,spam] [--families forest,hist] [--trials 16]
                             [--folds 3] [--few] [--remember]
"""

from __future__ import annotations

import argparse
import math
import time
import warnings

import dask
import numpy as np
import pandas as pd
from datasets import FOLDER
from scipy.stats import loguniform
from sklearn import datasets, ensemble, linear_model, neighbors, neural_network, svm
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mlopt

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
}
ROOMS = (ensemble, neighbors, neural_network)


def model_of(kind, regression):
    """The estimator, of a kind that both have where there are two."""
    if kind == "SVC":
        return svm.SVR() if regression else svm.SVC()
    if kind in ("LogisticRegression", "scaled"):
        model = linear_model.Ridge() if regression else linear_model.LogisticRegression()
        return make_pipeline(StandardScaler(), model) if kind == "scaled" else model
    name = kind + ("Regressor" if regression else "Classifier")
    return next(getattr(room, name)() for room in ROOMS if hasattr(room, name))


def space_of(kind, space, regression):
    """As given, with the penalty by the name that the model has for it."""
    if regression and kind in ("LogisticRegression", "scaled"):
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits,spam")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--few", action="store_true", help="searches of 4 x 3 fits, too")
    parser.add_argument("--remember", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    found = []
    with dask.config.set({"mlopt.remember": options.remember}):
        for data in options.data.split(","):
            for family in options.families.split(","):
                sizes = (options.trials, *([FEW] if options.few else []))
                found += [one(data, family, trials, options.folds) for trials in sizes]
    off = np.array([max(p / t, t / p) for p, t, _ in found])
    held = sum(holds for *_, holds in found)
    print(
        f"{np.sum(off <= WITHIN)} of {len(off)} within {WITHIN:g} times, at worst "
        f"{np.nanmax(off):.2f}; {held} of {len(off)} intervals hold what was measured"
    )


if __name__ == "__main__":
    main()
