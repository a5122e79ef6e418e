"""Matrix factorization on one worker process and on two, whose blocks of items go round.

Ratings are generated: users at random, popular items, eight factors and noise. Rounds of
some passes on one worker, on two, and on one thread of this process
follow each other. Printed are medians over rounds, a pass: wall seconds, processor seconds
of the worker that had the most (what a machine with a core for each would need at least),
and of both; then how often parts were waited for, and whether all three have the same
factors to the bit.

usage: rotate.py [--ratings 20e6] [--passes 10] [--rounds 7]
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np

from mlopt.cluster import MeshDask, MeshHere, local_cluster
from mlopt.factors.model import Factors, drawn
from mlopt.factors.ratings import ratings_of
from mlopt.factors.sgd import Rule, SGDTraining
from mlopt.server.layouts.rotate import Rotate

RULE = Rule(penalty=0.02, rate=0.03, decay=0.95, biased=True, nonnegative=False)


def generated(count):
    """Ratings of the shape of MovieLens 20M, at any size."""
    users, items = max(1000, count // 145), max(500, count // 740)
    rng = np.random.default_rng(0)
    pairs = np.c_[rng.integers(users, size=count), items * rng.random(count) ** 2]
    pairs = pairs.astype(np.int32)
    P, Q = (0.35 * rng.standard_normal((n, 8)) for n in (users, items))
    values = np.einsum("ij,ij->i", P[pairs[:, 0]], Q[pairs[:, 1]])
    values += 3.5 + 0.3 * rng.standard_normal(count)
    return ratings_of(pairs, values.astype(np.float32), "last")


def measured(advance, passes, seconds):
    """A round: wall seconds a pass, and processor seconds of each process."""
    before, began = seconds(), time.perf_counter()
    advance(passes)
    wall = time.perf_counter() - began
    return wall / passes, [(b - a) / passes for a, b in zip(before, seconds(), strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ratings", type=float, default=20e6)
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    ratings = generated(int(given.ratings))
    P, Q = drawn(ratings.shape, 16, 0.0, 0, False)
    b, c = (np.zeros(count, np.float32) for count in ratings.shape)
    start = Factors(P, Q, b, c, float(ratings.values.mean()))
    print(
        f"{len(ratings.values)} ratings of {ratings.shape[0]} users and "
        f"{ratings.shape[1]} items"
    )
    with (
        local_cluster(2) as client,
        MeshDask(client) as first,
        MeshDask(client) as second,
        MeshHere(1) as alone_here,
    ):

        def seconds():
            return list(client.run(time.process_time).values())

        common = {"seed": 0, "passes": 0}
        here = SGDTraining(ratings, start, RULE, **common, mesh=alone_here, threads=1)
        two = SGDTraining(ratings, start, RULE, **common, mesh=second)
        one = Rotate(two.layout.program, first, members=1)
        ways = {
            "one thread here": (here.advance, lambda: [time.process_time()]),
            "one worker": (one.advance, seconds),
            "two workers": (two.layout.advance, seconds),
        }
        found = {name: [] for name in ways}
        for advance, _ in ways.values():
            advance(1)  # compiles
        for _ in range(given.rounds):
            for name, (advance, clock) in ways.items():
                found[name].append(measured(advance, given.passes, clock))
        waited = [
            f"{100 * d.waited / (d.compute + d.waited):.0f}%" for d in two.layout.done
        ]
        same = here.factors(), two.factors()
        parts, _ = one.model()
        alone = np.concatenate([part["Q"] for part in parts])
        one.close()
        two.close()
        here.close()
    print("seconds a pass         wall    CPU, busiest    CPU, all")
    medians = {}
    for name, rounds in found.items():
        wall = statistics.median(wall for wall, _ in rounds)
        busiest = statistics.median(max(cpu) for _, cpu in rounds)
        total = statistics.median(sum(cpu) for _, cpu in rounds)
        medians[name] = wall, busiest
        print(f"  {name:18s} {wall:.4f}  {busiest:14.4f}  {total:10.4f}")
    one_by_two = [
        a / b for a, b in zip(medians["one worker"], medians["two workers"], strict=True)
    ]
    walls = sorted(
        a[0] / b[0] for a, b in zip(found["one worker"], found["two workers"], strict=True)
    )
    print(
        f"one worker : two workers, wall {one_by_two[0]:.2f}x (rounds {walls[0]:.2f}x to "
        f"{walls[-1]:.2f}x), CPU of the busiest {one_by_two[1]:.2f}x"
    )
    print(f"of the two workers' time went into waiting for parts: {', '.join(waited)}")
    to_the_bit = all(
        np.array_equal(getattr(same[0], k), getattr(same[1], k))
        for k in ("P", "Q", "b", "c")
    )
    places = two.grid.items.place
    to_the_bit &= np.array_equal(alone[places][:, :16], same[0].Q)
    print(f"the same to the bit: {to_the_bit}")


if __name__ == "__main__":
    main()
