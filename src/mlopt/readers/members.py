"""Arrays of ``.npz`` and ``.npy`` from the first row to the last, a few rows at a time.

Compressed or not: what is unpacked is as much as is asked for.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from mlopt.errors import InputError
from mlopt.readers.binary import check_names, features_of, header_of
from mlopt.readers.files import ZIP, File, NotAlikeError


@dataclass
class _Member:
    """An array that is read once, in order of its rows."""

    path: str
    stream: IO[bytes]
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def take(self, rows: int) -> np.ndarray:
        """The next rows."""
        wanted = rows * self.row_bytes
        content = self.stream.read(wanted)
        if len(content) < wanted:
            raise InputError(f"`{self.path}` ends early. Check that it was copied whole.")
        return np.frombuffer(bytearray(content), self.dtype).reshape(rows, *self.shape[1:])

    def take_all(self) -> np.ndarray:
        """All of a small one, which may be a single value."""
        content = self.stream.read(math.prod(self.shape) * self.dtype.itemsize)
        return np.frombuffer(content, self.dtype).reshape(self.shape)


def blocks(file: File, block_bytes: int) -> Iterator[Any]:
    """The features of consecutive rows: arrays, frames of columns side by side, or CSR.

    Parameters
    ----------
    file : File
    block_bytes : int
        Of the rows of a block.

    Raises
    ------
    NotAlikeError
        Arrays that do not lie row by row, or are no plain ones.
    InputError
        As of `read_npz`.
    """
    with ExitStack() as stack:
        stream = stack.enter_context(file.streamed())
        if file.magic.startswith(ZIP):
            archive = stack.enter_context(zipfile.ZipFile(stream))
            check_names(file, archive)
            found = {
                one.filename.removesuffix(".npy"): _member(
                    file, stack.enter_context(archive.open(one)), one.file_size
                )
                for one in archive.infolist()
            }
        else:
            found = {"X": _member(file, stream, None)}
        if "indptr" in found:
            yield from _sparse(file, found, block_bytes)
        else:
            yield from _dense(file, found, block_bytes)


def _member(file: File, stream: IO[bytes], size: int | None) -> _Member:
    try:
        shape, by_columns, dtype = header_of(file, stream, "an array", size)
    except InputError:
        raise
    except ValueError as error:
        raise NotAlikeError(f"`{file.path}` is no plain array: {error}.") from error
    if dtype.hasobject or (by_columns and len(shape) > 1):
        raise NotAlikeError(f"`{file.path}` must hold arrays that lie row by row.")
    return _Member(file.path, stream, shape, dtype)


def _dense(file: File, found: Mapping[str, _Member], block_bytes: int) -> Iterator[Any]:
    import pandas as pd

    features = features_of(found, file.path)
    taken = found if features is None else {features: found[features]}
    lengths = {one.shape[:1] for one in found.values() if len(one.shape)}
    if len(lengths) != 1 or any(not one.shape for one in found.values()):
        raise NotAlikeError(f"`{file.path}` must hold arrays of one length.")
    ((rows,),) = lengths
    each = max(1, block_bytes // max(1, sum(one.row_bytes for one in taken.values())))
    for start in range(0, rows, each):
        count = min(each, rows - start)
        block = {name: one.take(count) for name, one in taken.items()}
        if features is None:
            yield pd.DataFrame(block)
        else:
            yield block[features].reshape(count, -1)


def _sparse(file: File, found: Mapping[str, _Member], block_bytes: int) -> Iterator[Any]:
    from scipy.sparse import csr_array

    try:
        data, indices, indptr = (found[name] for name in ("data", "indices", "indptr"))
        kind = found["format"].take_all().item()
        rows, columns = map(int, found["shape"].take_all())
    except (KeyError, ValueError, TypeError) as error:
        raise NotAlikeError(f"`{file.path}` is no sparse matrix: {error}.") from error
    if kind not in (b"csr", "csr") or indptr.shape != (rows + 1,) or not rows:
        raise NotAlikeError(f"`{file.path}` must hold a matrix in CSR.")
    file.check_columns(columns)
    each = max(1, block_bytes * rows // max(1, data.shape[0] * 16))
    ends = indptr.take(1)
    for start in range(0, rows, each):
        ends = np.concatenate([ends[-1:], indptr.take(min(each, rows - start))])
        number = int(ends[-1]) - int(ends[0])
        try:
            if number < 0 or (not start and ends[0]):
                raise ValueError("a row ends before it begins")
            parts = data.take(number), indices.take(number), ends - ends[0]
            X = csr_array(parts, shape=(len(ends) - 1, columns))
            X.check_format(full_check=True)
        except (ValueError, IndexError, OverflowError, MemoryError) as error:
            raise InputError(f"`{file.path}` contradicts itself: {error}.") from error
        yield X
