"""Kept outputs on disk: there for a later process, complete or not there.

::

    <token>.kept     pickled value | 16 bytes: digest of what is before

A file appears by being renamed, so a half-written one is never seen under its name. One
that is damaged fails its digest before anything is unpickled, counts as missing and is
removed. A pickle runs whatever its writer wants: so folder and files must belong to the
user, and nobody else may write to them. Others may not read what is written either: it
holds rows of training data.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from mlopt.errors import InputError
from mlopt.writing import finish_files, write_files

_SUFFIX = ".kept"
_DIGEST = 16
_CHUNK = 1 << 20
_TOKEN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_DAMAGE = (
    pickle.UnpicklingError,
    EOFError,
    AttributeError,
    ImportError,
    IndexError,
    TypeError,
    ValueError,
)
"""What unpickling raises for what another version of a library wrote."""


class Disk:
    """Values by token in a folder, the least recently used removed beyond a limit.

    Safe for several processes: each sees whole files only.

    Parameters
    ----------
    folder : path
        Made when it is not there, for the user alone.
    limit : float, default=inf
        Bytes of all files together.

    Raises
    ------
    InputError
        The folder belongs to somebody else, or others may write to it.
    """

    def __init__(self, folder: str | os.PathLike[str], limit: float = float("inf")) -> None:
        if not limit >= 0:
            raise InputError(f"`limit` must be at least 0 bytes, got {limit!r}.")
        self.folder = Path(folder)
        self.limit = limit
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        _check_owner(self.folder, self.folder.stat())
        finish_files(self.folder)

    def write(self, token: str, value: Any) -> int:
        """Store ``value``, and remove the least recently used beyond the limit.

        Returns
        -------
        int
            Bytes written; 0 when it is larger than the limit and so not stored.

        Raises
        ------
        OSError
            When the disk is full or the folder read-only.
        Exception
            What pickle raises for a value that cannot be pickled.
        """
        path = self._path(token)
        sizes = list[int]()
        write_files({path: lambda file: sizes.append(_dump(value, file))}, mode=0o600)
        if sizes[0] > self.limit:
            self.remove(token)
            return 0
        self._evict(path)
        return sizes[0]

    def read(self, token: str) -> Any:
        """The value of ``token``, which is then the most recently used.

        Raises
        ------
        KeyError
            When it is missing, cannot be read, or is damaged; a damaged file is removed.
        InputError
            The file belongs to somebody else, or others may write to it.
        """
        path = self._path(token)
        try:
            with path.open("rb") as file:
                _check_owner(path, os.fstat(file.fileno()))
                value = _load(file)
        except OSError as error:
            raise KeyError(token) from error
        except InputError:
            raise
        except _DAMAGE as error:
            self.remove(token)
            raise KeyError(token) from error
        with suppress(OSError):  # removed meanwhile, or a folder that is only read
            os.utime(path)
        return value

    def remove(self, token: str) -> None:
        """Forget ``token``; nothing happens when it is not there."""
        self._path(token).unlink(missing_ok=True)

    def __contains__(self, token: str) -> bool:
        return self._path(token).exists()

    @property
    def tokens(self) -> tuple[str, ...]:
        """What is there, the least recently used first."""
        return tuple(path.name.removesuffix(_SUFFIX) for path, _ in self._files())

    @property
    def bytes(self) -> int:
        """Of all files together."""
        return sum(size for _, size in self._files())

    def _path(self, token: str) -> Path:
        if not _TOKEN.fullmatch(token):
            raise InputError(
                "`token` must be 1 to 200 letters, digits, '_', '-' or '.', not starting "
                f"with a dot; got {token!r}."
            )
        return self.folder / (token + _SUFFIX)

    def _files(self) -> list[tuple[Path, int]]:
        """Files and sizes, the least recently used first."""
        found = list[tuple[int, Path, int]]()
        for path in self.folder.glob(f"[!.]*{_SUFFIX}"):
            with suppress(FileNotFoundError):  # another process removed it
                status = path.stat()
                found.append((status.st_mtime_ns, path, status.st_size))
        return [(path, size) for _, path, size in sorted(found)]

    def _evict(self, new: Path) -> None:
        """The oldest until the limit is kept; never the one just written."""
        files = self._files()
        total = sum(size for _, size in files)
        for path, size in files:
            if total <= self.limit:
                return
            if path != new:
                path.unlink(missing_ok=True)
                total -= size


class _Hashing:
    """A file that digests what is written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.digest = hashlib.blake2b(digest_size=_DIGEST)

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self.file.write(data)


def _check_owner(path: Path, found: os.stat_result) -> None:
    """What others can write must not be unpickled."""
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.getuid() or mode & _OTHERS_WRITE:
        raise InputError(
            f"`{path}` must belong to the user and be writable by nobody else, as what is "
            f"kept there is run when it is read; it belongs to user {found.st_uid} and has "
            f"mode {mode:o}. Run `chmod go-w` on it, or name another folder."
        )


def _dump(value: Any, file: BinaryIO) -> int:
    """Write the value and its digest; bytes written."""
    hashing = _Hashing(file)
    pickle.dump(value, hashing, protocol=5)
    file.write(hashing.digest.digest())
    return file.tell()


def _load(file: BinaryIO) -> Any:
    left = file.seek(0, os.SEEK_END) - _DIGEST
    if left < 0:
        raise EOFError("shorter than a digest")
    file.seek(0)
    digest = hashlib.blake2b(digest_size=_DIGEST)
    while left:
        chunk = file.read(min(left, _CHUNK))
        digest.update(chunk)
        left -= len(chunk)
    if file.read() != digest.digest():
        raise EOFError("not what was written")
    file.seek(0)
    return pickle.load(file)
