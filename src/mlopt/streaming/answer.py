"""What a caller holds of a request, and what a gathering function sees of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from mlopt.errors import InputError


class Answer(Future):
    """The future of a request: ``result(timeout)``, ``cancel()``, callbacks, as any other.

    Unlike that of a pool, it can be cancelled for as long as it has no result: what the
    request holds is freed.
    """

    def __init__(self, cancel: Callable[[], None]) -> None:
        super().__init__()
        self._free = cancel
        self._deciding = threading.RLock()

    def cancel(self) -> bool:
        """Whether the request is cancelled; False where it has its result."""
        with self._deciding:
            if self.cancelled():
                return True
            if not super().cancel():
                return False
            self.set_running_or_notify_cancel()
        self._free()
        return True

    def settle(self, result: Any = None, error: BaseException | None = None) -> None:
        """Give the result, or what went wrong, unless it is cancelled."""
        with self._deciding:
            if self.cancelled():
                return
            self.set_running_or_notify_cancel()
        if error is None:
            self.set_result(result)
        else:
            self.set_exception(error)


class Request:
    """A request on its way: compared and hashed by identity."""

    __slots__ = (
        "answer", "arrived", "cut", "deadline", "error", "feeds", "given", "iterator",
        "number", "opened", "over", "submitted",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        given: Any,
        deadline: float | None,
        lock: threading.Lock,
        cut: Callable[[Iterator[Any]], Iterator[Any]] = iter,
    ) -> None:
        self.cut = cut
        self.number, self.given, self.deadline = number, given, deadline
        self.submitted, self.opened = time.monotonic(), 0.0
        self.answer: Answer | None = None
        self.iterator: Iterator[Any] | None = None
        self.arrived = threading.Condition(lock)
        self.over = False
        self.error: BaseException | None = None
        self.feeds = 0

    def next_feed(self) -> Any:
        """The next feed; what was given is first looked at here, in a source's thread."""
        if self.iterator is None:
            if self.over:
                raise StopIteration  # nobody waits: not looked at once more
            given = self.given
            try:
                feeds = iter(given if isinstance(given, Iterable) else given())
            except StopIteration as error:  # would pass for a request without feeds
                raise RuntimeError("it raised StopIteration") from error
            self.iterator = self.cut(feeds)
        return next(self.iterator)


class Feeds(Iterator[Any]):
    """The results of one request, in order, as a gathering function goes through them.

    Attributes
    ----------
    request : object
        What was submitted.
    """

    def __init__(self, request: Any, advance: Callable[[], Any]) -> None:
        self.request = request
        self._advance = advance

    def __next__(self) -> Any:
        return self._advance()


def check_request(given: Any) -> None:
    """Refuse what is no sequence of feeds.

    Raises
    ------
    InputError
    """
    if isinstance(given, str | bytes) or not (
        callable(given) or isinstance(given, Iterable)
    ):
        raise InputError(
            "A request must be a sequence of feeds, or a function that gives one, got "
            f"{given!r:.60}: put a single feed into a list."
        )
