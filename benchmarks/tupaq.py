"""TuPAQ's own experiment: what the bandit saves (section 4.3 and Algorithm 3).

625 random configurations of four hyperparameters on small binary sets: step size in
(1e-3, 1e1), L2 in (1e-4, 1e2), random features in (1 d, 10 d) with a scale in (1e-4, 1e2),
all log-uniform; full training is 100 passes, the first look comes after 10, models whose
error is more than 50% above the best are given up. Asked: at least 75%
fewer passes, at most one point more error than training everything to the end.

With --samplers the methods that propose are compared instead (section 4.1): the error of
the best of 32 configurations of step size and L2, all trained to their end, the median of
three seeds; and what a proposal takes in Python, which the prices "search.*" say.

usage: tupaq.py [--trials 625] [--sets breast,german] [--samplers]
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
import warnings
from pathlib import Path

import numpy as np
from optuna.distributions import FloatDistribution
from sklearn.datasets import load_breast_cancer, load_digits, load_svmlight_file
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import StratifiedShuffleSplit, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.tuning.bandits import ActionElimination
from mlopt.tuning.samplers.proposer import Proposer
from mlopt.tuning.samplers.samplers import SAMPLERS
from mlopt.tuning.space.space import Space

FOLDER = Path(os.environ.get("MLOPT_DATA", Path(__file__).parents[2] / "shared/data"))
warnings.filterwarnings("ignore")


def german():
    with gzip.open(FOLDER / "german_credit/german.data.gz", "rt") as file:
        rows = [line.split() for line in file]
    columns = list(zip(*rows, strict=True))
    coded = [
        np.unique(c, return_inverse=True)[1] if c[0][0] == "A" else np.array(c, float)
        for c in columns[:-1]
    ]
    return np.column_stack(coded).astype(float), np.array(columns[-1]) == "2"


def spambase():
    with gzip.open(FOLDER / "spambase/spambase.data.gz") as file:
        table = np.loadtxt(file, delimiter=",")
    table = np.random.default_rng(0).permutation(table)[:2000]
    return table[:, :-1], table[:, -1] == 1


def agaricus():
    X, y = load_svmlight_file(str(FOLDER / "agaricus/agaricus.txt.train.gz"))
    return X[:2000].toarray(), y[:2000] == 1


def digits():
    X, y = load_digits(return_X_y=True)
    return X, y % 2 == 1


def breast():
    return load_breast_cancer(return_X_y=True)


def income():
    X, y = load_svmlight_file(str(FOLDER / "a9a/a9a.gz"))
    return X[:2000].toarray(), y[:2000] == 1


SETS = {
    "breast": breast,
    "spambase": spambase,
    "digits": digits,
    "agaricus": agaricus,
    "a9a": income,
    "german": german,
}
"""german is one more than the paper's five, and the hard case: 1.5 times its best error of
24% is above the 30% of always saying "good", so that the rule gives hardly anybody up."""
SPACE = {
    "eta0": FloatDistribution(1e-3, 1e1, log=True),
    "alpha": FloatDistribution(1e-4, 1e2, log=True),
    "randomfeatures__n_components": FloatDistribution(1.0, 10.0, log=True),
    "randomfeatures__gamma": FloatDistribution(1e-4, 1e2, log=True),
}


def search(X, y, bandit, n_trials):
    """(seconds, fitted search)."""
    model = make_pipeline(
        StandardScaler(),
        mlopt.RandomFeatures(random_state=0),
        SGDClassifier(
            "log_loss", learning_rate="constant", eta0=0.1, max_iter=100, tol=None
        ),
    )
    start = time.perf_counter()
    found = mlopt.ModelSearchCV(
        model,
        SPACE,
        n_trials=n_trials,
        sampler="random",
        bandit=bandit,
        max_passes=100,
        cv=StratifiedShuffleSplit(1, test_size=0.5, random_state=0),
    ).fit(X, y)
    return time.perf_counter() - start, found


def proposed(sampler, seed, trials, score):
    """The best score of so many trials, one after the other, and seconds of proposals."""
    space = {name: SPACE[name] for name in ("eta0", "alpha")}
    proposer, spent, best = Proposer(Space.of(space), sampler, seed=seed), 0.0, -np.inf
    for _ in range(trials):
        start = time.process_time()
        (one,) = proposer.ask(1)
        spent += time.process_time() - start
        found = score(one.params)
        best = max(best, found)
        start = time.process_time()
        proposer.tell(one.number, found)
        spent += time.process_time() - start
    return best, spent


def compare_samplers(sets, trials=32, seeds=3):
    """Errors of the best, by data and method, and seconds a trial."""
    print(f"errors of the best of {trials}, median of {seeds} seeds; ms a trial in Python")
    for name in sets:
        X, y = SETS[name]()
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
        model = SGDClassifier("log_loss", learning_rate="constant", max_iter=10, tol=None)

        def score(params, rows=(X, y), others=(X_test, y_test), model=model):
            model.set_params(random_state=0, **params)
            return model.fit(*rows).score(*others)

        told = []
        for sampler in SAMPLERS:
            runs = [proposed(sampler, seed, trials, score) for seed in range(seeds)]
            best = 1 - np.median([score for score, _ in runs])
            each = np.median([seconds for _, seconds in runs]) / trials
            told.append(f"{sampler} {best:.4f} ({1000 * each:.1f})")
        print(f"{name:12s} {'  '.join(told)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=625)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--samplers", action="store_true")
    options = parser.parse_args()
    if options.samplers:
        compare_samplers(options.sets.split(","))
        return
    bandit = ActionElimination(eps=0.5, first=10, every=10)
    print(f"{options.trials} configurations, 100 passes, first look after 10")
    print(
        "set          passes: all  with bandit   fewer  error: all  with bandit  test error"
    )
    for name in options.sets.split(","):
        X, y = SETS[name]()
        X, X_test, y, y_test = train_test_split(
            X, y, test_size=0.2, random_state=0, stratify=y
        )
        slow_seconds, everything = search(X, y, None, options.trials)
        seconds, pruned = search(X, y, bandit, options.trials)
        fewer = 1 - pruned.passes_ / everything.passes_
        test = [1 - s.score(X_test, y_test) for s in (everything, pruned)]
        print(
            f"{name:12s} {everything.passes_:11d} {pruned.passes_:12d} {fewer:8.1%}"
            f" {1 - everything.best_score_:11.4f} {1 - pruned.best_score_:12.4f}"
            f"   {test[0]:.4f} {test[1]:.4f}   {slow_seconds:.0f} s -> {seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
