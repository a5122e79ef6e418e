"""When kernels compiled in this process, or were read from disk: said, and not booked as a
model's time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mlopt.locking import in_forks, open_in_forks

log = logging.getLogger("mlopt")

_NEWS = (
    "mlopt compiles kernels: once on this machine, a minute at most. `python -m "
    "mlopt.kernels` does it beforehand."
)
_SHOWN = 0.1
"""Seconds below which nobody need know."""

_lock = open_in_forks(threading.Lock())
_past: list[tuple[float, float]] = []
_loads: list[tuple[float, float]] = []
_begun: list[float] = []
_said = threading.Event()
in_forks(_begun.clear)


def silence() -> None:
    """Say nothing in this process: it was asked to compile."""
    _said.set()


def begin() -> None:
    """A kernel begins to compile, perhaps within another."""
    with _lock:
        _begun.append(time.perf_counter())
    if not _said.is_set():
        _said.set()
        log.warning(_NEWS)


def end() -> None:
    """The kernel that began last is compiled."""
    with _lock:
        started = _begun.pop()
        if not _begun:
            _past.append((started, time.perf_counter()))


@contextmanager
def loading() -> Iterator[None]:
    """A kernel is read from disk; what is read while another compiles is part of that.

    The first takes longest by far: Numba then makes all the types that it knows.
    """
    started = time.perf_counter()
    try:
        yield
    finally:
        with _lock:
            if not _begun:
                _loads.append((started, time.perf_counter()))


def compiled(since: float) -> float:
    """Seconds of compilation from ``since``, a reading of `time.perf_counter`, to now."""
    now = time.perf_counter()
    with _lock:
        present = [(_begun[0], now)] if _begun else []
        return _sum([*_past, *present], since)


def loaded(since: float) -> float:
    """Seconds in which kernels were read from disk since then."""
    with _lock:
        return _sum(_loads, since)


def once(since: float) -> float:
    """Seconds of both, which the next fit will not take."""
    return compiled(since) + loaded(since)


def worked(since: float) -> float:
    """Seconds from ``since`` to now without those that come once."""
    return max(time.perf_counter() - since - once(since), 0.0)


def notes(since: float) -> tuple[str, ...]:
    """What a plan says of both from ``since`` to now: a line each, or none."""
    both = (
        ("compiling kernels, once", compiled(since)),
        ("loading kernels, once in this process", loaded(since)),
    )
    return tuple(f"{what}: {s:.1f} s" for what, s in both if s > _SHOWN)


def _sum(spans: list[tuple[float, float]], since: float) -> float:
    """Seconds of spans, as far as they are later than ``since``."""
    return sum(max(to - max(start, since), 0.0) for start, to in spans)
