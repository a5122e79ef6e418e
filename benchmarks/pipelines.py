"""Three pipelines, optimized and not, beside scikit-learn doing the same work.

As KeystoneML's Figure 9: "none" (each operator's first way, nothing shared, nothing kept),
"pipeline" (common work shared, results kept) and "full" (ways chosen too). In one run, in
turn; printed are medians of seconds, ratios, and how far predictions agree. scikit-learn
runs as written, and at its best: of the set-ups in SET_UPS, solvers and processes, the one
that takes least when each is tried once; it is printed.

    text      imdb: terms of one and two words, the 100,000 most frequent, weighted by
              TF-IDF; logistic regression
    digits    mnist: 8192 random cosine features; least squares
    flights   nycflights13: impute, encode, scale; a union of two branches behind them;
              logistic regression

usage: pipelines.py [--part text,digits,flights] [--rows N] [--repeats 3] [--explain]
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import os
import statistics
import time
import warnings

warnings.filterwarnings("ignore")

import datasets

os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day

import numpy as np
import pandas as pd
import sklearn.pipeline
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    StandardScaler,
)

import mlopt
from mlopt.pipeline.environment import environment

LEVELS = {
    "none": False,
    "pipeline": {"without": ["choose_ways"]},
    "full": True,
}


def text(rows):
    """Reviews and whether they are good."""
    X, y = [], []
    for part in ("train", "test"):
        with gzip.open(datasets.FOLDER / f"imdb/imdb_{part}.jsonl.gz", "rt") as file:
            records = [json.loads(line) for line in file]
        X += [record["text"] for record in records]
        y += [record["label"] for record in records]
    order = np.random.default_rng(0).permutation(len(X))[: rows or len(X)]
    steps = [
        ("terms", TfidfVectorizer(ngram_range=(1, 2), max_features=100_000)),
        ("classify", LogisticRegression(C=10, max_iter=300)),
    ]
    return [X[i] for i in order], np.array(y)[order], steps


def digits(rows):
    """Images as rows of 784 pixels, float32, and their digits."""
    X, _ = datasets.mnist()
    labels = []
    for part in ("train", "t10k"):
        with gzip.open(datasets.FOLDER / f"mnist/{part}-labels-idx1-ubyte.gz") as file:
            labels.append(np.frombuffer(file.read(), np.uint8, offset=8))
    steps = [
        ("features", RBFSampler(gamma=0.02, n_components=8192, random_state=0)),
        ("classify", RidgeClassifier(alpha=1.0)),
    ]
    rows = rows or 20_000
    return X[:rows], np.concatenate(labels)[:rows], steps


def flights(rows):
    """What is known before departure, and whether the flight is late."""
    frame = pd.read_csv(datasets.FOLDER / "nycflights13/flights.csv.gz")
    frame = frame.dropna(subset=["arr_delay"]).reset_index(drop=True)[: rows or None]
    y = (frame["arr_delay"] > 15).to_numpy().astype(int)
    numbers = ["month", "day", "sched_dep_time", "sched_arr_time", "distance", "hour"]
    names = ["carrier", "origin", "dest"]
    rng = np.random.default_rng(0)
    X = frame[numbers + names].copy()
    X["distance"] = X["distance"].where(rng.random(len(X)) > 0.05)
    prepare = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        (make_pipeline(SimpleImputer(strategy="most_frequent"),
                       OneHotEncoder(handle_unknown="ignore")), names),
        sparse_threshold=0.0,
    )  # fmt: skip
    branches = make_union(
        SelectKBest(f_classif, k=40),
        make_pipeline(
            SelectKBest(f_classif, k=6),
            KBinsDiscretizer(n_bins=12, subsample=None, quantile_method="linear"),
        ),
    )
    steps = [
        ("prepare", prepare),
        ("branches", branches),
        ("classify", LogisticRegression(max_iter=300)),
    ]
    return X, y, steps


PARTS = {"text": text, "digits": digits, "flights": flights}
SET_UPS = {
    "text": [
        {"classify__solver": "liblinear"},
        {"classify__solver": "newton-cg"},
        {"classify__solver": "sag"},
    ],
    "digits": [{"classify__solver": "cholesky"}, {"classify__solver": "lsqr"}],
    "flights": [
        {"classify__solver": "newton-cholesky"},
        {"prepare__n_jobs": 2, "branches__n_jobs": 2},
        {
            "classify__solver": "newton-cholesky",
            "prepare__n_jobs": 2,
            "branches__n_jobs": 2,
        },
    ],
}
"""Parameters that change how scikit-learn computes, not what."""


def fresh(steps):
    return [(name, clone(step)) for name, step in steps]


def timed_fit(make, X, y):
    """(seconds, fitted) of one fit that finds nothing learnt before."""
    environment.clear()
    gc.collect()
    model = make()
    begin = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - begin, model


def peer(steps, set_up):
    """scikit-learn's pipeline."""
    return sklearn.pipeline.Pipeline(fresh(steps)).set_params(**set_up)


def best_set_up(name, X, y, steps, warm):
    """The fastest of SET_UPS, each tried once; processes are started before the clock."""
    took = {}
    for number, set_up in enumerate([{}, *SET_UPS[name]]):
        peer(steps, set_up).fit(X[:warm], y[:warm])
        took[number] = timed_fit(lambda set_up=set_up: peer(steps, set_up), X, y)[0]
        print(f"  scikit-learn, {set_up or 'as written'}: {took[number]:.2f} s", flush=True)
    return [{}, *SET_UPS[name]][min(took, key=took.get)]


def run(name, rows, repeats, explain, levels):
    X, y, steps = PARTS[name](rows)
    makers = {
        level: lambda setting=setting: mlopt.Pipeline(fresh(steps), optimize=setting)
        for level, setting in LEVELS.items()
        if level in levels
    }
    warm = min(len(y), 6000)
    makers["full"]().fit(X[:warm], y[:warm])  # kernels compile here
    best = best_set_up(name, X, y, steps, warm)
    makers["scikit-learn"] = lambda: peer(steps, {})
    if best:
        makers["its best"] = lambda: peer(steps, best)
    if explain:
        print(makers["full"]().explain(X, y))
    seconds = {key: [] for key in makers}
    models = {}
    for turn in range(repeats):
        for key, make in makers.items():
            if key == "none" and turn:
                continue  # once is enough: it takes longest
            took, models[key] = timed_fit(make, X, y)
            seconds[key].append(took)
    report(name, X, y, seconds, models, explain)


def report(name, X, y, seconds, models, explain):
    medians = {key: statistics.median(values) for key, values in seconds.items()}
    full = medians["full"]
    print(f"{name}: {len(y)} rows")
    test = slice(0, 5000)
    expected = models["scikit-learn"].predict(X[test])
    for key, value in medians.items():
        same = (models[key].predict(X[test]) == expected).mean()
        print(f"  {key:13} {value:8.2f} s   {value / full:5.1f}x full   "
              f"predictions as scikit-learn's {same:.4f}")  # fmt: skip
    plan = models["full"].plan_
    print(f"  predicted {plan.predicted:.2f} s, measured {plan.measured:.2f} s")
    if explain:
        print(plan)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="text,digits,flights")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--explain", action="store_true")
    parser.add_argument("--levels", default="none,pipeline,full")
    args = parser.parse_args()
    for name in args.part.split(","):
        run(name, args.rows, args.repeats, args.explain, args.levels.split(","))


if __name__ == "__main__":
    main()
