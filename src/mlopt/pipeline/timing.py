"""How long the tasks of each layer took in this process."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mlopt.cluster import single_threaded

_clocks: list[Clock] = []
_lock = threading.Lock()


class Clock:
    """Seconds that tasks were at work, by the name of their layer, over all threads."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.tasks: dict[str, int] = defaultdict(int)


@contextmanager
def watching() -> Iterator[Clock]:
    """A clock of all tasks that end within the block, in this process."""
    clock = Clock()
    with _lock:
        _clocks.append(clock)
    try:
        yield clock
    finally:
        with _lock:
            _clocks.remove(clock)


def quietly(name: str, function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)`` with one BLAS thread: other tasks are at work on other cores."""
    begin = time.perf_counter()
    with single_threaded():
        value = function(*args)
    took = time.perf_counter() - begin
    with _lock:
        for clock in _clocks:
            clock.seconds[name] += took
            clock.tasks[name] += 1
    return value
