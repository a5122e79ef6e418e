"""A stream at work on members: its global gates are here, its stages there.

The driver runs a stream of phases: a stage of it sends a partition to a member and waits
for what comes back. So gates, credits, deadlines and failures are those of any stream, and
its feeds are partitions.
"""

from __future__ import annotations

import itertools
import math
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from mlopt.cluster.mesh import Mesh, Service
from mlopt.cluster.parcel import check_packs
from mlopt.cluster.resident import LOST
from mlopt.cluster.wire import LARGEST
from mlopt.errors import ClusterError, InputError, MemberLostError, StreamClosedError
from mlopt.events import Observer
from mlopt.prices import price
from mlopt.streaming.answer import Feeds
from mlopt.streaming.credits import BARRIER
from mlopt.streaming.phases import (
    border,
    in_one_place,
    least_partition,
    partition_of,
    unit,
)
from mlopt.streaming.places import Places
from mlopt.streaming.running import Running
from mlopt.streaming.stage import SAMPLES, Stage
from mlopt.streaming.station import Gone, Seen, Station, through
from mlopt.streaming.tune import OPEN, Room, Timed, made_of


class Part(list):
    """A partition: its feeds, or its results.

    Attributes
    ----------
    whole : bool
        Whether it is all that there is of its request, and goes through all phases at once.
    """

    def __init__(self, feeds: Sequence[Any], whole: bool = False) -> None:
        super().__init__(feeds)
        self.whole = whole


class Spread(Running):
    """A stream on the members of a mesh.

    Parameters
    ----------
    stages, gather, room, observer
        As of `Running`; ``room`` is also what each member may take.
    mesh : Mesh
        All of it: it is given a service.
    owned : bool
        Whether the mesh ends with the stream.
    partition : int, optional
        Feeds of one.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        gather: Stage | None,
        room: Room,
        observer: Observer,
        mesh: Mesh,
        owned: bool,
        partition: int | None,
    ) -> None:
        self.inner, self._mesh, self._owned = tuple(stages), mesh, owned
        self._sizes = [stage.size for stage in stages]
        self.first = border(self._sizes)
        try:
            mesh.serve(Station, self.inner, replace(room, open=None, feeds=None))
        except InputError:
            check_packs("Stage", ((one.name, one.function) for one in stages))
            raise
        members = mesh.members
        cores = [mesh.ask(one, "cores")[0].block for one in members] or [room.cores]
        self.cores, self._wanted = max(cores), partition
        self.least = least_partition(self._sizes, self.cores, partition)
        self.partition = self.least
        # A member works on one, or has a feed for each core, while the next is on its way.
        self.places = Places(members, 1 + math.ceil(self.cores / self.partition))
        self.seen: dict[tuple[str, int, int], Sequence[Seen]] = {}
        self.moving: list[float] = []
        self.moved, self.fused, self.apart = 0, 0, 0
        self._arities: list[int] = []
        self._lengths: list[int] = []
        self._bounded = room.feeds is not None
        self._noting = threading.Lock()
        self._stopped = False
        count = max(1, len(self.places)) * self.places.each
        super().__init__(
            self._phases(count),
            None if gather is None else replace(gather, function=_gathers(gather.function)),
            self._global(room, max(OPEN, count)),
            observer,
        )
        self._unwatch = mesh.watch(self._changed_members)
        for member in {*members, *mesh.members}:  # who came or went meanwhile
            self._changed_members(member, member in mesh.members)

    # --- what the driver's gates and stages do

    def _phases(self, count: int) -> list[Stage]:
        """The stages of the driver, with a thread for each place of a member."""
        names = [stage.name for stage in self.inner]
        last, phases = len(names), []
        if self.first:
            name = ", ".join(names[: self.first])
            phases.append(Stage(self._first_phase, name, count))
        if self.first < last:
            name = ", ".join(names[self.first :])
            phases.append(Stage(self._second_phase, name, count, BARRIER))
        return phases

    def _global(self, room: Room, opened: int) -> Room:
        """Credits of partitions, of those for feeds that the user gave."""
        if room.feeds is not None and room.feeds < self.partition * (room.open or 1):
            raise InputError(
                f"`feeds` must be at least {self.partition * (room.open or 1)}, a "
                f"partition of {self.partition} for each open request, got {room.feeds}."
            )
        feeds = None if room.feeds is None else room.feeds // self.partition
        if room.open is None:
            opened = opened if feeds is None else min(opened, feeds)
        return replace(room, open=room.open or opened, feeds=feeds)

    def _first_phase(self, part: Part) -> Part:
        return self._through(part, 0, len(self.inner) if part.whole else self.first)

    def _second_phase(self, parts: list[Part]) -> Part:
        if self.first and parts[0].whole:  # it has been there
            return parts[0]
        return self._through(_flat(parts), self.first, len(self.inner))

    def _through(self, feeds: list[Any], first: int, last: int) -> Part:
        lost = 0
        while True:
            member = self.places.take()
            began = time.perf_counter()
            try:
                gone = through(self._mesh, member, first, last, feeds)
            except MemberLostError as error:
                # What stages do can be done again: they keep nothing.
                self.places.rest(member)
                lost += 1
                if self._stopped:
                    raise StreamClosedError("The stream is closed.") from None
                if lost == LOST:
                    raise ClusterError(
                        f"{LOST} workers were lost with the same part of a request, one "
                        "after another: see whether a stage ends its process, or needs "
                        "more memory than a worker has."
                    ) from error
            else:
                self._note(member, first, last, gone, time.perf_counter() - began)
                return Part(gone.results, getattr(feeds, "whole", False))
            finally:
                self.places.free(member)

    def _note(self, member: str, first: int, last: int, gone: Gone, took: float) -> None:
        with self._noting:
            self.seen[member, first, last] = gone.seen
            self.moved += gone.bytes
            if len(self.moving) < SAMPLES:
                self.moving.append(max(0.0, took - gone.seconds))

    def _cut(self, feeds: Iterator[Any]) -> Iterator[Part]:
        size = self.partition = self._chosen_partition()
        count, at_once = 0, self._at_once()
        first = list(itertools.islice(feeds, at_once + 1))
        if len(first) <= at_once:
            count = len(first)
            if first:
                self._lengths += [count] * (len(self._lengths) < SAMPLES)
                yield Part(first, whole=True)
        else:
            rest = itertools.chain(first, feeds)
            while part := list(itertools.islice(rest, size)):
                count += len(part)
                self._lengths += [len(part)] * (len(self._lengths) < SAMPLES)
                yield Part(part)
        with self._noting:
            self.fused += 0 < count <= at_once
            self.apart += count > at_once
            self._arities.append(count)
            del self._arities[:-SAMPLES]

    def _joined(self, results: list[Any]) -> list[Any]:
        return _flat(results)

    def _at_once(self) -> int:
        """Feeds up to which a request is one partition, and its phases are fused."""
        if self.first == len(self.inner) or not self.first:
            return self.partition
        members, arity = len(self.places), self.usual_feeds
        waiting = len(self._open)
        if not in_one_place(*self.times_of(arity), members, waiting):
            return self.partition
        return max(self.partition, min(math.ceil(2 * arity), self._most()))

    def _end(self) -> None:
        self._stopped = True
        self.places.end()
        self._unwatch()
        if self._owned:
            self._mesh.close()
            return
        with suppress(ClusterError):  # closed by whose it is
            self._mesh.serve(_Nothing)

    def _changed_members(self, member: str, came: bool) -> None:
        self.places.change(member, came)
        if not came or self._closing:
            return
        wanted = len(self.places) * self.places.each
        for at, stage in enumerate(self.stages):
            for _ in range(wanted - (stage.replicas or 0)):
                self._start(self._work, stage.name, at)
        self.stages = tuple(
            replace(stage, replicas=max(wanted, stage.replicas or 0))
            for stage in self.stages
        )

    # --- what was measured, and what follows

    @property
    def usual_feeds(self) -> float:
        """Feeds of a request, of the last that were gone through."""
        with self._noting:
            return statistics.median(self._arities) if self._arities else 0.0

    def inner_timed(self) -> list[Timed]:
        """The stages as members have seen them."""
        found = []
        for at, stage in enumerate(self.inner):
            seen = self.seen_of(at) or [Seen(0, 0.0, 0.0, 0.0, 0.0, 0)]
            seconds = statistics.median(one.seconds for one in seen)
            cpu = statistics.median(one.cpu for one in seen)
            size = statistics.median(one.bytes for one in seen)
            found.append(Timed(stage.name, seconds, cpu, size, stage.replicas, stage.size))
        return found

    def seen_of(self, at: int) -> list[Seen]:
        """What members have seen of a stage."""
        with self._noting:
            return [
                seen[at - first]
                for (_, first, last), seen in self.seen.items()
                if first <= at < last and seen[at - first].count
            ]

    def times_of(self, arity: float) -> tuple[float, float]:
        """Seconds of work of a request for one member, and of its results on their way."""
        timed = self.inner_timed()
        made = made_of(timed, max(arity, 1.0))
        # As `tune` has it: the cores have so much to do, or the slowest stage has.
        each = [sum(one.cpu / m for one, m in zip(timed, made, strict=True)) / self.cores]
        for at, (one, m) in enumerate(zip(timed, made, strict=True)):
            threads = max((seen.threads for seen in self.seen_of(at)), default=1)
            each.append(one.seconds / m / max(1, threads))
        with self._noting:
            moving = statistics.median(self.moving) if self.moving else 0.0
        return arity * max(each), moving * math.ceil(arity / self.partition)

    def _most(self) -> int:
        """Feeds of a partition that a line, and the memory, have room for."""
        tuned = self.tuned
        if tuned is None or self._bounded:
            return self.partition  # as many as credits were counted for
        # Bytes of a feed where it is largest.
        usual = statistics.median(self._lengths) if self._lengths else self.partition
        each = max(1.0, tuned.memory / tuned.feeds / usual)
        most = LARGEST / 2 / each
        if self.room.memory is not None:
            most = min(most, self.room.memory / tuned.feeds / each)
        return int(most)

    def gauges(self) -> dict[str, dict[str, float]]:
        found = super().gauges()
        found["stream"] |= {"workers": len(self.places), "bytes sent": self.moved}
        return found

    def _chosen_partition(self) -> int:
        """Feeds of a partition, for the next request."""
        if self._wanted is not None or self.tuned is None:
            return self.partition
        timed = self.inner_timed()[: self.first]
        made = made_of(timed, max(self.usual_feeds, 1.0))
        work = sum(one.seconds / m for one, m in zip(timed, made, strict=True))
        # A request that has the workers for itself should be there for all of them.
        most = min(self._most(), math.ceil(self.usual_feeds / max(1, len(self.places))))
        each = unit(self._sizes)
        return partition_of(self.least, each, work, price("stream.partition"), most)


class _Nothing(Service):
    """What a mesh is left with."""

    def __init__(self, site: Any) -> None:
        del site

    def answer(self, operation: str, header: Any, arrays: Any) -> Any:
        raise StreamClosedError("The stream is closed.")


def _flat(parts: Sequence[Sequence[Any]]) -> list[Any]:
    return [one for part in parts for one in part]


def _gathers(function: Callable[[Feeds], Any]) -> Callable[[Feeds], Any]:
    """A gathering function of results, as one of partitions."""

    def gather(parts: Feeds) -> Any:
        results = itertools.chain.from_iterable(parts)
        return function(Feeds(parts.request, partial(next, results)))

    return gather
