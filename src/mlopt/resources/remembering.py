"""Experience on disk, beside the rates of this machine: read, added to, and forgotten.

Several processes write one file: each adds its fits to what the file holds now, under a
lock, and moves a whole new file into place. What cannot be written waits in this process,
where it counts all the same.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mlopt.resources import cache
from mlopt.resources.experience import Experience, Seen

SETTING = "mlopt.remember"
"""Of ``dask.config``, and DASK_MLOPT__REMEMBER of the environment; on unless false."""
_MOST = 100
"""Fits that wait for a file that can be written; older ones are forgotten."""

_lock = threading.Lock()
_waiting: list[Seen] = []
_last: tuple[object, Experience] = (None, Experience())


def remembers() -> bool:
    """Whether the user lets fits be remembered."""
    import dask.config

    return bool(dask.config.get(SETTING, True))


def experience() -> Experience | None:
    """What this machine remembers; None where it must not."""
    if not remembers():
        return None
    with _lock:
        return _read(_file()).after(_waiting)


def remember(seen: Iterable[Seen]) -> None:
    """Add fits to what is remembered, unless the user does not want that."""
    if not remembers():
        return
    with _lock:
        _waiting.extend(seen)
        del _waiting[:-_MOST]
        with suppress(OSError, RuntimeError), _only_writer(_file()):  # no home, no matter
            found = _read(_file()).after(_waiting)
            if cache.store_experience(_machine(), found):
                _waiting.clear()


def forget() -> None:
    """Remember nothing of this machine."""
    with _lock, suppress(OSError, RuntimeError):
        _waiting.clear()
        _file().unlink(missing_ok=True)


def _machine() -> dict[str, str]:
    return cache.of_one_thread(cache.identity(1))


def _file() -> Path:
    return cache.path(_machine(), cache.EXPERIENCE)


def _read(file: Path) -> Experience:
    """What the file holds; it is read again when it is another one."""
    global _last
    try:
        status = file.stat()
    except (OSError, RuntimeError):
        return Experience()
    stamp = str(file), status.st_ino, status.st_mtime_ns, status.st_size
    if _last[0] != stamp:
        _last = stamp, cache.load_experience(_machine())
    return _last[1]


@contextmanager
def _only_writer(file: Path) -> Iterator[None]:
    """Holds the lock of the file.

    Raises
    ------
    OSError
        When another process holds it, or there cannot be one: nobody waits for it.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    number = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(number)
