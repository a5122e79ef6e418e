"""How long operators were at work in this process, by their tokens."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mlopt.cluster import single_threaded
from mlopt.kernels.compiling import worked

_clocks: list[Clock] = []
_lock = threading.Lock()


@dataclass(eq=False)
class Clock:
    """Seconds at work, over all threads, and how many calls that took."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))


@contextmanager
def watching() -> Iterator[Clock]:
    """A clock of everything that ends within the block, in this process."""
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
        with _lock:
            for clock in _clocks:
                clock.seconds[self.token] += took
                clock.calls[self.token] += 1
        return value


def quietly(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)`` with one BLAS thread: other tasks are at work on other cores."""
    with single_threaded():
        return function(*args)
