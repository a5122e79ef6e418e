"""How long operators were at work, and on how many rows, wherever they ran."""

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

_TOPIC = "mlopt-seconds"
"""Under which workers log what ran: Dask keeps the last of it, for who asks later."""

_clocks: list[Clock] = []
_lock = threading.Lock()


@dataclass(eq=False)
class Clock:
    """Of each operator, by its token: seconds at work, over all threads, and calls."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))


@contextmanager
def watching(executor: Executor) -> Iterator[Clock]:
    """A clock of everything that ends within the block, here and on workers."""
    executor.listen(_TOPIC, _told)
    clock = Clock()
    with _lock:
        _clocks.append(clock)
    try:
        yield clock
    finally:
        with _lock:
            _clocks.remove(clock)


@dataclass(frozen=True)
class Timed:
    """A function whose calls count for one operator."""

    token: str
    function: Callable[..., Any]

    @property
    def __name__(self) -> str:
        return str(getattr(self.function, "__name__", "operator"))

    def __call__(self, *args: Any) -> Any:
        begin = time.perf_counter()
        value = self.function(*args)
        took = worked(begin)
        _count(self.token, took)
        tell(_TOPIC, (os.getpid(), self.token, took))
        return value


def _count(token: str, seconds: float) -> None:
    with _lock:
        for clock in _clocks:
            clock.seconds[token] += seconds
            clock.calls[token] += 1


def _told(message: tuple[int, str, float]) -> None:
    process, token, seconds = message
    if process != os.getpid():  # workers may be threads of this process
        _count(token, seconds)


def quietly(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)`` with one BLAS thread: other tasks are at work on other cores."""
    with single_threaded():
        return function(*args)
