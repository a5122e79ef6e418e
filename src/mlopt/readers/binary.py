"""Parquet and numpy's ``.npz``: typed columns and matrices."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from mlopt.errors import InputError
from mlopt.readers.files import ZIP, File
from mlopt.readers.table import Table, column, listed, table_of

_FEATURES = ("x", "data", "features", "x_train")
_TARGETS = ("y", "target", "label", "labels", "y_train")


def read_parquet(file: File, target: str | int | None) -> Table:
    """A Parquet file."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    with file.opened() as stream:
        try:
            file.check_size(group_bytes(pq.ParquetFile(stream).metadata))
            frame = pd.read_parquet(stream)
        except pa.ArrowException as error:
            raise unreadable(file, error) from error
    return table_of(as_of_text(frame), target, file.path)


def unreadable(file: File, error: Exception) -> InputError:
    """What to tell of a file that Arrow would not read as Parquet."""
    return InputError(
        f"`{file.path}` cannot be read as Parquet: {str(error).rstrip('.')}. If it is "
        "Parquet it is not whole: copy it again."
    )


def as_of_text(frame: Any) -> Any:
    """A frame of Parquet with names, and gaps, as those of other formats have them."""
    frame.columns = frame.columns.map(str)
    # Below pandas 3 text has None where that of other formats has NaN.
    objects = frame.columns[(frame.dtypes == np.dtype(object)).to_numpy()]
    frame[objects] = frame[objects].where(frame[objects].notna(), np.nan)
    return frame


def group_bytes(metadata: Any) -> int:
    """What the groups of rows of a Parquet file unpack to."""
    groups = range(metadata.num_row_groups)
    return sum(metadata.row_group(number).total_byte_size for number in groups)


def value_bytes(metadata: Any) -> int:
    """What the values of a Parquet file take at least in memory, where each is a number or
    points to a text: packed, any number of equal ones take next to nothing.
    """
    values = int(metadata.num_rows * metadata.num_columns)
    return max(group_bytes(metadata), 8 * values)


def read_npz(file: File, target: str | int | None) -> Table:
    """Named arrays: a matrix and a target, columns side by side, or one sparse matrix."""
    with file.opened() as stream:
        try:
            arrays = _arrays(file, stream)
        except InputError:
            raise
        except (ValueError, KeyError, OverflowError) as error:
            raise InputError(
                f"`{file.path}` must hold plain arrays of numbers or text (pickled objects "
                f"are not loaded): {error}."
            ) from error
    if "indptr" in arrays:
        return _sparse(arrays, target, file)
    return _dense(arrays, target, file.path)


def _arrays(file: File, stream: IO[bytes]) -> dict[str, np.ndarray]:
    content = io.BytesIO(stream.read())
    if file.magic.startswith(ZIP):
        with zipfile.ZipFile(content) as archive:
            _check_members(file, archive)
    else:
        header_of(file, content, "it", len(content.getbuffer()))
    content.seek(0)
    loaded = np.load(content, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return {"X": loaded}
    return {name: loaded[name] for name in loaded.files}


def check_names(file: File, archive: zipfile.ZipFile) -> None:
    """Refuse an archive of something else than arrays."""
    names = archive.namelist()
    if not all(name.endswith(".npy") for name in names):
        raise InputError(
            f"`{file.path}` must hold one table, but is an archive of {listed(names)}: "
            "unpack it and name one of them."
        )


def _check_members(file: File, archive: zipfile.ZipFile) -> None:
    check_names(file, archive)
    file.check_size(sum(member.file_size for member in archive.infolist()))
    for member in archive.infolist():
        with archive.open(member) as stream:
            name = f"`{member.filename.removesuffix('.npy')}`"
            header_of(file, stream, name, member.file_size)


def header_of(
    file: File, stream: IO[bytes], name: str, size: int | None
) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether columns come first, and type of an array; refuses one whose header
    promises more than there is, before it is made.
    """
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"{name} is of version {version}")
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, by_columns, dtype = read(stream)
    promised = math.prod(shape) * dtype.itemsize
    if size is not None and not dtype.hasobject and promised > size:
        raise InputError(
            f"`{file.path}` cannot be read: {name} promises {promised:,} bytes, shape "
            f"{shape}, but holds {size:,} at most. Check that it was copied whole."
        )
    return shape, by_columns, dtype


def _sparse(
    arrays: Mapping[str, np.ndarray], target: str | int | None, file: File
) -> Table:
    import scipy.sparse as sp

    path = file.path
    try:
        parts = tuple(arrays[name] for name in ("data", "indices", "indptr"))
        kind = arrays["format"].item()
        kind = kind.decode() if isinstance(kind, bytes) else kind
        rows, columns = (int(size) for size in arrays["shape"])
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(
            f"`{path}` must hold a sparse matrix as `scipy.sparse.save_npz` writes it: "
            f"{error}."
        ) from error
    if kind not in ("csr", "csc"):
        raise InputError(f"`{path}` must hold CSR or CSC, got {kind}: save `X.tocsr()`.")
    file.check_columns(columns)
    file.check_columns(rows, "rows")
    try:
        made = sp.csr_array if kind == "csr" else sp.csc_array
        X = made(parts, shape=(rows, columns))
        X.check_format(full_check=True)
        X = sp.csr_array(X)
    except (ValueError, IndexError, OverflowError, MemoryError) as error:
        raise InputError(f"`{path}` contradicts itself: {error}.") from error
    y, name = _target({n: a for n, a in arrays.items() if n in _TARGETS}, target, path)
    return Table(X, y, name, path, tuple(f"c{number}" for number in range(X.shape[1])))


def _dense(arrays: Mapping[str, np.ndarray], target: str | int | None, path: str) -> Table:
    import pandas as pd

    features = features_of(arrays, path)
    if features is None:
        try:
            return table_of(pd.DataFrame(dict(arrays)), target, path)
        except InputError:
            raise
        except ValueError as error:
            raise InputError(
                f"`{path}` must hold a matrix, or columns of one length: {error}."
            ) from error
    if not arrays[features].size:
        raise InputError(
            f"`{path}` must have rows and columns, but `{features}` is of shape "
            f"{arrays[features].shape}."
        )
    X = arrays[features].reshape(len(arrays[features]), -1)
    others = {name: array for name, array in arrays.items() if array.ndim == 1}
    names = tuple(f"c{number}" for number in range(X.shape[1]))
    if not others and target is not None:
        return table_of(pd.DataFrame(X, columns=list(names)), target, path)
    y, name = _target(others, target, path)
    if y is not None and len(y) != len(X):
        raise InputError(
            f"`{path}` must have as many targets as rows, but `{name}` has {len(y)} and "
            f"`{features}` {len(X)}."
        )
    return Table(X, y, name, path, names)


def features_of(arrays: Mapping[str, Any], path: str) -> str | None:
    """Which of the arrays is the matrix of features; None where all are columns."""
    matrices = [name for name, array in arrays.items() if len(array.shape) >= 2]
    named = [name for name in matrices if name.lower() in _FEATURES]
    if len(matrices) > 1 and len(named) != 1:
        raise InputError(
            f"`{path}` must hold one matrix, or one named `X`, but holds "
            f"{listed(matrices)}: save it with `np.savez(path, X=..., y=...)`."
        )
    return next(iter(named or matrices), None)


def _target(
    arrays: Mapping[str, np.ndarray], target: str | int | None, path: str
) -> tuple[Any, str | None]:
    if target is not None:
        name = column(list(arrays), target, path)
        return arrays[name], name
    found = [name for name in arrays if name.lower() in _TARGETS]
    return (arrays[found[0]], found[0]) if len(found) == 1 else (None, None)
