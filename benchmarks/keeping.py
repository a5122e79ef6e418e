"""What is kept in memory, chosen in five ways, at ten budgets (KeystoneML's Figure 10).

Each pipeline is fitted with budgets from 1% to 200% of the bytes of all its intermediate
rows. Rows are kept that `mlopt.keep` names: "best" is what mlopt does; "nothing";
"estimators" (models only); "lru" (everything, least recently used evicted at run time);
"aggressive" (all that is read more than once, in the graph's order, while it fits). In one
run, in turn; printed are the least seconds of each, since other work on the machine only
adds, and for "best" the median of what was predicted. "nothing" and "estimators" run the
same plan: how far they differ is the noise.

    text      imdb: terms of one and two words; TF-IDF of these, and their logarithms; the
              best of both; logistic regression
    digits    mnist: scaled; 512 random cosine features, the best of them, beside 128
              others; the best of both; logistic regression
    made      as digits, on made data, where there is no mnist

usage: keeping.py [--part text,digits] [--rows N] [--repeats 3] [--explain]
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "2")
os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day
warnings.filterwarnings("ignore")

import dask
import datasets
import numpy as np
import pipelines
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import mlopt
from mlopt.pipeline.environment import environment

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 2.0)
"""Of the bytes of all intermediate rows."""
KEEPERS = ("best", "nothing", "estimators", "lru", "aggressive")


def text(rows):
    X, y, _ = pipelines.text(rows or 5000)
    steps = [
        ("terms", CountVectorizer(ngram_range=(1, 2), max_features=50_000)),
        ("weights", make_union(
            make_pipeline(TfidfTransformer(), SelectKBest(f_classif, k=5000)),
            make_pipeline(MaxAbsScaler(), SelectKBest(f_classif, k=2000)),
        )),
        ("classify", LogisticRegression(max_iter=30)),
    ]  # fmt: skip
    return X, y, steps


def features(X, y):
    steps = [
        ("scale", StandardScaler()),
        ("features", make_union(
            make_pipeline(RBFSampler(gamma=0.002, n_components=512, random_state=0),
                          StandardScaler(), SelectKBest(f_classif, k=256)),
            make_pipeline(RBFSampler(gamma=0.01, n_components=128, random_state=1),
                          StandardScaler()),
        )),
        ("select", SelectKBest(f_classif, k=128)),
        ("classify", LogisticRegression(max_iter=100)),
    ]  # fmt: skip
    return X, y, steps


def digits(rows):
    if not (datasets.FOLDER / "mnist").is_dir():
        return made(rows)
    X, y = datasets.mnist()
    return features(X[: rows or 8_000], y[: rows or 8_000])


def made(rows):
    X, y = make_classification(
        rows or 8_000, 400, n_informative=40, n_redundant=40, random_state=7
    )
    return features(X.astype(np.float32), y)


PARTS = {"text": text, "digits": digits, "made": made}


def fit(steps, X, y, keep, budget):
    """(seconds, fitted pipeline) of a fit that finds nothing learnt before."""
    environment.clear()
    gc.collect()
    fresh = [(name, clone(step)) for name, step in steps]
    model = mlopt.Pipeline(fresh, memory_budget=budget)
    with dask.config.set({"mlopt.keep": keep}):
        begin = time.perf_counter()
        model.fit(X, y)
    return time.perf_counter() - begin, model


def intermediates(steps, X, y):
    """Bytes that all rows between the data and the last model take at most."""
    _, model = fit(steps, X, y, "lru", 1 << 40)
    return model.plan_.memory


def run(name, rows, repeats, explain):
    X, y, steps = PARTS[name](rows)
    fit(steps, X[:6000], y[:6000], "best", "auto")  # kernels compile here
    total = intermediates(steps, X, y)
    print(f"{name}: {len(y)} rows, {total / 2**20:.1f} MB of intermediates")
    print("budget    " + "".join(f"{keep:>12}" for keep in KEEPERS)
          + "   best/others   predicted  kept MB predicted  held")  # fmt: skip
    for share in SHARES:
        budget = int(share * total)
        seconds, predicted = {keep: [] for keep in KEEPERS}, []
        for _ in range(repeats):
            for keep in KEEPERS:
                took, model = fit(steps, X, y, keep, budget)
                seconds[keep].append(took)
                if keep == "best":
                    plan = model.plan_
                    predicted.append(plan.predicted)
        least = {k: min(v) for k, v in seconds.items()}
        report(share, least, plan, statistics.median(predicted))
        if explain:
            print(plan)


def report(share, least, plan, predicted):
    others = min(value for keep, value in least.items() if keep != "best")
    held = next((note for note in plan.notes if note.startswith("rows kept")), "")
    print(f"{share:6.0%}    " + "".join(f"{least[keep]:12.2f}" for keep in KEEPERS)
          + f"{least['best'] / others:12.2f}"
          + f"{predicted:13.2f}   {held}", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="text,digits")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--explain", action="store_true")
    args = parser.parse_args()
    for name in args.part.split(","):
        run(name, args.rows, args.repeats, args.explain)


if __name__ == "__main__":
    main()
