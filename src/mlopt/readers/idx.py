"""IDX, the format of MNIST: a header of sizes, then the values of an array.

Two zero bytes, a code of the type, the number of axes; then a big-endian 32-bit size for
each axis, then big-endian values, the last axis running fastest (LeCun, Cortes, Burges,
"The MNIST database of handwritten digits").
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mlopt.errors import InputError
from mlopt.readers.files import File
from mlopt.readers.lazily import in_blocks

_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def read_idx(path: str | Path, *, block_rows: int | None = None) -> Any:
    """The array in an IDX file, as it is or compressed.

    Parameters
    ----------
    path : str or Path
    block_rows : int, optional
        Give a dask array whose blocks of so many rows are read when they are needed.
        Only of a file that is not compressed: others must be read from the start.

    Returns
    -------
    ndarray or dask array
        Images of shape (n, height, width), labels of shape (n,), in the type of the file
        and the byte order of the machine.

    Raises
    ------
    InputError
        When the file is not there, is no IDX file, or holds fewer or more bytes than its
        header says.
    """
    file = File.at(str(path))
    dtype, shape, start = _header(file)
    expected = math.prod(shape) * dtype.itemsize
    native = dtype.newbyteorder("=")
    if block_rows is not None:
        if _compressed(file):
            raise InputError(
                f"`{path}` is compressed, so its blocks cannot be read by themselves: "
                "decompress it, or leave `block_rows` out."
            )
        _check_bytes(file, Path(path).expanduser().stat().st_size - start, expected)
        read = partial(_rows, str(path), dtype, shape, start)
        return in_blocks(read, shape, native, block_rows)
    with file.opened() as stream:
        values = stream.read()[start:]
    _check_bytes(file, len(values), expected)
    return np.frombuffer(values, dtype).reshape(shape).astype(native)


def read_idx_pair(
    images: str | Path, labels: str | Path, *, block_rows: int | None = None
) -> tuple[Any, np.ndarray]:
    """(X, y): images of shape (n, height, width), and a label each.

    Raises
    ------
    InputError
        As `read_idx`, and when there are not as many labels as images.
    """
    X, y = read_idx(images, block_rows=block_rows), read_idx(labels)
    if y.ndim != 1 or len(X) != len(y):
        raise InputError(
            f"`{labels}` must hold a label for each of {len(X)} images in `{images}`, but "
            f"has shape {y.shape}."
        )
    return X, y


def _header(file: File) -> tuple[np.dtype, tuple[int, ...], int]:
    """The type, the sizes, and where values begin."""
    magic = file.head[:4]
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _TYPES or not magic[3]:
        raise InputError(
            f"`{file.path}` must begin as IDX does, with two zero bytes, a type in "
            f"{sorted(_TYPES)} and the number of axes, but begins with {list(magic)}."
        )
    start = 4 + 4 * magic[3]
    if len(file.head) < start:
        raise InputError(
            f"`{file.path}` must have a header of {start} bytes, but ends after "
            f"{len(file.head)}: it was not copied whole."
        )
    sizes = np.frombuffer(file.head[4:start], ">u4")
    return np.dtype(_TYPES[magic[2]]), tuple(map(int, sizes)), start


def _check_bytes(file: File, got: int, expected: int) -> None:
    if got != expected:
        state = "was not copied whole" if got < expected else "holds something else behind"
        raise InputError(
            f"`{file.path}` must hold {expected} bytes of values by its header, but holds "
            f"{got}: it {state}."
        )


def _compressed(file: File) -> bool:
    with Path(file.path).expanduser().open("rb") as raw:
        return raw.read(4) != file.head[:4]


def _rows(
    path: str, dtype: np.dtype, shape: tuple[int, ...], start: int, first: int, stop: int
) -> np.ndarray:
    where = Path(path).expanduser()
    values = np.memmap(where, dtype, mode="r", offset=start, shape=shape)
    return np.array(values[first:stop], dtype.newbyteorder("="))
