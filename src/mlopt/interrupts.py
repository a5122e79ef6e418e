"""Ctrl-C that cannot get lost."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupts:
    """While open, an interruption arrives as `KeyboardInterrupt`: rather late than never.

    A signal raises `KeyboardInterrupt` wherever the program happens to be. Inside a
    call-back of compiled code (the comparison of two types, a destructor) that error is
    dropped, or comes out as another. Therefore a signal is also noted: `check`, called
    between two steps of work, raises again, and an error that leaves the block after a
    signal leaves it as `KeyboardInterrupt`.

    Only the main thread hears signals; in any other this does nothing.
    """

    def __init__(self) -> None:
        self.heard = False
        self._earlier: dict[int, Any] = {}

    def check(self) -> None:
        """Raise if an interruption has been heard."""
        if self.heard:
            raise KeyboardInterrupt

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                earlier = signal.getsignal(number)
                if callable(earlier):
                    self._earlier[number] = earlier
                    signal.signal(number, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.heard = True
        self._earlier[number](number, frame)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, earlier in self._earlier.items():
            signal.signal(number, earlier)
        if self.heard and isinstance(error, Exception):
            raise KeyboardInterrupt from error
