"""How many replicas, open requests and feeds: chosen from measured times, without a clock.

Replicas are grown until a resource is saturated, and the phases are balanced (Whitlock et
al., section 7): with ``d`` the seconds that a stage takes of a feed of the request and
``r`` its replicas, a stream gives at most ``min(r / d)`` feeds a second, and not more than
the cores have CPU seconds for. Little's law says the rest: requests under way are
throughput times latency, so that two are enough where phases are balanced, and more only
wait. It is assumed that stages let go of the interpreter's lock; what is measured after a
run shows where they do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mlopt.errors import TooLargeError
from mlopt.plan import format_bytes
from mlopt.prices import price
from mlopt.streaming.credits import BARRIER
from mlopt.streaming.flow import least_feeds

THREADS = 32
"""Threads of all stages at most, where what they wait for sets no limit: each has a stack,
and a place in the queue for the interpreter's lock."""
OPEN = 2
"""Requests open at least: while the last feeds of one are worked on, the next begins."""


@dataclass(frozen=True)
class Timed:
    """A stage as the planner sees it.

    Parameters
    ----------
    name : str
    seconds, cpu : float
        Of one of its own feeds.
    bytes : float
        That it gives for one.
    replicas : int or None
        If the user says how many.
    size : int or None
        Feeds aggregated before it.
    """

    name: str
    seconds: float
    cpu: float
    bytes: float = 0.0
    replicas: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class Tuned:
    """What was chosen, and what follows from it.

    Attributes
    ----------
    replicas : tuple of int
        Of the source and each stage; 0 for one that is fused with the stage before it.
    fused : tuple of bool
        Whether a stage goes on with its result itself, in the stage behind it.
    open, feeds : int
        Credits: requests open, feeds under way.
    throughput : float
        Feeds a second, of the requests.
    latency : float
        Seconds of a request from opening on.
    memory : float
        Bytes of feeds at most.
    """

    replicas: tuple[int, ...]
    fused: tuple[bool, ...]
    open: int
    feeds: int
    throughput: float
    latency: float
    memory: float


@dataclass(frozen=True)
class Room:
    """What a stream may take.

    Parameters
    ----------
    cores : int
    memory : int or None
        Bytes of feeds.
    open, feeds : int or None
        Credits that the user has set.
    """

    cores: int
    memory: int | None = None
    open: int | None = None
    feeds: int | None = None

    def opened(self, wanted: int, least: int) -> int:
        """Requests that are open at a time, of which each needs ``least`` feeds."""
        if self.open is not None or self.feeds is None:
            return self.open or wanted
        return max(1, min(wanted, self.feeds // least))


def tune(stages: Sequence[Timed], room: Room, arity: float) -> Tuned:
    """Choose for stages with these times.

    Parameters
    ----------
    stages : sequence of Timed
        In order; the first is the source, which makes the feeds of requests.
    room : Room
    arity : float
        Feeds of a usual request.

    Raises
    ------
    TooLargeError
        A feed, or what must be together, is more than the memory.
    """
    made = made_of(stages, arity)
    handover = price("stream.handover")
    fused = [False] * len(stages)
    best = _grown(stages, made, fused, room.cores, handover)
    for at in range(len(stages) - 1):
        if at and may_fuse(stages[at], stages[at + 1]):
            tried = [*fused[:at], True, *fused[at + 1 :]]
            grown = _grown(stages, made, tried, room.cores, handover)
            if grown[0] >= best[0]:
                fused, best = tried, grown
    throughput, replicas = best
    barrier = any(stage.size == BARRIER for stage in stages)
    least = math.ceil(arity) + 1 if barrier else least_feeds([s.size for s in stages])
    # One feed in the hands of each replica, and one that waits for it.
    busy = 2 * sum(r * min(m, least) for r, m in zip(replicas, made, strict=True))
    opened = room.opened(_opened(stages, busy, arity, barrier), least)
    feeds = room.feeds or max(opened * least, math.ceil(busy))
    each = max([stage.bytes / m for stage, m in zip(stages, made, strict=True)] + [0.0])
    opened, feeds = _fitted(room, opened, feeds, least, each)
    if barrier and room.memory is not None and room.feeds is None:
        # The next request may be longer than the usual one.
        feeds = max(feeds, int(room.memory / max(each, 1.0)))
    replicas[0] = min(replicas[0], opened)  # the feeds of a request are made in turn
    alone = sum(s.seconds / m for s, m in zip(stages, made, strict=True))
    # Little's law, with the feeds that may be under way, and with the sources.
    limits = feeds / max(alone, 1e-9), replicas[0] / max(stages[0].seconds, 1e-9)
    throughput = min(throughput, *limits)
    alone += sum(
        s.seconds * (1 - 1 / m) for s, m in zip(stages, made, strict=True) if m > 1
    )
    latency = max(alone + (arity - 1) / throughput, opened * arity / throughput)
    return Tuned(
        tuple(replicas), tuple(fused), opened, feeds, throughput, latency, feeds * each
    )


def may_fuse(stage: Timed, after: Timed) -> bool:
    """Whether one thread may go on with its result in the stage behind.

    Where the user says how many threads may be in a stage, others must not come into it.
    """
    return stage.replicas is None and after.replicas is None and after.size is None


def made_of(stages: Sequence[Timed], arity: float) -> list[float]:
    """Feeds of the request that one feed of each stage was made of."""
    made, sizes = [], 1.0
    for stage in stages:
        sizes = min(sizes * (stage.size or 1), max(arity, 1.0))
        made.append(sizes)
    return made


def _grown(
    stages: Sequence[Timed],
    made: Sequence[float],
    fused: Sequence[bool],
    cores: int,
    handover: float,
) -> tuple[float, list[int]]:
    """Feeds a second, and replicas of each stage."""
    heads = [at for at in range(len(stages)) if at == 0 or not fused[at - 1]]
    demand, fixed = {}, {}
    for head, end in zip(heads, [*heads[1:], len(stages)], strict=True):
        group = range(head, end)
        work = sum(stages[at].seconds / made[at] for at in group)
        demand[head] = max(work + handover / made[head], 1e-9)
        fixed[head] = stages[head].replicas
    cpu = sum(s.cpu / m for s, m in zip(stages, made, strict=True))
    cpu += sum(handover / made[head] for head in heads)
    most = cores / max(cpu, 1e-9)
    replicas = {head: fixed[head] or 1 for head in heads}

    def rate(head: int) -> float:
        return replicas[head] / demand[head]

    while sum(replicas.values()) < THREADS:
        slowest = min(heads, key=rate)
        if rate(slowest) >= most or fixed[slowest] is not None:
            break
        replicas[slowest] += 1
    throughput = min(most, min(map(rate, heads)))
    return throughput, [replicas.get(at, 0) for at in range(len(stages))]


def _opened(stages: Sequence[Timed], busy: float, arity: float, barrier: bool) -> int:
    phases = sum(stage.size is not None for stage in stages) + 1
    enough = phases if barrier else math.ceil(busy / max(arity, 1.0))
    return max(OPEN, enough)


def _fitted(
    room: Room, opened: int, feeds: int, least: int, each: float
) -> tuple[int, int]:
    """Credits that the memory is enough for."""
    if room.memory is None or not each:
        return opened, feeds
    most = int(room.memory / each)
    if most < least:
        raise TooLargeError(
            f"A stream must have room for {least} feed{'s' * (least > 1)} of a request "
            f"together, of {format_bytes(each)} each, but has {format_bytes(room.memory)}: "
            "give it more memory, or make the feeds smaller."
        )
    if feeds <= most:
        return opened, feeds
    return max(1, min(opened, most // least)), most
