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
from mlopt.hearing import heard_once, of_block
from mlopt.kernels.compiling import worked
from mlopt.locking import open_in_forks
from mlopt.pipeline.blocks.tables import count_entries, count_rows

_TOPIC = "mlopt-seconds"
"""Under which workers log what ran: Dask keeps the last of it, for who asks later."""

_clocks: list[Clock] = []
_lock = open_in_forks(threading.Lock())


@dataclass(eq=False)
class Clock:
    """What operators did, by their tokens.

    Attributes
    ----------
    seconds : dict of token to float
        Of the run, as `share` and `split` tell it.
    done : dict of token to int
        Rows made, or models fitted.
    stored, entries : dict of token to int
        Entries of rows put side by side: those that are stored, and all.
    """

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    done: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    stored: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    entries: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _calls: list[tuple[float, float, str]] = field(default_factory=list)

    def add(
        self,
        token: str,
        begin: float,
        end: float,
        done: int,
        stored: int = 0,
        entries: int = 0,
    ) -> None:
        """One call, between two times of day."""
        with _lock:
            self._calls.append((begin, end, token))
            self.done[token] += done
            self.stored[token] += stored
            self.entries[token] += entries

    def share(self) -> None:
        """Each moment since belongs to the calls that were at work in it, in equal parts.

        So that operators add up to no more than the run took, and what ran alone took all.
        """
        calls = self._taken()
        ends = [(at, 1, token) for at, _, token in calls]
        ends += [(at, -1, token) for _, at, token in calls]
        busy: dict[str, int] = defaultdict(int)
        before = 0.0
        for at, more, token in sorted(ends):
            each = (at - before) / max(1, sum(busy.values()))
            for one, times in busy.items():
                self.seconds[one] += times * each
            busy[token] += more
            if not busy[token]:
                del busy[token]
            before = at

    def split(self, slots: int) -> float:
        """Calls since took one slot of so many: what has no clock was at work on others.

        Returns the seconds of all of them.
        """
        calls = self._taken()
        for begin, end, token in calls:
            self.seconds[token] += (end - begin) / slots
        return sum(end - begin for begin, end, _ in calls) / slots

    def _taken(self) -> list[tuple[float, float, str]]:
        with _lock:
            calls, self._calls = self._calls, []
        return calls


@contextmanager
def watching(clock: Clock, executor: Executor) -> Iterator[None]:
    """Everything that ends within the block counts, here and on workers."""
    executor.listen(_TOPIC, _told)
    with _lock:
        _clocks.append(clock)
    try:
        with heard_once():
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
        with of_block("" if self.done is a_model else self.token):
            value = self.function(*args)
        end = time.time()
        span = end - worked(begin), end
        done = int(self.done(value))
        entries = count_entries(*args) if self.joins else (0, 0)
        _count(self.token, *span, done, *entries)
        tell(_TOPIC, (os.getpid(), self.token, *span, done, *entries))
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
