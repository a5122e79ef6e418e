"""Jobs in each layout that can be had, and the one that is chosen, on two worker processes.

Six jobs: ratings and documents, few and many, through the estimators; steps of a user's
own on a dense model, whose sums of a pass are one step each (lockstep), and on a table of
which each step changes a few rows (asynchronous). This process has one thread for them, and
so has each worker: what a machine with one core for each process would give. All layouts of
a job take turns, and so does "auto", for some rounds; printed are medians of wall seconds,
and of processor seconds of the process that had the most (of both workers, where one waits
for the other: a model in one part that rotates, one worker and one server); then what was
measured and predicted without reading and checking the data, the layout that was chosen,
and how it compares with the least.

With ``--prices`` what members cost is measured instead: new lines of the price list.

usage: layouts.py [--rounds 5] [--only NAME ...] [--prices]
"""

from __future__ import annotations

import argparse
import datetime
import os
import statistics
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import cloudpickle
import numpy as np
from rotate_topics import drawn

from mlopt import LatentDirichletAllocation, MatrixFactorization
from mlopt.cluster import MeshDask, MeshHere, executor, local_cluster
from mlopt.errors import InputError
from mlopt.prices import PRICES
from mlopt.server import Job
from mlopt.server.layouts.rotate import Rotate
from mlopt.server.layouts.rounds import Rounds
from mlopt.server.layouts.servers import Servers
from mlopt.server.program import Program, Step

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def rated(count):
    """Pairs and ratings of popular items."""
    users, items = max(1000, count // 145), max(500, count // 740)
    rng = np.random.default_rng(0)
    X = np.c_[rng.integers(users, size=count), (items * rng.random(count) ** 2).astype(int)]
    return X, (3.5 + rng.standard_normal(count)).astype(np.float32)


@dataclass
class Ratings:
    """Passes of SGD."""

    count: int
    passes: int
    layouts: tuple = ("threads", "rotate")

    def __post_init__(self):
        self.data = rated(self.count)

    def run(self, layout, client):
        model = MatrixFactorization(
            16, layout=layout, max_iter=self.passes, duplicates="last", random_state=0,
            n_jobs=1,
        ).fit(*self.data)  # fmt: skip
        return model.plan_


@dataclass
class Topics:
    """Sweeps over tokens."""

    tokens: int
    topics: int
    sweeps: int
    layouts: tuple = ("threads", "rotate")

    def __post_init__(self):
        self.data = drawn(self.tokens, max(1000, self.tokens // 400))

    def run(self, layout, client):
        return (
            LatentDirichletAllocation(
                self.topics, layout=layout, max_iter=self.sweeps, random_state=0, n_jobs=1
            )
            .fit(self.data)
            .plan_
        )


def softmax(block, W):
    """A step of multinomial regression, by all rows of a block."""
    scores = block.X @ W
    scores -= scores.max(axis=1, keepdims=True)
    shares = np.exp(scores)
    shares /= shares.sum(axis=1, keepdims=True)
    shares[np.arange(len(shares)), block.extra["y"].astype(int)] -= 1
    return -1e-6 * block.X.T @ shares


@dataclass
class Dense:
    """Gradient steps on a model of few weights."""

    rows: int
    columns: int
    classes: int
    passes: int
    layouts: tuple = ("threads", "rounds", "rotate", "servers")

    def __post_init__(self):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(self.rows, self.columns))
        self.y = rng.integers(self.classes, size=self.rows).astype(float)

    def run(self, layout, client):
        W = np.zeros((self.columns, self.classes))
        cuts = np.array_split(np.arange(self.rows), 8)
        blocks = [Rowed(self.X[cut], {"y": self.y[cut]}) for cut in cuts]
        job = Job(
            softmax, W, blocks, layout=layout, mode="lockstep", passes=self.passes,
            where=client, n_jobs=1,
        )  # fmt: skip
        job.run()
        return job.plan_


@dataclass
class Rowed:
    """A block."""

    X: Any
    extra: dict


def counted(block, table):
    """Adds to the rows that a block names."""
    out = np.zeros_like(table)
    keys, values = block
    for _ in range(20):
        np.add.at(out, keys, 0.05 * np.tanh(values + table[keys]))
    return out


@dataclass
class Sparse:
    """A table of which each step changes some rows."""

    keys: int
    touched: int
    passes: int
    layouts: tuple = ("threads", "rotate", "servers")

    def __post_init__(self):
        rng = np.random.default_rng(0)
        values = (16, self.touched, 8)
        self.blocks = [*zip(
            rng.integers(self.keys, size=(16, self.touched)),
            rng.normal(size=values).astype(np.float32), strict=True,
        )]  # fmt: skip

    def run(self, layout, client):
        table = np.zeros((self.keys, 8), np.float32)
        job = Job(
            counted, table, self.blocks, layout=layout, mode="async", passes=self.passes,
            where=client, n_jobs=1,
        )  # fmt: skip
        job.run()
        return job.plan_


JOBS = {
    "ratings, few": (Ratings, 300_000, 20),
    "ratings, many": (Ratings, 4_000_000, 100),
    "topics, few": (Topics, 200_000, 20, 50),
    "topics, many": (Topics, 3_000_000, 20, 30),
    "dense steps": (Dense, 40_000, 200, 200, 40),
    "sparse steps": (Sparse, 64_000, 5_000, 10),
}


def measured(job, layout, client):
    """Wall seconds, processor seconds of the busiest process, and the plan."""
    before, here = client.run(time.process_time), time.process_time()
    began = time.perf_counter()
    plan = job.run(layout, client)
    wall, here = time.perf_counter() - began, time.process_time() - here
    after = client.run(time.process_time)
    there = [after[one] - before[one] for one in after]
    waits = plan.choices[0].chosen in ("rotate", "servers")
    one_after_other = waits and isinstance(job, Dense | Sparse)
    busiest = max(here, sum(there) if one_after_other else max(there))
    return wall, busiest, plan.choices[0].measured, plan


def compared(name, job, client, rounds):
    """Rows of the table."""
    found = {layout: [] for layout in (*job.layouts, "auto")}
    refused = {}
    for number in range(rounds + 1):
        for layout in list(found):
            try:
                taken = measured(job, layout, client)
            except InputError as error:
                refused[layout] = str(error)
                del found[layout]
                continue
            if number:  # the first compiles, and begins
                found[layout].append(taken)
    medians = {
        layout: [statistics.median(column) for column in list(zip(*taken, strict=True))[:3]]
        for layout, taken in found.items()
    }
    plans = [taken[-1] for taken in found["auto"]]
    (choice,) = plans[-1].choices
    print(f"\n{name}: {choice.operator}")
    print("  layout      wall s   busiest CPU s   layout: measured s   predicted s")
    foreseen = {one.name: one.seconds for one in choice.rejected}
    foreseen |= {choice.chosen: choice.predicted, "auto": choice.predicted}
    for layout, (wall, cpu, own) in medians.items():
        said = f"{foreseen[layout]:.2f}" if foreseen.get(layout) else ""
        print(f"  {layout:10s} {wall:7.2f} {cpu:15.2f} {own:20.2f} {said:>13s}")
    picked = sorted({plan.choices[0].chosen for plan in plans})
    print(f"  auto chose {', '.join(picked)}, {', '.join(choice.notes)}")
    for at, what in enumerate(("wall", "CPU")):
        best = min(
            (one for one in medians if one != "auto"), key=lambda one: medians[one][at]
        )
        ratio = medians["auto"][at] / medians[best][at]
        print(f"  least {what}: {best}; auto {ratio:.2f}x that")
    for layout, why in refused.items():
        print(f"  {layout}: {why}")
    sys.stdout.flush()


class Nothing(Step):
    """Changes all, which takes hardly any time."""

    def visit(self, cell, part, state, passes):
        part["w"] += 1
        return 0.0


def empty(side, size):
    """A job whose steps are nothing."""
    parts = [{"w": np.zeros(size, np.uint8)} for _ in range(side)]
    return Program(Nothing(), parts, [[0] * side for _ in range(side)])


def a_pass(layout, passes, rounds, seconds):
    """Wall seconds of a pass, and processor seconds of the busiest."""
    layout.advance(2)
    found = []
    for _ in range(rounds):
        before, began = seconds(), time.perf_counter()
        layout.advance(passes)
        wall = time.perf_counter() - began
        cpu = [(b - a) / passes for a, b in zip(before, seconds(), strict=True)]
        found.append((wall / passes, max(cpu)))
    return [statistics.median(column) for column in zip(*found, strict=True)]


def priced(rounds):
    """By name, what members cost."""
    side, found = 16, {}

    def here():
        return [time.process_time()]

    with MeshHere(1) as mesh, Rotate(empty(side, 8), mesh, threads=1) as layout:
        took = a_pass(layout, 20, rounds, here)
        found["layout.step"] = took[1] / side**2
    with local_cluster(2) as client:

        def seconds():
            return list(client.run(time.process_time).values())

        def everyone():
            return [sum(seconds())]

        begun = []
        for _ in range(rounds + 1):
            began = time.perf_counter()
            with MeshDask(client) as mesh, Rotate(empty(4, 8), mesh) as layout:
                layout.advance(1)
                layout.model()
            begun.append(time.perf_counter() - began)
        found["layout.begin"] = statistics.median(begun[1:])
        sizes = {8: 0.0, 1 << 20: 0.0}
        for size in sizes:
            with MeshDask(client) as mesh, Rotate(empty(side, size), mesh) as layout:
                sizes[size] = a_pass(layout, 20, rounds, seconds)[1]
        steps = side**2 / 2 * found["layout.step"]
        found["layout.handed"] = (sizes[8] - steps) / side
        found["layout.byte"] = (sizes[1 << 20] - sizes[8]) / side / 2**20
        for size in sizes:
            with MeshDask(client) as mesh, Servers(empty(side, size), mesh) as layout:
                sizes[size] = a_pass(layout, 2, rounds, seconds)[1] / side**2
        found["layout.pull"] = sizes[8]
        found["layout.pulled"] = (sizes[1 << 20] - sizes[8]) / 2**20
        calls, tasks = {2: 0.0, 16: 0.0}, 0.0
        for strata in calls:
            program = replace(empty(1, 8), cells=[[0]] * strata)
            layout = Rounds(program, executor(client))
            calls[strata] = a_pass(layout, 10, rounds, here)[1]
            tasks = a_pass(layout, 10, rounds, everyone)[1] / strata
        found["layout.call"] = (calls[16] - calls[2]) / 14
        found["layout.task"] = tasks
        found["layout.round"] = calls[2] - 2 * found["layout.call"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=list(JOBS))
    parser.add_argument("--prices", action="store_true")
    given = parser.parse_args()
    if given.prices:
        today = datetime.date.today()
        for name, value in priced(given.rounds).items():
            old = PRICES[name]
            print(f'{name},{value:.2g},{old.unit},layouts.py,{today},"{old.what}"')
        return
    with local_cluster(2) as client:
        for name in given.only:
            kind, *sizes = JOBS[name]
            compared(name, kind(*sizes), client, given.rounds)


if __name__ == "__main__":
    main()
