"""The command `mlopt`, or ``python -m mlopt``: hears Ctrl-C before the rest is loaded."""

from __future__ import annotations

import os
import signal
import sys
import threading
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any

from mlopt.interrupts import Interrupts

LOADING = 5.0
"""Seconds that the command line may take to load after Ctrl-C: then it can say good-bye."""


def main() -> None:
    """Run the command line and exit with its status, whatever still runs."""
    # A polite kill is Ctrl-C from afar: results are kept, workers end.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.unraisablehook = _tell
    _open_streams()
    try:
        with Interrupts() as interrupts:
            with interrupts.patient(LOADING):
                from mlopt import cli, statuses
            interrupts.check()
            status = statuses.status_of(cli.run_arguments)
    except KeyboardInterrupt:
        from mlopt import statuses

        status = statuses.interrupted()
    _leave(status)


def _open_streams() -> None:
    """What is printed is UTF-8, as files are; where nobody listens it goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    if isinstance(sys.stderr, TextIOWrapper) and sys.stderr is sys.__stderr__:
        said = BufferedWriter(_Said(sys.stderr.fileno(), "w", closefd=False))
        sys.stderr = TextIOWrapper(
            said, sys.stderr.encoding, sys.stderr.errors, line_buffering=True
        )


class _Said(FileIO):
    """What is told goes nowhere once its reader has left: the work goes on."""

    def write(self, content: Any, /) -> int:
        """As of `FileIO`."""
        try:
            return super().write(content)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return super().write(content)


def _tell(dropped: sys.UnraisableHookArgs) -> None:
    """A Ctrl-C that a call-back drops is noted, and will be heard: no news."""
    if not issubclass(dropped.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)


def _leave(status: int) -> None:
    """Everything is said and written: neither a signal nor a fit that hangs matters now."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    # CPython notes that Ctrl-C left code made from text (`exec`), whoever caught it since,
    # and dies of the signal after `python -m`; it forgets at the next such code.
    eval("None")
    left = [t for t in threading.enumerate() if t.daemon and t.name.startswith("mlopt_")]
    if left:  # compiled code may not survive the end of the interpreter
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    main()
