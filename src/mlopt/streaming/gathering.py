"""Threads that make one answer of the results of a request, as these come."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from mlopt.errors import StreamClosedError
from mlopt.streaming.answer import Feeds, Request
from mlopt.streaming.credits import Taken
from mlopt.streaming.flow import Flow
from mlopt.streaming.stage import Stage, check_result


class Gathering:
    """A thread for each open request at most; `opened` and `end` are called with the lock.

    Parameters
    ----------
    stage : Stage
        The user's function of an iterator.
    flow : Flow
    lock : threading.Lock
    start : callable
        Starts a thread: ``start(function, name)``.
    freed : callable
        Called with the lock when credits have come back.
    answered, failed : callable
        Called without the lock, with a request and its answer, or error.
    """

    def __init__(
        self,
        stage: Stage,
        flow: Flow,
        lock: threading.Lock,
        start: Callable[[Callable[[], None], str], None],
        freed: Callable[[], None],
        answered: Callable[[Request, Any], None],
        failed: Callable[[Request, BaseException], None],
    ) -> None:
        self._stage, self._flow, self._lock = stage, flow, lock
        self._start, self._freed = start, freed
        self._answered, self._failed = answered, failed
        self._changed = threading.Condition(lock)
        self._opened: deque[Request] = deque()
        self._idle = 0
        self._ended = False

    def opened(self, request: Request) -> None:
        """A request has begun: somebody must wait for its results."""
        self._opened.append(request)
        if self._idle < len(self._opened):
            self._start(self._work, self._stage.name)
        self._changed.notify()

    def end(self) -> None:
        """Let go of threads that have nothing to gather."""
        self._ended = True
        self._changed.notify_all()

    def _work(self) -> None:
        while (request := self._wait()) is not None:
            held: list[Taken] = []
            feeds = Feeds(request.given, partial(self._next, request, held))
            try:
                result = self._stage.function(feeds)
                check_result(self._stage.name, result)
            except BaseException as error:
                self._give_back(held)
                self._failed(request, error)
            else:
                self._give_back(held)
                self._answered(request, result)
                del result
            del request, feeds, held

    def _wait(self) -> Request | None:
        with self._lock:
            self._idle += 1
            self._changed.wait_for(lambda: self._opened or self._ended)
            self._idle -= 1
            return self._opened.popleft() if self._opened else None

    def _next(self, request: Request, held: list[Taken]) -> Any:
        """The next result of a request; the one before is needed no more."""
        self._give_back(held)
        with self._lock:
            while True:
                if request.over:
                    raise request.error or StreamClosedError("The request is over.")
                if (taken := self._flow.next_result(request)) is not None:
                    held.append(taken)
                    return taken.feed[0]
                if self._flow.complete(request):
                    raise StopIteration
                request.arrived.wait()

    def _give_back(self, held: list[Taken]) -> None:
        with self._lock:
            while held:
                self._flow.consumed(held.pop())
                self._freed()
