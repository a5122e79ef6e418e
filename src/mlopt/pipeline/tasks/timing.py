"""How long operators were at work, and how often, wherever they ran."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mlopt.cluster import Executor, single_threaded, tell
from mlopt.kernels.compiling import worked
from mlopt.pipeline.blocks.tables import count_entries, count_rows

_TOPIC = "mlopt-seconds"
"""Under which workers log what ran: Dask keeps the last of it, for who asks later."""

_clocks: list[Clock] = []
_lock = threading.Lock()


@dataclass(eq=False)
class Clock:
    """What operators did, by their tokens.

    Attributes
    ----------
    seconds : dict of token to float
        At work, over all threads.
    done : dict of token to int
        Rows made, or models fitted.
    stored, entries : dict of token to int
        Entries of rows put side by side: those that are stored, and all.
    """

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    done: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    stored: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    entries: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add(
        self, token: str, seconds: float, done: int, stored: int = 0, entries: int = 0
    ) -> None:
        """One call."""
        with _lock:
            self.seconds[token] += seconds
            self.done[token] += done
            self.stored[token] += stored
            self.entries[token] += entries


@contextmanager
def watching(clock: Clock, executor: Executor) -> Iterator[None]:
    """Everything that ends within the block counts, here and on workers."""
    executor.listen(_TOPIC, _told)
    with _lock:
        _clocks.append(clock)
    try:
        yield
    finally:
        with _lock:
            _clocks.remove(clock)


@dataclass(frozen=True)
class Timed:
    """A function whose calls count for one operator.

    Attributes
    ----------
    done : callable
        Of what it returns: how many rows, or models.
    joins : bool
        Whether it puts its arguments side by side, whose entries are counted.
    """

    token: str
    function: Callable[..., Any]
    done: Callable[[Any], int] = count_rows
    joins: bool = False

    @property
    def __name__(self) -> str:
        return str(getattr(self.function, "__name__", "operator"))

    def __call__(self, *args: Any) -> Any:
        begin = time.perf_counter()
        value = self.function(*args)
        took = worked(begin)
        done = int(self.done(value))
        entries = count_entries(*args) if self.joins else (0, 0)
        _count(self.token, took, done, *entries)
        tell(_TOPIC, (os.getpid(), self.token, took, done, *entries))
        return value


def a_model(value: Any) -> int:
    """One was fitted."""
    del value
    return 1


def on_the_way(value: Any) -> int:
    """Nothing is ready by this."""
    del value
    return 0


def _count(token: str, *call: Any) -> None:
    for clock in tuple(_clocks):
        clock.add(token, *call)


def _told(message: tuple[Any, ...]) -> None:
    process, *call = message
    if process != os.getpid():  # workers may be threads of this process
        _count(*call)


def quietly(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)`` with one BLAS thread: other tasks are at work on other cores."""
    with single_threaded():
        return function(*args)
