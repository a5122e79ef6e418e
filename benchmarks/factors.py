"""Matrix factorization on one core, also beside scikit-surprise and implicit.

On MovieLens's small set (100,836 ratings, a tenth held out) and on a drawn one. With
``--peers`` their Python, of an environment with benchmarks/factors.txt. Processor seconds,
on one thread, medians of ``--rounds``; peers and ours in turn.

Printed, too, are the prices "growth.again.factors" and "growth.judged.factors".

usage: factors.py [--peers PYTHON] [--rounds 5] [--sets movielens drawn] [--data FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day

import numpy as np
import pandas as pd

import mlopt
from mlopt.factors.model import Factors
from mlopt.factors.recommending import mean_rank

DATA = Path(os.environ.get("MLOPT_DATA", Path(__file__).parents[2] / "shared/data"))
PEER = Path(__file__).with_name("peer_factors.py")
PENALTY = 30.0  # of 10, 30, 100 and 200 both rank MovieLens's items best with this one


def movielens(folder):
    """Users, items and ratings, from 0 on; of training and of test."""
    table = pd.read_csv(folder / "ml_latest_small/ratings.csv.gz")
    u = np.unique(table.userId, return_inverse=True)[1]
    i = np.unique(table.movieId, return_inverse=True)[1]
    return split(u, i, table.rating.to_numpy())


def drawn(users=20_000, items=5_000, n=2_000_000):
    """Ratings of 8 factors and noise of a half; some items are rated far more often."""
    random = np.random.default_rng(0)
    u, i = random.integers(users, size=n), (items * random.random(n) ** 2).astype(int)
    keys = np.unique(u * items + i)
    u, i = np.divmod(random.permutation(keys), items)
    P, Q = random.normal(0, 0.5, (users, 8)), random.normal(0, 0.5, (items, 8))
    r = 3.5 + (P[u] * Q[i]).sum(axis=1) + random.normal(0, 0.5, len(u))
    return split(u, i, r)


def split(u, i, r):
    """A tenth held out; train and test, each (pairs, ratings)."""
    held = np.random.default_rng(0).random(len(r)) < 0.1
    pairs = np.column_stack([u, i])
    return (pairs[~held], r[~held]), (pairs[held], r[held])


def took(call):
    """Processor seconds of a call, and what it gives."""
    begin = time.process_time()
    value = call()
    return time.process_time() - begin, value


def median(call, rounds):
    """The median of processor seconds."""
    return statistics.median(took(call)[0] for _ in range(rounds))


def rmse(model, test):
    """On held-out ratings."""
    return float(np.sqrt(np.mean((model.predict(test[0]) - test[1]) ** 2)))


def speed(name, train, rounds):
    """Ratings a second of the passes alone, and what a look costs in passes."""
    for k in (8, 16, 64):
        make = mlopt.MatrixFactorization(k, random_state=0, n_jobs=1, learning_rate=0.01)
        one = median(lambda m=make: m.set_params(max_iter=1).fit(*train), rounds)
        many = median(lambda m=make: m.set_params(max_iter=41).fit(*train), rounds)
        each = (many - one) / 40
        predicted = median(lambda m=make: m.predict(train[0]), rounds)
        print(
            f"{name}, k={k}: {len(train[1]) / each / 1e6:.0f} M ratings/s; a look costs "
            f"{(one - each) / each:.0f} passes, predicting as many {predicted / each:.0f}"
        )


def peer(python, which, data, *arguments):
    """JSON lines of a peer."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, **data)
        command = [python, str(PEER), which, str(path), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        for line in lines:
            if "file" in line:
                line["factors"] = dict(np.load(line["file"]))
        return lines


def arrays(train, test):
    """What a peer reads."""
    pairs = np.concatenate([train[0], test[0]])
    return {
        "u": train[0][:, 0], "i": train[0][:, 1], "r": train[1],
        "tu": test[0][:, 0], "ti": test[0][:, 1], "tr": test[1],
        "shape": pairs.max(axis=0) + 1,
    }  # fmt: skip


def beside_surprise(name, train, test, python, rounds, settings):
    """Seconds to the best error of surprise; ours with as many factors."""
    rate, penalty, epochs, ours = settings
    theirs = [peer(python, "surprise", arrays(train, test), 16, rate, penalty, *epochs)
              for _ in range(min(rounds, 3))]  # fmt: skip
    goal = min(line["rmse"] for line in theirs[0])
    at = [line["rmse"] for line in theirs[0]].index(goal)
    seconds = statistics.median(run[at]["seconds"] for run in theirs)
    for passes in range(1, 100):
        model = mlopt.MatrixFactorization(16, random_state=0, n_jobs=1, **ours)
        model.set_params(max_iter=passes).fit(*train)
        if rmse(model, test) <= goal:
            break
    mine = median(lambda: model.fit(*train), rounds)
    print(
        f"{name}: surprise SVD k=16 {epochs[at]} epochs {seconds:.3f} s, RMSE {goal:.4f}; "
        f"ours {passes} passes {mine:.4f} s, RMSE {rmse(model, test):.4f}: "
        f"{seconds / mine:.0f}x, ids and shelves included"
    )


def beside_implicit(name, train, test, python, rounds, penalty):
    """Seconds until held-out items stand as well as in the worse of the two best models.

    The same objective, number of passes and seeds; medians over the seeds.
    """
    for k in (16, 64):
        theirs, ours = {}, {}
        for passes in (1, 2, 3, 5, 8, 15, 25):
            pairs = []
            for seed in range(rounds):
                settings = k, penalty, passes, seed
                run = peer(python, "implicit", arrays(train, test), *settings)[0]
                model = mlopt.MatrixFactorization(
                    k, implicit=True, alpha=penalty, max_iter=passes, random_state=seed
                )
                mine = took(lambda m=model: m.fit(*train))[0]
                score = score_of(run["factors"], model, test)
                pairs.append((run["seconds"], score, mine, model.score(*test)))
            middle = np.median(pairs, axis=0)
            theirs[passes], ours[passes] = middle[:2], middle[2:]
        goal = min(max(score for _, score in one.values()) for one in (theirs, ours))
        their_passes, our_passes = (
            next(passes for passes, (_, score) in one.items() if score >= goal)
            for one in (theirs, ours)
        )
        (seconds, score), (mine, own) = theirs[their_passes], ours[our_passes]
        print(
            f"{name}, counts, k={k}, to {goal:.4f}: implicit {their_passes} passes "
            f"{seconds:.3f} s, score {score:.4f}; ours {our_passes} passes {mine:.3f} s, "
            f"score {own:.4f}: {seconds / mine:.1f}x; "
            f"15 passes {theirs[15][0] / ours[15][0]:.1f}x"
        )


def score_of(factors, model, test):
    """What a peer's factors would score in place of the model's own."""
    users, items = (
        np.searchsorted(labels, column)
        for labels, column in zip((model.users_, model.items_), test[0].T, strict=True)
    )
    known = np.isin(test[0][:, 0], model.users_) & np.isin(test[0][:, 1], model.items_)
    P, Q = factors["P"][model.users_], factors["Q"][model.items_]
    zeros = np.zeros(len(P), np.float32), np.zeros(len(Q), np.float32)
    triple = users[known], items[known], test[1][known]
    return 1 - mean_rank(Factors(P, Q, *zeros, 0.0), *triple, model._seen)


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sets", nargs="+", default=["movielens", "drawn"])
    parser.add_argument("--data", type=Path, default=DATA)
    arguments = parser.parse_args()
    make = {"movielens": lambda: movielens(arguments.data), "drawn": drawn}
    # Of rates .01 to .08 and penalties .05 and .1, surprise has its least error with these.
    settings = {
        "movielens": (
            0.01,
            0.1,
            (10, 20, 40),
            {"alpha": 0.08, "learning_rate": 0.05, "decay": 0.9},
        ),
        "drawn": (0.01, 0.05, (10, 20), {"alpha": 0.05, "learning_rate": 0.04}),
    }
    for name in arguments.sets:
        train, test = make[name]()
        speed(name, train, arguments.rounds)
        if arguments.peers:
            rounds = arguments.rounds if name == "movielens" else 1
            beside_surprise(name, train, test, arguments.peers, rounds, settings[name])
            counts = (train[0], np.maximum(train[1], 0)), (test[0], np.maximum(test[1], 0))
            beside_implicit(name, *counts, arguments.peers, rounds, PENALTY)


if __name__ == "__main__":
    main()
