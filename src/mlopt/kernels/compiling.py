"""When kernels compiled in this process: said once, and not booked as a model's time."""

from __future__ import annotations

import logging
import threading
import time

from mlopt.locking import in_forks, open_in_forks

log = logging.getLogger("mlopt")

_NEWS = (
    "mlopt compiles kernels: once on this machine, a minute at most. `python -m "
    "mlopt.kernels` does it beforehand."
)
_SHOWN = 0.1
"""Seconds of compilation below which nobody need know."""

_lock = open_in_forks(threading.Lock())
_past: list[tuple[float, float]] = []
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


def compiled(since: float) -> float:
    """Seconds of compilation from ``since``, a reading of `time.perf_counter`, to now."""
    now = time.perf_counter()
    with _lock:
        present = [(_begun[0], now)] if _begun else []
        return sum(max(to - max(start, since), 0.0) for start, to in [*_past, *present])


def worked(since: float) -> float:
    """Seconds from ``since`` to now without those of compilation."""
    return max(time.perf_counter() - since - compiled(since), 0.0)


def notes(since: float) -> tuple[str, ...]:
    """What a plan says of compilation from ``since`` to now: a line, or none."""
    seconds = compiled(since)
    return (f"compiling kernels, once: {seconds:.1f} s",) if seconds > _SHOWN else ()
