"""A member's part of a stream: partitions go through its stages as requests do."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlopt.cluster.mesh import Peers, Service, Site
from mlopt.cluster.parcel import arrays_of, pack, parcel_of, unpack
from mlopt.cluster.wire import Answer, Header
from mlopt.errors import InputError, RequestError, StageError, StreamClosedError, TaskError
from mlopt.events import ignore
from mlopt.streaming.running import ElsewhereError, Running
from mlopt.streaming.stage import Stage
from mlopt.streaming.tune import Room


@dataclass(frozen=True)
class Seen:
    """What a member has seen of one stage.

    Parameters
    ----------
    count : int
        Feeds.
    total : float
        Seconds of all of them.
    seconds, cpu, bytes : float
        Of a usual one.
    threads : int
        0 where it is fused with the stage before it.
    """

    count: int
    total: float
    seconds: float
    cpu: float
    bytes: float
    threads: int


@dataclass(frozen=True)
class Gone:
    """A partition that went through a phase.

    Parameters
    ----------
    results : list
    seconds : float
        That the member took.
    bytes : int
        That were sent, there and back.
    seen : sequence of Seen
        Of the stages of the phase, so far.
    """

    results: list[Any]
    seconds: float
    bytes: int
    seen: Sequence[Seen]


class Station(Service):
    """Runs stages for whoever asks.

    Parameters
    ----------
    site : Site
    stages : sequence of Stage
    room : Room
        What a member may take; the cores are its own.
    """

    def __init__(self, site: Site, stages: Sequence[Stage], room: Room) -> None:
        self._stages = [_alike(stage) for stage in stages]
        self._room = replace(room, cores=site.cores)
        self._phases: dict[tuple[int, int], Running] = {}
        self._starting, self._closed = threading.Lock(), False

    def answer(
        self, operation: str, header: Header, arrays: Sequence[np.ndarray]
    ) -> Answer:
        if operation == "cores":
            return Header(block=self._room.cores), []
        began = time.perf_counter()
        running = self._phase(header.block, header.version)
        more: dict[str, Any] = {}
        try:
            results = running.submit(unpack(parcel_of(arrays))).result()
            sent = _sent(results, self._stages[header.version - 1].name)
        except StreamClosedError:
            raise
        except RequestError as error:
            more["said"], sent = str(error), _failure(error)
            more["stage"] = getattr(error, "stage", None)
        more["seen"] = [list(vars(seen).values()) for seen in _seen(running)]
        more["seconds"] = time.perf_counter() - began
        return Header(more=more), sent

    def close(self) -> None:
        with self._starting:
            self._closed = True
            phases = list(self._phases.values())
        for running in phases:
            running.close(drain=False, timeout=None)

    def _phase(self, first: int, last: int) -> Running:
        with self._starting:
            if self._closed:
                raise StreamClosedError("The stream is closed.")
            if (first, last) not in self._phases:
                stages = list(self._stages[first:last])
                # A phase that begins with all feeds of a request has them as its request.
                self._phases[first, last] = Running(stages, None, self._room, ignore)
            return self._phases[first, last]


def _alike(stage: Stage) -> Stage:
    """The stage with as many in it as the user says, in whatever phases it is."""
    if stage.replicas is None:
        return stage
    inside, function = threading.Semaphore(stage.replicas), stage.function

    def limited(feed: Any) -> Any:
        with inside:
            return function(feed)

    return replace(stage, function=limited)


def through(mesh: Peers, member: str, first: int, last: int, feeds: list[Any]) -> Gone:
    """Send a partition through stages ``first`` to ``last`` (without it) of a member.

    Raises
    ------
    ElsewhereError
        The partition failed there.
    InputError
        It cannot be sent.
    """
    given = arrays_of(pack(feeds))
    header, got = mesh.ask(member, "go", Header(block=first, version=last), given)
    more = header.more
    if "said" in more:
        raise ElsewhereError(_error(more, got))
    seen = [Seen(*values) for values in more["seen"]]
    moved = sum(array.nbytes for array in (*given, *got))
    return Gone(unpack(parcel_of(got)), more["seconds"], moved, seen)


def _seen(running: Running) -> list[Seen]:
    tuned = running.tuned
    return [
        Seen(
            one.count, one.total, *one.usual(),
            tuned.replicas[at] if tuned else running.stages[at - 1].replicas or 1,
        )
        for at, one in enumerate(running.measured) if at
    ]  # fmt: skip


def _sent(results: list[Any], stage: str) -> list[np.ndarray]:
    try:
        return arrays_of(pack(results))
    except InputError as error:
        told = StageError(f"The stage `{stage}` failed: {error}", stage)
        told.__cause__ = error
        raise told from error


def _failure(error: RequestError) -> list[np.ndarray]:
    """An error and its cause, as far as they can travel."""
    for cause in (error.__cause__, None):
        with suppress(Exception):
            parcel = pack((error, cause))
            unpack(parcel)
            return arrays_of(parcel)
    return []


def _error(more: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> RequestError:
    found, cause = None, None
    with suppress(Exception):  # of a type that is not known here
        found, cause = unpack(parcel_of(arrays))
    error: RequestError = StageError(more["said"], str(more["stage"]))
    error = found if isinstance(found, RequestError) else error
    error.__cause__ = cause
    if isinstance(error, StageError) and cause is None:
        error.__cause__ = TaskError(more["said"])
    return error
