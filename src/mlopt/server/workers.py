"""What a worker does whose model is on servers: pull a part, take a step, push what to add.

The step of one cell has one number for all blocks that it changes. If its worker is lost,
whoever does it again does so under that number: each block has it once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, Literal

import numpy as np

from mlopt.cluster.mesh import Site
from mlopt.cluster.pool import Pool
from mlopt.errors import MloptError
from mlopt.server.asking import BREATH
from mlopt.server.blocks import Array
from mlopt.server.program import CLOCK, part_name, state_name
from mlopt.server.resident import Done, JobService
from mlopt.server.store import Store, pool_of

Mode = Literal["lockstep", "bounded", "async"]
MODES: tuple[Mode, ...] = ("lockstep", "bounded", "async")

_LONGEST = 0.02
"""Seconds from one look at who is behind to the next: far less than the steps that are
worth a server."""


def works(
    site: Site, counts: Mapping[int, int], first: int, passes: int, behind: int | None
) -> Done:
    """A task: the steps of some strata, the one that is behind the others first.

    Those that come to a member later are done by the task that is there.

    Parameters
    ----------
    site : Site
    counts : mapping of int to int
        Strata, and steps that each has had.
    first : int
        Passes before.
    passes : int
    behind : int or None
        Steps that a stratum may be behind another; None for any number.
    """
    service = site.service
    assert isinstance(service, JobService)
    roll, done, last = service.roll, Done(), (first + passes) * service.plan.parts
    if not roll.begin({a: (n, last) for a, n in counts.items()}, site.stop):
        return done
    pool, every = pool_of(2), dict[int, _Stratum]()
    try:
        while not site.stop.is_set():
            for number, (count, until) in roll.came().items():
                every[number] = _Stratum(service, number, count, until, pool)
            for number in {*roll.asked(every), *_finished(every)}:
                one = every.pop(number)
                one.tell()
                roll.end(number, one.count)
            if not every:
                if roll.leave(site.stop):
                    break
                continue
            one = min(every.values(), key=lambda one: one.count)
            if behind is not None:
                for other in every.values():
                    other.tell()
                if not _may_go_on(site, one, every, behind, done):
                    continue
            one.step(done, site.stop.is_set)
    finally:
        for number, one in every.items():
            with suppress(MloptError):  # then whoever goes on does it again
                one.tell()
            roll.end(number, one.told)
        for number, (count, _) in roll.gone(site.stop).items():
            roll.end(number, count)
        pool.shutdown(wait=False, cancel_futures=True)
    return done


def _finished(every: Mapping[int, _Stratum]) -> list[int]:
    return [number for number, one in every.items() if not one.left]


def _may_go_on(
    site: Site, one: _Stratum, every: Mapping[int, _Stratum], behind: int, done: Done
) -> bool:
    """Wait until nobody is too far behind; gives whether that was so in the end.

    Who comes meanwhile may be the one that is behind: its steps are taken here. Any that
    is here may be asked for: who asks may be the one by whom the others would go on.
    """
    roll = one.service.roll
    breath, began = BREATH, time.perf_counter()
    try:
        while not (site.stop.is_set() or roll.grows or roll.asked(every)):
            clock = one.store.pull(tables=[CLOCK])[CLOCK]
            for other in every.values():
                other.remind(clock)
            if int(clock.min()) >= one.count - behind:
                return True
            time.sleep(breath)
            breath = min(2 * breath, _LONGEST)
        return False
    finally:
        done.waited += time.perf_counter() - began


class _Stratum:
    """The steps of one stratum, until it has had as many as it is to have."""

    def __init__(
        self, service: JobService, number: int, count: int, until: int, pool: Pool
    ) -> None:
        self.service, self.plan, self.number = service, service.plan, number
        self.store = Store(
            service.site, self.plan.tables, service.shard.owners, threads=pool,
            client=number + 1,
        )  # fmt: skip
        # Steps that it has had, and those that others may know of.
        self.count = self.told = count
        first, skipped = divmod(count, self.plan.parts)
        self._order = islice(self.plan.order(number, first), skipped, None)
        self._until = until
        self._model: dict[str, Any] = {}

    @property
    def left(self) -> int:
        """Steps that it has not had yet."""
        return max(0, self._until - self.count)

    def step(self, done: Done, stopped: Callable[[], bool]) -> None:
        """One step; it has not been if its task was stopped before it ended."""
        passes, part, _ = next(self._order)
        plan, own, name = self.plan, state_name(self.number), part_name(part)
        began = time.perf_counter()
        # Of other parts nothing stays: together they may be larger than a worker.
        self._model = self.store.pull(self._model, [*plan.of(name), *plan.of(own)])
        self.tell()
        start = time.perf_counter()
        before, model = plan.whole(own, self._model), plan.whole(name, self._model)
        state = {key: array.copy() for key, array in before.items()}
        cell = self.service.cells[self.number, part]
        delta, loss = plan.step.delta(cell, model, state, passes)
        took = time.perf_counter() - start
        if stopped():
            return  # it is not waited for: the model may have been read since
        kept = {key: state[key] - array for key, array in before.items()}
        self.count += 1
        pushed = plan.split(name, delta) | plan.split(own, kept)
        self.store.push(pushed, self.count)
        done.losses[passes] += loss
        done.cells += 1
        done.compute += took
        done.waited += start - began
        # What is here is pulled over no link.
        pulled = 0.0 if self.service.shard.here() else start - began
        nbytes = sum(array.nbytes for array in (*model.values(), *before.values()))
        self.service.roll.report(self.number, took, pulled, nbytes)

    def tell(self) -> None:
        """What was pushed is done: others, and who may come after, are told."""
        if self.told == self.count:
            return
        self.store.flush()
        # All of them, not those since: the clock may have gone back to a copy.
        clock = np.zeros(self.plan.strata, np.int64)
        clock[self.number] = self.count
        (block,) = self.plan.tables.tables[CLOCK].blocks
        self.store.update(block, [clock], "raise", sequence=self.count)
        self.told = self.count

    def remind(self, clock: Array) -> None:
        """Tell others again of steps that went with a server that was lost."""
        if clock[self.number] < self.told:
            self.told = int(clock[self.number])
            self.tell()
