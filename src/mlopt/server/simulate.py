"""Workers and servers in simulated time: what the formulas of `model` are judged by.

A worker computes, pushes, waits for those whom it must not leave behind, and pulls. A
server answers one ask after the other, first come first served; the link of a worker takes
in what servers send at its own rate, one after the other. Nothing is random but the noise
of computing, from a seed.

Since no answer overtakes another, the end of a pull is known when it is asked for: one
event a pull (or an ask, in turn), 5 us for each server.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mlopt.errors import InputError
from mlopt.server.model import Kind, Work

WARM = 5
"""Mini-batches of each worker that are not counted: that all begin at once lasts a few."""


class Simulated(NamedTuple):
    """What was seen.

    Attributes
    ----------
    seconds : float
        Of a mini-batch of the cluster: an epoch has `Work.batches` of them.
    pull, wait : float
        Seconds that a worker pulled, and waited for others, on average a mini-batch.
    busy : float
        Share of the time in which the busiest server was.
    """

    seconds: float
    pull: float
    wait: float
    busy: float


def simulate(
    workers: Sequence[Kind],
    servers: Sequence[Kind],
    work: Work,
    *,
    shares: Sequence[float] | None = None,
    sizes: Sequence[float] | None = None,
    batches: int = 30,
    seed: int = 0,
) -> Simulated:
    """Run some mini-batches of every worker.

    Parameters
    ----------
    workers, servers : sequence of Kind
    work : Work
    shares : sequence of float, optional
        Of the model on each server; equal by default.
    sizes : sequence of float, optional
        Of each worker's mini-batch, 1 being the usual one.
    batches : int, default=30
        Of each worker on average, those of the beginning included.
    seed : int, default=0

    Raises
    ------
    InputError

    Examples
    --------
    >>> from mlopt.server.model import Kind, Work
    >>> from mlopt.server.simulate import simulate
    >>> work = Work(pulled=1e8, mode="lockstep", pulls="at once")
    >>> found = simulate([Kind(1.0, 1e8)] * 3, [Kind(1.0, 1e8)] * 2, work)
    >>> round(3 * found.seconds, 6)  # 1 + (3 + 2 - 1) / 2
    3.0
    """
    if not workers or not servers:
        raise InputError(
            f"There must be workers and servers, got {len(workers)} and {len(servers)}."
        )
    if batches <= WARM:
        raise InputError(f"`batches` must be more than {WARM}, got {batches}.")
    shares = [1 / len(servers)] * len(servers) if shares is None else shares
    sizes = [1.0] * len(workers) if sizes is None else sizes
    return _Run(workers, servers, work, shares, sizes, seed).go(batches)


class _Run:
    """Workers i and servers j; times are in seconds from the beginning."""

    def __init__(
        self,
        workers: Sequence[Kind],
        servers: Sequence[Kind],
        work: Work,
        shares: Sequence[float],
        sizes: Sequence[float],
        seed: int,
    ) -> None:
        self.work, self.sizes = work, sizes
        self.random = random.Random(seed)
        sized = zip(workers, sizes, strict=True)
        self.compute = [one.compute * size for one, size in sized]
        held = [share * work.pulled for share in shares]
        pairs = zip(held, servers, strict=True)
        self.sending = [bytes_ / one.bandwidth + work.message for bytes_, one in pairs]
        self.taking = [[bytes_ / one.bandwidth for bytes_ in held] for one in workers]
        self.applying = [share * work.applying for share in shares]
        self.free, self.busy = [0.0] * len(servers), [0.0] * len(servers)
        self.computed, self.asked = [0] * len(workers), [0] * len(workers)
        self.open = [0] * len(workers)  # what must end before the next mini-batch begins
        self.since = [0.0] * len(workers)
        self.waiting: list[int] = []
        self.pull = self.wait = 0.0
        self.ended: list[tuple[float, float]] = []  # when a mini-batch did, and its size
        self.events: list[tuple[float, int, Callable[[float, int], None], int]] = []
        self.numbers = itertools.count()

    def at(self, time: float, what: Callable[[float, int], None], i: int) -> None:
        heapq.heappush(self.events, (time, next(self.numbers), what, i))

    def go(self, batches: int) -> Simulated:
        w = len(self.compute)
        for i in range(w):
            self.begin(0.0, i)
        while len(self.ended) < batches * w:
            now, _, what, i = heapq.heappop(self.events)
            what(now, i)
        # From the end of a wave to the end of a wave.
        (begin, _), (end, _) = self.ended[WARM * w - 1], self.ended[-1]
        done = sum(size for _, size in self.ended[WARM * w :])
        each = len(self.ended)
        return Simulated(
            (end - begin) / done, self.pull / each, self.wait / each, max(self.busy) / end
        )

    def begin(self, now: float, i: int) -> None:
        """The model is there: compute."""
        noise = max(0.0, 1 + self.work.noise * self.random.gauss(0, 1))
        self.at(now + self.compute[i] * noise, self.done, i)
        self.open[i] = 1
        if self.work.mode == "prefetch":
            self.open[i], self.since[i] = 2, now
            self.ask(now, i)

    def done(self, now: float, i: int) -> None:
        """Computed: push, and pull as soon as the others are near enough."""
        for j, seconds in enumerate(self.applying):
            self.serve(now, j, seconds)
        self.computed[i] += 1
        if self.work.mode == "prefetch":
            self.end(now, i)
            return
        self.since[i] = now
        self.waiting.append(i)
        most = min(self.computed) + self.work.ahead
        free = [one for one in self.waiting if self.computed[one] <= most]
        self.waiting = [one for one in self.waiting if self.computed[one] > most]
        for one in free:
            self.wait += now - self.since[one]
            self.since[one] = now
            self.ask(now, one)

    def serve(self, now: float, j: int, seconds: float) -> float:
        """A server works for those who came before, and then on this; when it begins."""
        begin = max(now, self.free[j])
        self.free[j] = begin + seconds
        self.busy[j] += seconds
        return begin

    def ask(self, now: float, i: int) -> None:
        """Ask the next server, or all of them."""
        message, taking, s = self.work.message, self.taking[i], len(self.free)
        if self.work.in_turn:
            j = (i + self.asked[i]) % s
            self.asked[i] = (self.asked[i] + 1) % s
            begin = self.serve(now, j, self.sending[j])
            there = max(self.free[j], begin + message + taking[j])
            self.at(there, self.ask if self.asked[i] else self.pulled, i)
            return
        now += s * message
        there = link = now
        for begin, j in sorted((self.serve(now, j, self.sending[j]), j) for j in range(s)):
            link = max(link, begin + message) + taking[j]
            there = max(there, link, begin + self.sending[j])
        self.at(there, self.pulled, i)

    def pulled(self, now: float, i: int) -> None:
        self.pull += now - self.since[i]
        self.end(now, i)

    def end(self, now: float, i: int) -> None:
        """One thing that the next mini-batch needs is there."""
        self.open[i] -= 1
        if not self.open[i]:
            self.ended.append((now, self.sizes[i]))
            self.begin(now, i)
