"""A gate that threads wait at: a condition over a ledger."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from mlopt.errors import StreamClosedError
from mlopt.streaming.credits import Ledger, Taken


class Gate:
    """Buffers feeds between stages, which wait here for what they may work on.

    Parameters
    ----------
    ledger : Ledger
    name : str
    lock : threading.Lock, optional
        Held around every look at the ledger; gates of one stream share theirs.
    tell : callable, optional
        Called with the seconds of every wait, without the lock.

    Attributes
    ----------
    waited : float
        Seconds that stages have waited here in all.
    """

    def __init__(
        self,
        ledger: Ledger,
        name: str = "gate",
        lock: Any = None,
        tell: Callable[[float], object] | None = None,
    ) -> None:
        self.ledger, self.name = ledger, name
        self.lock = lock or threading.Lock()
        self.waited = 0.0
        self._changed = threading.Condition(self.lock)
        self._waiting = 0
        self._closed = False
        self._tell = tell

    def take(self) -> Taken:
        """What goes on next; waits for it. Stages are served in the order of their calls.

        Raises
        ------
        StreamClosedError
            The gate is closed.
        """
        began = 0.0
        with self.lock:
            while not self._closed:
                taken = self.ledger.take()
                if taken is not None:
                    if self._waiting and self.ledger.buffered:
                        self._changed.notify()  # what came at once may be for several
                    break
                began = began or time.perf_counter()
                self._waiting += 1
                try:
                    self._changed.wait()
                finally:
                    self._waiting -= 1
            else:
                raise StreamClosedError(f"The gate `{self.name}` is closed.")
            if not began:
                return taken
            seconds = time.perf_counter() - began
            self.waited += seconds
        if self._tell is not None:
            self._tell(seconds)
        return taken

    def wake(self) -> None:
        """There may be something to take; the caller holds the lock."""
        if self._waiting:
            self._changed.notify()

    def close(self) -> None:
        """Whoever waits, or will, gets a `StreamClosedError`."""
        with self.lock:
            self._closed = True
            self._changed.notify_all()

    def gauges(self) -> dict[str, float]:
        """Open batches, feeds waiting and at most so far, feeds taken, seconds waited."""
        with self.lock:
            ledger = self.ledger
            return {
                "open": len(ledger.batches),
                "waiting": ledger.buffered,
                "peak": ledger.peak,
                "rounds": ledger.rounds,
                "waited": self.waited,
            }
