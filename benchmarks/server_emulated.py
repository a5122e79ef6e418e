"""Jobs on servers that configure themselves, from the bad starts of Cruise's table III.

First in simulated time, with the paper's 32 machines; then emulated in real time: members
are threads of this process, steps sleep, links are token buckets. All else is what runs on
workers: store, reports, controller, moves. The ratios of pull to compute seconds are those
of the paper's jobs (table I). Printed, for each start:

* where the job begins, where it ends, the best split of a grid search, and how near the job
  ends to it (seconds of an epoch at the best, by seconds of an epoch at the end), beside
  the paper's; and in how many changes;
* what a job does that begins near its best: nothing;
* epochs of a job that four members join, of whose workers one is killed and two leave;
  and its sum of updates, which is exact: each step adds 1 to all of the model.

usage: server_emulated.py [--members 12] [--mode async] [--seconds 6]
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import os
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np

from mlopt.cluster import MeshHere
from mlopt.events import Reconfigured
from mlopt.server.autoconfig import Configuration
from mlopt.server.elastic import Policy
from mlopt.server.layouts.servers import Servers
from mlopt.server.model import Kind, Work
from mlopt.server.program import Adds, Program

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.server.rehearsal import Rehearsal, epoch_seconds

PAPER = [  # app, pull by compute seconds, start, choice, optimum, relative performance
    ("NMF", 0.153, (27, 5), (24, 8), (23, 9), "98.8%"),
    ("NMF", 0.153, (18, 14), (22, 10), (23, 9), "93.9%"),
    ("MLR", 0.034, (18, 14), (26, 6), (27, 5), "97.8%"),
    ("MLR", 0.034, (23, 9), (26, 6), (27, 5), "97.8%"),
    ("LDA", 0.605, (27, 5), (18, 14), (18, 14), "100%"),
    ("LDA", 0.605, (23, 9), (18, 14), (18, 14), "100%"),
]
LINK = 1e8
COMPUTE = 0.15  # seconds of a step
STRATA, BLOCKS = 120, 24
POLICY = Policy(interval=0.5, settle=1.5)


def simulated(mode):
    """The paper's machines, in simulated time."""
    print(f"simulated, 32 machines, {mode}:")
    names = [f"m{number}" for number in range(32)]
    pool = {name: Kind(1.0, LINK) for name in names}
    for app, ratio, start, *paper in PAPER:
        work = Work(ratio * LINK, 200, mode=mode, noise=0.05)

        def split(workers):
            return Configuration.even(names[:workers], names[workers:])

        job = Rehearsal(pool, work, split(start[0]), seed=start[0])
        for _ in range(6):
            last = job.epoch()
        grid = {w: epoch_seconds(pool, split(w), work) for w in range(1, 32)}
        best = min(grid, key=grid.get)
        now = len(last.configuration.workers), len(last.configuration.servers)
        seconds = epoch_seconds(pool, last.configuration, work)
        row(app, start, now, (best, 32 - best), grid[best] / seconds,
            grid[start[0]] / seconds, len(job.controller.history),
            "   paper: {}, best {}, {}".format(*paper))  # fmt: skip


def row(app, start, now, best, near, gain, changes, beside):
    print(f"  {app} {start!s:9} -> {now!s:9} best {best!s:9} {near:6.1%} of it; epochs "
          f"{gain:.2f}x shorter, {changes} changes{beside}")  # fmt: skip


class Bucket:
    """A link: tokens come at a rate; those of a millisecond are kept."""

    kept = 0.001

    def __init__(self, rate):
        self.rate, self.free, self.lock = rate, 0.0, threading.Lock()

    def take(self, nbytes, begins=0.0):
        """When the first byte is through, which does not begin before, and the last."""
        with self.lock:
            first = max(time.perf_counter() - self.kept, self.free, begins)
            self.free = first + nbytes / self.rate
            return first, self.free


class Linked(MeshHere):
    """Members in this process, each behind a link."""

    def __init__(self, members, rate):
        self.links, self.rate = {}, rate
        super().__init__(members)

    def add(self):
        member = super().add()
        self.links[member] = Bucket(self.rate)
        local = self.local(member)
        local.reach = functools.partial(self.through, member, local.reach)
        return member

    def through(self, asker, reach, member, asked, into):
        answer = reach(member, asked, into)
        if asked.operation == "get" and asker != member:  # pushes do not wait
            nbytes = sum(array.nbytes for array in answer[1])
            # What has left the one is on the other already, as packets are.
            first, left = self.links[member].take(nbytes)
            _, there = self.links[asker].take(nbytes, first)
            time.sleep(max(0.0, max(left, there) - time.perf_counter()))
        return answer


class Enough(Exception):
    """It was measured."""


class Job:
    """A job under way in a thread of its own; each step adds 1 everywhere."""

    def __init__(self, ratio, members, servers, mode, policy=None, passes=10_000):
        # Arrays of different lengths: a block each.
        model = {f"w{at}": np.zeros(100 + at, np.int64) for at in range(BLOCKS)}
        size = sum(array.nbytes for array in model.values())
        self.began, self.changes, self.ended = [], [], False
        self.mesh = Linked(members, size / (ratio * COMPUTE))
        program = Program(Adds(self.step, False), [model], [[a] for a in range(STRATA)])
        self.passes = passes
        self.layout = Servers(program, self.mesh, mode=mode, servers=servers, policy=policy,
                              observer=self.told, every=None)  # fmt: skip
        self.thread = threading.Thread(target=self.go, daemon=True)
        self.thread.start()

    def step(self, stratum, model):
        if self.ended:
            raise Enough
        self.began.append(time.perf_counter())
        time.sleep(COMPUTE)
        return {name: np.ones_like(array) for name, array in model.items()}

    def told(self, event):
        if isinstance(event, Reconfigured):
            self.changes.append((time.perf_counter(), event))

    def go(self):
        with suppress(Enough):
            self.layout.advance(self.passes)

    def epoch(self, seconds):
        """Seconds of an epoch, from the steps of the seconds that come."""
        first = len(self.began)
        time.sleep(seconds)
        steps = sorted(self.began[first:])
        return STRATA * (steps[-1] - steps[0]) / (len(steps) - 1)

    def settle(self):
        """Wait until nothing is changed for some seconds."""
        quiet = 0.0
        while quiet < 5:
            time.sleep(0.25)
            busy = self.layout.adapting.controller.state == "OPTIMIZE"
            quiet = 0.0 if busy else quiet + 0.25

    def split(self):
        servers = self.layout.servers()
        return len({*self.layout.homes.values()} - servers), len(servers)

    def close(self):
        self.ended = True
        self.thread.join()
        time.sleep(2 * COMPUTE)  # until all have had their last step
        self.layout.close()
        self.mesh.close()


@contextmanager
def running(*args, **options):
    job = Job(*args, **options)
    try:
        yield job
    finally:
        job.close()


def fixed(ratio, n, workers, mode, seconds):
    with running(ratio, n, n - workers, mode) as job:
        time.sleep(1)
        return job.epoch(seconds)


def emulated(n, mode, seconds):
    """The same starts, scaled to fewer members, in real time."""
    print(f"emulated, {n} members, {mode}; of two looks the shorter:")
    for app, cases in itertools.groupby(PAPER, key=lambda case: case[0]):
        cases = [*cases]
        ratio, ended = cases[0][1], []
        grid = {w: fixed(ratio, n, w, mode, seconds) for w in range(n // 2, n)}
        for _, _, (workers, _), *_ in cases:
            start = round(workers * n / 32)
            ended.append((start, *configured(ratio, n, start, mode, seconds)))
        for w in [w for w, found in grid.items() if found < 1.15 * min(grid.values())]:
            grid[w] = min(grid[w], fixed(ratio, n, w, mode, seconds))
        print(f"  {app}, seconds of an epoch by workers: " + ", ".join(
            f"{w}: {found:.3f}" for w, found in grid.items()))  # fmt: skip
        best = min(grid, key=grid.get)
        for start, last, now, changes in ended:
            # Of its own seconds too: the machine may have had other work meanwhile.
            there = grid[best] / grid.get(now[0], math.inf)
            row(app, (start, n - start), now, (best, n - best), there, grid[start] / last,
                changes, f"   by its own seconds {grid[best] / last:.1%}")  # fmt: skip
        _, _, changes = configured(ratio, n, best, mode, seconds)
        print(f"  {app} from its best: {changes} changes", flush=True)


def configured(ratio, n, start, mode, seconds):
    """Where a job ends: seconds of an epoch, the split, and how often it was changed."""
    with running(ratio, n, n - start, mode, POLICY) as job:
        job.settle()
        last = min(job.epoch(seconds), job.epoch(seconds))
        return last, job.split(), len(job.changes)


def elastic(mode, seconds, passes):
    """Eight members, four more, three fewer."""
    print(f"emulated, NMF, 8 members, then 12, then 9, {mode}; {passes} epochs:")
    with running(0.153, 8, 2, mode, POLICY, passes) as job:

        def show(what):
            job.settle()
            found = job.epoch(seconds)
            print(f"  {what:28} {job.split()!s:8} {found:.3f} s an epoch")

        show("at first")
        for _ in range(4):
            job.mesh.add()
        show("four members join")
        for what, count in (("a worker is killed", 1), ("two more leave", 2)):
            servers = job.layout.servers()
            for member in [m for m in job.mesh.members if m not in servers][:count]:
                job.mesh.lose(member)
            show(what)
        job.thread.join()
        for _, one in job.changes:
            print(f"    {one.before} -> {one.after}: {one.reason}")
        (model,), _ = job.layout.model()
        found = {int(value) for array in model.values() for value in np.unique(array)}
        print(f"  each number of the model: {found}, due {STRATA * passes}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=12)
    parser.add_argument("--mode", default="async")
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--passes", type=int, default=40)
    given = parser.parse_args()
    for mode in ("lockstep", "async"):
        simulated(mode)
    emulated(given.members, given.mode, given.seconds)
    elastic(given.mode, given.seconds, given.passes)


if __name__ == "__main__":
    main()
