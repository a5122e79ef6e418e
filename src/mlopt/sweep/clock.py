"""Time since the start of a sweep, what each step took, and who is told."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from mlopt import events

T = TypeVar("T")


class Clock:
    """Starts when it is made; ``observer`` hears every sentence that is told."""

    def __init__(self, observer: events.Observer) -> None:
        self.started = time.monotonic()
        self.observer = observer
        self.seconds: dict[str, float] = {}

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def tell(self, text: str) -> None:
        """Send a sentence to the observer."""
        self.observer(events.Message(self.elapsed, text))

    def from_now(self) -> events.Observer:
        """An observer for a part that counts its own seconds from now."""
        begin = self.elapsed
        return lambda e: self.observer(replace(e, elapsed=e.elapsed + begin))

    def measure(self, step: str, work: Callable[[], T]) -> T:
        """The value of ``work()``; its seconds are noted under ``step``."""
        begin = time.monotonic()
        value = work()
        self.seconds[step] = time.monotonic() - begin
        return value
