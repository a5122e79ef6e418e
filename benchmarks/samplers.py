"""What passes over ratings and sweeps over tokens take, fitted: lines of the price list.

Ratings and documents are drawn for a grid of sizes and numbers of factors, or topics. Each
is trained for some passes and for more, on one thread of this process; what the others
take, in processor seconds of the quickest of ``--rounds``, is that of the passes alone. Two
prices follow, one for a rating or token and one for each of its factors or topics, from
least squares of relative errors; neither is below zero. Printed are ratios of predicted to
measured seconds, and new lines for "factors.*" and "gibbs.token.*", "gibbs.topic.*".

usage: samplers.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import datetime
import os
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from scipy.optimize import nnls

from mlopt import LatentDirichletAllocation, MatrixFactorization
from mlopt.prices import PRICES

FEW, MORE = 4, 24
"""Passes: what a fit begins and ends with is in both."""
RATINGS, FACTORS = (100_000, 1_000_000), (8, 16, 32, 64)
TOKENS = (100_000, 800_000)
TOPICS = {"dense": (10, 20, 50, 100), "sparse": (50, 100, 200, 400)}


def rated(n):
    """Ratings of a user for each item or two, by a rank of four."""
    random = np.random.default_rng(0)
    pairs = np.unique(random.integers(0, (n // 50, n // 250), (n, 2)), axis=0)
    P, Q = random.normal(size=(n // 50, 4)), random.normal(size=(n // 250, 4))
    values = (P[pairs[:, 0]] * Q[pairs[:, 1]]).sum(axis=1)
    return pairs, values + random.normal(scale=0.1, size=len(pairs))


def drawn(tokens, words=5000, length=200):
    """Counts of documents whose words come from a few of fifty topics."""
    random = np.random.default_rng(0)
    topics = random.dirichlet(np.full(words, 0.05), 50)
    shares = random.dirichlet(np.full(50, 0.1), tokens // length)
    return np.array([random.multinomial(length, share @ topics) for share in shares])


def took(model, data, rounds):
    """Processor seconds of a pass."""
    seconds = []
    for passes in (FEW, MORE):
        each = []
        for _ in range(rounds):
            begin = time.process_time()
            model.set_params(max_iter=passes).fit(*data)
            each.append(time.process_time() - begin)
        seconds.append(min(each))
    return (seconds[1] - seconds[0]) / (MORE - FEW)


def fitted(names, seen):
    """Two prices from numbers of things, of their parts, and seconds."""
    things, parts, seconds = np.array(seen, float).T
    A = np.column_stack([things, things * parts]) / seconds[:, None]
    found, _ = nnls(A, np.ones(len(seen)))
    ratios = A @ found
    print(f"{names[0]}, {names[1]}: predicted by measured {np.round(ratios, 2).tolist()}")
    today = datetime.date.today()
    for name, value in zip(names, found, strict=True):
        old = PRICES[name]
        print(f'{name},{value:.2g},{old.unit},samplers.py,{today},"{old.what}"')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    how = {"layout": "threads", "n_jobs": 1, "random_state": 0}
    seen = []
    for data in map(rated, RATINGS):
        for k in FACTORS:
            seconds = took(MatrixFactorization(k, **how), data, rounds)
            seen.append((len(data[1]), k, seconds))
    fitted(("factors.rating", "factors.factor"), seen)
    corpora = [drawn(tokens) for tokens in TOKENS]
    for sampler, numbers in TOPICS.items():
        seen = []
        for counts in corpora:
            for k in numbers:
                model = LatentDirichletAllocation(k, sampler=sampler, **how)
                seen.append((counts.sum(), k, took(model, [counts], rounds)))
        fitted((f"gibbs.token.{sampler}", f"gibbs.topic.{sampler}"), seen)


if __name__ == "__main__":
    main()
