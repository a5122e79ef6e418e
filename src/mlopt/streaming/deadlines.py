"""A thread that fails requests whose time is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from heapq import heappop, heappush

from mlopt.errors import DeadlineError
from mlopt.streaming.answer import Request


class Deadlines:
    """Watches requests that have a deadline; its thread starts with the first.

    Parameters
    ----------
    lock : threading.Lock
        Of the stream: `add` and `end` are called with it.
    start : callable
        Starts a thread: ``start(function, name)``.
    late : callable
        Called without the lock, with a request and its `DeadlineError`.
    """

    def __init__(
        self,
        lock: threading.Lock,
        start: Callable[[Callable[[], None], str], None],
        late: Callable[[Request, DeadlineError], None],
    ) -> None:
        self._lock, self._start, self._late = lock, start, late
        self._changed = threading.Condition(lock)
        self._due: list[tuple[float, int, Request]] = []
        self._watching = self._ended = False

    def add(self, due: float, request: Request) -> None:
        """Watch a request, until the clock says ``due``."""
        heappush(self._due, (due, request.number, request))
        if not self._watching:
            self._watching = True
            self._start(self._watch, "deadlines")
        self._changed.notify()

    def end(self) -> None:
        """Let go of the thread."""
        self._ended = True
        self._changed.notify()

    def _watch(self) -> None:
        while (request := self._next()) is not None:
            seconds = (request.deadline or 0.0) - request.submitted
            said = f"The request was not answered within {seconds:.3g} s."
            self._late(request, DeadlineError(said))
            del request

    def _next(self) -> Request | None:
        """Wait for a request that is late; None at the end."""
        with self._lock:
            while not self._ended:
                while self._due and self._due[0][2].over:
                    heappop(self._due)
                left = self._due[0][0] - time.monotonic() if self._due else None
                if left is not None and left <= 0:
                    return heappop(self._due)[2]
                self._changed.wait(left and min(left, threading.TIMEOUT_MAX))
        return None
