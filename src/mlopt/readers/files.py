"""Files as they are or compressed, and how much of them may be read."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from mlopt.errors import InputError, did_you_mean
from mlopt.resources.probe import memory_limit

# Enough for some rows of a table with 100,000 columns.
HEAD = 1 << 21
# A text in memory, the frame made of it, and what models make of that.
_SHARE = 4
# For a column of a sparse matrix: its name, and a weight and moments of it in models.
_COLUMN_BYTES = 256

ZIP = (b"PK\x03\x04", b"PK\x05\x06")
"""What archives begin with; the second, those without a member."""
PARQUET = b"PAR1"
"""What Parquet files begin with."""
STREAMS = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ")
"""What gzip, bz2 and xz begin with."""
_BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


class NotAlikeError(InputError):
    """A file whose blocks would not be read as the whole is."""


@dataclass(frozen=True)
class File:
    """A readable file that is not empty.

    Attributes
    ----------
    path : str
    head : bytes
        Its beginning, decompressed.
    whole : bool
        Whether the head is all there is.
    """

    path: str
    head: bytes
    whole: bool

    @staticmethod
    def at(path: str) -> File:
        """The file at ``path``, checked."""
        where = Path(path).expanduser()
        if not where.exists():
            raise InputError(f"`{path}` does not exist.{_neighbour(where)}")
        if where.is_dir():
            raise InputError(f"`{path}` must be a file, but is a folder: name one in it.")
        if not where.is_file():
            raise InputError(
                f"`{path}` must be a file, but is a pipe or a device: write what comes "
                "from it to a file first."
            )
        with _readable(path), _opened(where) as stream:
            head = stream.read(HEAD)
        if not head:
            raise InputError(f"`{path}` must hold data, but is empty.")
        return File(path, head, len(head) < HEAD)

    @property
    def magic(self) -> bytes:
        """The first bytes, which tell binary formats."""
        return self.head[:8]

    @property
    def is_parquet(self) -> bool:
        """Whether it is a table of Parquet."""
        return self.magic.startswith(PARQUET)

    @property
    def is_numpy(self) -> bool:
        """Whether it holds arrays: a ``.npy``, or an archive, as ``.npz`` is."""
        return self.magic.startswith((*ZIP, b"\x93NUMPY"))

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """The decompressed content; errors while reading name the file.

        Compressed content is read whole first, and refused when it grows beyond a share of
        memory: a small file may hold anything.
        """
        where = Path(self.path).expanduser()
        limit = memory_limit() // _SHARE
        with _readable(self.path), _opened(where) as stream:
            if isinstance(stream, io.BufferedReader):
                self.check_size(where.stat().st_size, limit)
                yield stream
                return
            content = stream.read(limit + 1)
            self.check_size(len(content), limit)
            yield io.BytesIO(content)

    @contextmanager
    def streamed(self) -> Iterator[IO[bytes]]:
        """The decompressed content, of any length, for readers that keep little of it."""
        with _readable(self.path), _opened(Path(self.path).expanduser()) as stream:
            yield stream

    def check_size(self, size: int, limit: int | None = None) -> None:
        """Refuse ``size`` bytes when they are more than a share of memory."""
        most = memory_limit() // _SHARE if limit is None else limit
        if size > most:
            raise InputError(
                f"`{self.path}` holds more than the {most / 2**30:.1f} GB that may be read "
                "at once here: take a sample, or read it with `dask.dataframe` and search "
                "from Python."
            )

    def check_columns(self, number: int, what: str = "columns") -> None:
        """Refuse a sparse matrix with too many columns, or rows, for models of them."""
        most = memory_limit() // _COLUMN_BYTES
        if number > most:
            raise InputError(
                f"`{self.path}` must have at most {most:,} {what} here, but has "
                f"{number:,} by its largest index or its shape: is that one of them?"
            )


@dataclass(frozen=True)
class Content(File):
    """What is in memory already: ``head`` is all of it, ``path`` what to call it."""

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """The content."""
        yield io.BytesIO(self.head)


@contextmanager
def _readable(path: str) -> Iterator[None]:
    try:
        yield
    except _BROKEN as error:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            raise InputError(
                f"`{path}` cannot be read: too many open files. Close some, or raise the "
                "limit of the process (`ulimit -n`)."
            ) from error
        raise InputError(
            f"`{path}` cannot be read: {error or type(error).__name__}. Check its "
            "permissions, and that it was copied whole."
        ) from error


@contextmanager
def _opened(where: Path) -> Iterator[Any]:
    """The content, decompressed by what the file begins with."""
    with where.open("rb") as raw:
        magic = raw.read(6)
        raw.seek(0)
        if magic.startswith(STREAMS[0]):
            with gzip.GzipFile(fileobj=raw) as stream:
                yield stream
        elif magic.startswith(STREAMS[1]):
            with bz2.BZ2File(raw) as stream:
                yield stream
        elif magic.startswith(STREAMS[2]):
            with lzma.LZMAFile(raw) as stream:
                yield stream
        elif magic.startswith(ZIP) and _one_member(raw):
            with zipfile.ZipFile(raw) as archive:
                try:
                    member = archive.open(_one_member(raw))
                except RuntimeError as error:  # a password, or a method that it lacks
                    raise zipfile.BadZipFile(str(error)) from error
                with member:
                    yield member
        else:
            yield raw


def _one_member(raw: IO[bytes]) -> str:
    """The only file of an archive; nothing for what numpy writes, or for several."""
    names = [name for name in zipfile.ZipFile(raw).namelist() if not name.endswith("/")]
    raw.seek(0)
    data = [name for name in names if not name.startswith("__MACOSX")]
    return data[0] if len(data) == 1 and not data[0].endswith(".npy") else ""


def _neighbour(where: Path) -> str:
    """A file beside ``where`` with a similar name, as advice."""
    if not where.parent.is_dir():
        return f" Nor does the folder `{where.parent}`: check the path."
    names = sorted(entry.name for entry in where.parent.iterdir())
    return did_you_mean(where.name, names) or f" Files are looked for in `{Path.cwd()}`."
