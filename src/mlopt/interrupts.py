"""Ctrl-C that cannot get lost, and that finds work in a state worth keeping."""

from __future__ import annotations

import _thread
import contextlib
import queue
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any, Self

SAME = 0.3
"""Seconds within which signals are one: of a terminal and of a parent that passes it on."""


class Interrupts:
    """While open, an interruption arrives as `KeyboardInterrupt`: rather late than never.

    A signal raises `KeyboardInterrupt` wherever the program happens to be. Inside a
    call-back of compiled code (the comparison of two types, a destructor) that error is
    dropped, or comes out as another. Therefore a signal is also noted: `check`, called
    between two steps of work, raises again, and an error that leaves the block after a
    signal leaves it as `KeyboardInterrupt`.

    Within `patient` a signal is only noted, so that a step ends as it should; a second one
    raises at once, and so does a step that takes too long. Blocks may nest; a signal counts
    in all of them.

    Only the main thread hears signals; in any other this does nothing.

    Attributes
    ----------
    heard : bool
        Whether there was a signal.
    insisted : bool
        Whether there was a second one: leave everything and end.
    """

    def __init__(self) -> None:
        self.heard = False
        self.insisted = False
        self._number: int = signal.SIGINT
        self._last = -SAME
        self._patience: list[_Patience] = []
        self._earlier: dict[int, Any] = {}

    def check(self) -> None:
        """Raise if an interruption has been heard."""
        if self.heard:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def patient(self, seconds: float | None) -> Iterator[None]:
        """Let the block end in peace; after a first signal it has ``seconds`` for that.

        Parameters
        ----------
        seconds : float or None
            From the signal on, or from the start of the block if that came before. None
            to wait for as long as nobody insists.
        """
        patience = _Patience(seconds if self._earlier else None)
        self._patience.append(patience)
        try:
            if self.heard:
                patience.begin(self._number)
            yield
        finally:
            try:
                patience.end()
            finally:
                self._patience.remove(patience)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                earlier = signal.getsignal(number)
                if callable(earlier):
                    self._earlier[number] = earlier
                    signal.signal(number, self._note)
        return self

    def _around(self, number: int) -> list[Interrupts]:
        """This block and those around it."""
        outer = getattr(self._earlier.get(number), "__self__", None)
        return [self, *(outer._around(number) if isinstance(outer, Interrupts) else [])]

    def _note(self, number: int, frame: FrameType | None) -> None:
        around = self._around(number)
        handler = around[-1]._earlier[number]
        waiting = [patience for block in around for patience in block._patience]
        if not any(patience.over for patience in waiting):
            now = time.monotonic()
            if now - self._last < SAME:
                return
            for block in around:
                block._last, block._number = now, number
                block.insisted, block.heard = block.heard, True
            insisted = any(block.insisted for block in around)
            # What somebody else wants done at a signal is done at once.
            if waiting and not insisted and handler is signal.default_int_handler:
                for patience in waiting:
                    patience.begin(number)
                return
        handler(number, frame)

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


class _Patience:
    """How long a signal may wait.

    A thread of its own watches the time. It is told by a queue, which a handler of signals
    may use whatever the program was just at; a lock it may not.
    """

    def __init__(self, seconds: float | None) -> None:
        self.over = False
        self._told: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        if seconds is None:
            return
        with contextlib.suppress(
            RuntimeError
        ):  # no memory for one: a second signal ends all
            _thread.start_new_thread(self._watch, (seconds,))  # nobody waits until it runs

    def begin(self, number: int) -> None:
        """The time runs from now on."""
        self._told.put(number)

    def end(self) -> None:
        self._told.put(None)

    def _watch(self, seconds: float) -> None:
        number = self._told.get()
        if number is None:
            return
        with contextlib.suppress(queue.Empty):
            while self._told.get(timeout=seconds) is not None:
                pass  # begun already
            return
        self.over = True
        # A real signal ends a wait in compiled code, too.
        signal.pthread_kill(threading.main_thread().ident or 0, number)
