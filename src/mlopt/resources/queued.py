"""What other work on the machine takes from a thread."""

from __future__ import annotations

import os
from contextlib import suppress

_QUEUE = "/proc/thread-self/schedstat"
_MOST = 128
"""Bytes that it has at most: three numbers."""


def queued() -> float:
    """Seconds for which this thread was ready to run and waited for a core, so far.

    0 where the system does not tell (it is Linux that does). A thread that waits for a
    lock, as the interpreter's, is not ready.
    """
    with suppress(OSError, ValueError, IndexError):
        # No file object: a thread that is told to end here would leave it open.
        number = os.open(_QUEUE, os.O_RDONLY)
        try:
            said = os.read(number, _MOST)
        finally:
            os.close(number)
        return 1e-9 * int(said.split()[1])
    return 0.0
