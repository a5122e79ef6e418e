"""A clock that a test moves: what is judged by time is judged on any machine."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

_MEET = 30.0
"""Seconds of the wall after which a thread has no company: a test has failed."""


class Clock:
    """Seconds that pass only where work is said to take them.

    Parameters
    ----------
    threads : int
        That a pool gives work to at once.
    """

    def __init__(self, threads: int = 2) -> None:
        self.now = 0.0
        self._barrier = threading.Barrier(threads)
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Clock], tuple[()]]:
        return Clock, ()

    def perf_counter(self) -> float:
        """The time, in seconds."""
        return self.now

    def alone(self, seconds: float) -> None:
        """Work of whatever thread, with no other at its side."""
        with self._lock:
            self.now += seconds

    def beside(self, seconds: float) -> None:
        """Work that other threads go on beside: all of a pool begin it together."""
        self._meet()
        end = self.now + seconds
        self._meet()
        with self._lock:
            self.now = max(self.now, end)

    def holding(self, seconds: float) -> None:
        """Work that all other threads wait for, as for Python's lock."""
        self._meet()
        with self._lock:
            self.now += seconds
        self._meet()

    def install(self, monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
        """Let modules that say ``time.perf_counter()``, or monotonic, read this clock."""
        self.now = time.perf_counter()
        for module in modules:
            read = self.perf_counter
            # A thread that is never waited for has worked all the time.
            here = SimpleNamespace(perf_counter=read, monotonic=read, thread_time=read)
            monkeypatch.setattr(f"{module}.time", here)

    def _meet(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            self._barrier.wait(_MEET)
