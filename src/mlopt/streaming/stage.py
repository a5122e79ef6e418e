"""A stage: a function from one feed to one feed, and what was measured of it."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

from mlopt.errors import InputError
from mlopt.parameters import is_count
from mlopt.resources.queued import queued

SAMPLES = 8
"""Feeds of which seconds are kept to plan with: the first ones, of which the median is
taken, as the first of all loads and compiles."""

_MANY = (GeneratorType, AsyncGeneratorType, CoroutineType)


@dataclass(frozen=True)
class Stage:
    """What the user wrote.

    Parameters
    ----------
    function : callable
        Called with a feed, or with a list of them where ``size`` is set, from several
        threads at once unless ``replicas`` is 1. It keeps no state.
    name : str
    replicas : int or None
        Threads; None to choose.
    size : int or None
        Feeds that are aggregated before it.
    """

    function: Callable[[Any], Any]
    name: str
    replicas: int | None = None
    size: int | None = None


@dataclass
class Measured:
    """What a stage took so far: seconds of wall time and of CPU, and bytes that it gave."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    count: int = 0
    total: float = 0.0

    def add(self, seconds: float, cpu: float) -> None:
        """One more feed."""
        self.count += 1
        self.total += seconds
        if len(self.seconds) < SAMPLES:
            self.seconds.append(seconds)
            self.cpu.append(cpu)

    def usual(self) -> tuple[float, float, float]:
        """Seconds, CPU seconds and bytes of a feed, or 0 where none was seen."""
        seconds = _median(self.seconds)
        return seconds, min(_median(self.cpu), seconds), _median(self.sizes)


def _median(values: Sequence[float]) -> float:
    return float(median(values)) if values else 0.0


def clocks(exact: bool) -> tuple[float, float]:
    """Seconds of wall time, and of CPU of this thread; both only go forward.

    Where ``exact``, and the system tells (Linux), wall time stands still while the thread
    waits for a core: what other processes take is not what a stage waits for.
    """
    return time.perf_counter() - (queued() if exact else 0.0), time.thread_time()


def stage_of(
    function: Any, name: str | None, replicas: int | str | None, size: int | None
) -> Stage:
    """A stage of what the user gave, checked.

    Raises
    ------
    InputError
    """
    if not callable(function):
        raise InputError(
            f"A stage must be something to call with a feed, got {function!r:.60}."
        )
    name = name or name_of(function)
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise InputError(
            f"The stage `{name}` must return one feed for each, but yields or awaits: give "
            "a list as one feed, or make more feeds in the request."
        )
    if replicas != "auto" and not is_count(replicas):
        raise InputError(
            f"`replicas` of the stage `{name}` must be 'auto' or at least 1, got "
            f"{replicas!r}."
        )
    return Stage(function, name, None if replicas == "auto" else int(replicas), size)


def check_result(name: str, result: Any) -> None:
    """Refuse what would be several feeds.

    Raises
    ------
    InputError
    """
    if isinstance(result, _MANY):
        raise InputError(
            f"The stage `{name}` must return one feed for each, but gave a "
            f"{type(result).__name__}: give a list as one feed."
        )


def name_of(function: Any) -> str:
    """What people call a function: that of an object's method by its class."""
    owner = getattr(function, "__self__", None)
    name = getattr(function, "__name__", None)
    if name is None:
        inner = getattr(function, "func", None)  # of a partial
        return name_of(inner) if inner is not None else type(function).__name__
    plain = owner is None or isinstance(owner, type) or inspect.ismodule(owner)
    return str(name) if plain else f"{type(owner).__name__}.{name}"
