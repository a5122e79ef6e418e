"""The first fit of a pipeline in a fresh process, and later ones, beside scikit-learn's.

Each measurement is a process of its own that imports, makes the data and the pipeline, and
only then starts the clocks: wall time, and processor time of all threads. scikit-learn and
mlopt run in turn; printed are medians, ratios, the share of rows that are predicted alike,
what the plan predicted, and what planning took.

    adult     32,000 rows, 14 columns: scale and one-hot; logistic regression
    flights   60,000 flights with planes and weather, 22 columns: impute, scale, one-hot;
              logistic regression
    reviews   6,000 texts: TF-IDF of terms; logistic regression
    digits    1797 x 64: scale, components; logistic regression of ten classes
    spoken    1560 x 617, isolet: scale; logistic regression of 26 classes
    wide      6000 x 400, drawn: scale; logistic regression
    light     100,000 x 10, drawn: scale; logistic regression
    columns   100,000 x 10, drawn: two scalers of five columns each; logistic regression

With --predict, predictions of rows by number, the least of a few calls.

usage: first_fits.py [--part adult,flights,...] [--rounds 5] [--repeats 5] [--predict]
                     [--profile FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day
warnings.filterwarnings("ignore")

import datasets
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits, make_classification
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

PREDICTED = (1, 100, 4096, 20_000, 100_000)
"""Rows that are predicted at once with --predict."""
CALLS, ENOUGH = 200, 0.5
"""Calls at most of which the least is taken, and seconds after which there are no more."""


def adult():
    path = datasets.FOLDER / "adult/adult.data.gz"
    frame = pd.read_csv(path, header=None, skipinitialspace=True)[:32_000]
    frame.columns = [f"c{number}" for number in frame]
    y = frame.pop("c14").eq(">50K").to_numpy().astype(int)
    numbers = frame.select_dtypes("number").columns.tolist()
    names = [name for name in frame if name not in numbers]
    columns = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), names)
    )
    return frame, y, [("columns", columns), ("classify", LogisticRegression(max_iter=300))]


def flights():
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    from flights import flights_table

    frame = flights_table(60_000).reset_index(drop=True)
    y = frame.pop("late").to_numpy().astype(int)
    numbers = frame.select_dtypes("number").columns.tolist()
    names = [name for name in frame if name not in numbers]
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        (
            make_pipeline(
                SimpleImputer(strategy="most_frequent"),
                OneHotEncoder(handle_unknown="ignore", min_frequency=20),
            ),
            names,
        ),
    )
    return frame, y, [("columns", columns), ("classify", LogisticRegression(max_iter=300))]


def reviews():
    import gzip

    with gzip.open(datasets.FOLDER / "imdb/imdb_train.jsonl.gz", "rt") as file:
        records = [json.loads(line) for line in file]
    picked = np.random.default_rng(0).permutation(len(records))[:6000]
    X = [records[i]["text"] for i in picked]
    y = np.array([records[i]["label"] for i in picked])
    steps = [
        ("terms", TfidfVectorizer(min_df=2, sublinear_tf=True)),
        ("classify", LogisticRegression()),
    ]
    return X, y, steps


def digits():
    X, y = load_digits(return_X_y=True)
    steps = [
        ("scale", StandardScaler()),
        ("components", PCA(30, random_state=0)),
        ("classify", LogisticRegression(max_iter=300)),
    ]
    return X, y, steps


def spoken():
    folder = datasets.FOLDER / "isolet_part"
    frame = pd.read_csv(next(folder.glob("*.gz")), header=None)
    y = frame.pop(frame.columns[-1]).to_numpy()
    return frame.to_numpy(dtype=float), y, scaled()


def wide():
    return *make_classification(6000, 400, n_informative=50, random_state=3), scaled()


def light():
    return *make_classification(100_000, 10, random_state=5), scaled()


def columns():
    X, y = make_classification(100_000, 10, random_state=5)
    both = make_column_transformer(
        (StandardScaler(), list(range(5))), (StandardScaler(), list(range(5, 10)))
    )
    return X, y, [("columns", both), ("classify", LogisticRegression(max_iter=300))]


def scaled():
    return [("scale", StandardScaler()), ("classify", LogisticRegression(max_iter=300))]


PARTS = {
    one.__name__: one
    for one in (adult, flights, reviews, digits, spoken, wide, light, columns)
}


def timed(call):
    """What it gives, with (wall, processor) seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    result = call()
    return result, (time.perf_counter() - wall, time.process_time() - processor)


def one(part, who, repeats, predict, profile):
    """Measures in this process; a line of JSON."""
    kind = Pipeline
    if who == "mlopt":
        import mlopt

        kind = mlopt.Pipeline
    X, y, steps = PARTS[part]()
    made = [kind([(n, clone(step)) for n, step in steps]) for _ in range(1 + repeats)]
    if profile:
        import cProfile

        with cProfile.Profile() as watch:
            made[0].fit(X, y)
        watch.dump_stats(profile)
        return
    times = [timed(lambda model=model: model.fit(X, y))[1] for model in made]
    first, last = made[0], made[-1]
    print(json.dumps({
        "first": times[0],
        "later": times[1:],
        "predict": predictions(first, X) if predict else {},
        "plan": [facts(model.plan_) for model in (first, last)] if who == "mlopt" else None,
        "found": np.asarray(first.predict(X)).tolist(),
    }))  # fmt: skip


def facts(plan):
    """Seconds: predicted, measured, and those of planning; None where nothing is priced."""
    said = re.search(r"planning took ([\d.]+) s", " ".join(plan.notes))
    planning = float(said[1]) if said else None
    return {"predicted": plan.predicted, "measured": plan.measured, "planning": planning}


def predictions(model, X):
    """Seconds of the quickest call, by rows."""
    found = {}
    for rows in PREDICTED:
        some = X[:rows]
        if rows > len(X):
            break
        began, least = time.perf_counter(), float("inf")
        for _ in range(CALLS):
            least = min(least, timed(lambda some=some: model.predict(some))[1][0])
            if time.perf_counter() - began > ENOUGH:
                break
        found[rows] = least
    return found


def asked(part, who, args):
    call = [sys.executable, __file__, "--one", who, "--part", part]
    call += ["--repeats", str(args.repeats), *(["--predict"] if args.predict else [])]
    done = subprocess.run(call, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def report(part, found):
    ours, theirs = found["mlopt"], found["scikit-learn"]
    median = statistics.median
    same = np.mean(np.array(ours[0]["found"]) == np.array(theirs[0]["found"]))
    print(f"{part}: predicted alike {same:.4f}")
    for name, times in (
        ("first", lambda one: [one["first"]]),
        ("later", lambda one: one["later"]),
    ):
        line = f"  {name:6s}"
        for place, unit in enumerate(("wall", "CPU")):
            a, b = (
                median(took[place] for one in who for took in times(one))
                for who in (ours, theirs)
            )
            line += f" {unit} {a:7.3f} s {b:7.3f} s {a / b:5.2f}x  "
        plans = [one["plan"][name == "later"] for one in ours]
        predicted, took, planning = (
            median(plan[key] or 0.0 for plan in plans)
            for key in ("predicted", "measured", "planning")
        )
        if predicted:
            line += f" predicted {predicted:.3f} s ({predicted / took:4.2f}x)"
        print(f"{line} planning {planning:.2f} s ({planning / took:.0%})")
    for rows in ours[0]["predict"]:
        a, b = (median(one["predict"][rows] for one in who) for who in (ours, theirs))
        line = f"  predict {rows:>7s} rows {1e3 * a:8.3f} ms {1e3 * b:8.3f} ms"
        print(f"{line} {a / b:5.2f}x")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", default=",".join(PARTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--predict", action="store_true")
    parser.add_argument("--profile", help="of mlopt's first fit, for `python -m pstats`")
    parser.add_argument("--one", choices=("mlopt", "scikit-learn"), help="in this process")
    args = parser.parse_args()
    if args.one or args.profile:
        who = args.one or "mlopt"
        one(args.part, who, args.repeats, args.predict, args.profile)
        return
    print("mlopt, scikit-learn, ratio of medians")
    for part in args.part.split(","):
        found = {"mlopt": [], "scikit-learn": []}
        for _ in range(args.rounds):
            for who, those in found.items():
                those.append(asked(part, who, args))
        report(part, found)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
