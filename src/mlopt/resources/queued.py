"""What other work on the machine takes from a thread."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_QUEUE = Path("/proc/thread-self/schedstat")


def queued() -> float:
    """Seconds for which this thread was ready to run and waited for a core, so far.

    0 where the system does not tell (it is Linux that does). A thread that waits for a
    lock, as the interpreter's, is not ready.
    """
    with suppress(OSError, ValueError, IndexError):
        return 1e-9 * int(_QUEUE.read_bytes().split()[1])
    return 0.0
