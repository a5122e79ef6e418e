"""One block of rows: features, what must hold of them, and per-row arrays beside them.

Features become C-contiguous or CSR floats, without a copy where they are so already; one
pass finds out whether they are finite.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlopt.cluster import usable
from mlopt.errors import InputError


@dataclass(frozen=True)
class Block:
    """Neighbouring rows of the whole.

    Attributes
    ----------
    X : ndarray or csr_array of shape (rows, d)
        Float32 or float64; an ndarray is C-contiguous. It may be read-only.
    extra : mapping of name to ndarray of shape (rows, ...)
        Per-row arrays: targets, weights.
    index : int
        Number of this block.
    """

    X: Any
    extra: Mapping[str, np.ndarray] = field(default_factory=dict)
    index: int = 0

    @property
    def rows(self) -> int:
        """How many rows this block has."""
        return int(self.by_columns.shape[0])

    @property
    def nbytes(self) -> int:
        """Bytes of all its arrays."""
        given = array_bytes(self.by_columns)
        return given + sum(array.nbytes for array in self.extra.values())

    @property
    def by_columns(self) -> Any:
        """Features for who reads columns: a `csc_array` where they were given as one."""
        return self.X

    def beside(self, arrays: Mapping[str, np.ndarray]) -> Block:
        """The same rows with further per-row arrays."""
        return replace(self, extra={**self.extra, **arrays})

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, usable(value))
        if sp.issparse(self.X):
            make_usable(self.X)

    def __sizeof__(self) -> int:
        # Dask asks this when it places tasks and when it decides what to spill.
        return 200 + self.nbytes


@dataclass(frozen=True)
class Narrow:
    """Whole numbers in one byte each, to travel and to wait; ``dtype`` is what they are."""

    values: np.ndarray
    dtype: np.dtype

    @property
    def nbytes(self) -> int:
        """Bytes that wait, and travel."""
        return self.values.nbytes


def make_usable(matrix: Any) -> None:
    """Let kernels read the arrays of a CSR or CSC matrix as they read any others."""
    for name in ("data", "indices", "indptr"):
        setattr(matrix, name, usable(getattr(matrix, name)))


def narrowed(array: np.ndarray) -> np.ndarray | Narrow:
    """As `Narrow` where that is exact: labels, folds, and weights that only count."""
    if array.dtype.kind != "f":
        return array
    with np.errstate(invalid="ignore"):
        values = array.astype(np.int8)
    return Narrow(values, array.dtype) if np.array_equal(values, array) else array


def widened(array: np.ndarray | Narrow) -> np.ndarray:
    """The array that `narrowed` was given."""
    return array.values.astype(array.dtype) if isinstance(array, Narrow) else array


def array_bytes(X: Any) -> int:
    """Bytes of an ndarray or of a CSR array with its indices."""
    if sp.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)


def row_slice(X: Any, start: int, stop: int) -> Any:
    """Rows ``start`` to ``stop`` as a view, of canonical CSR too."""
    if not sp.issparse(X):
        return X[start:stop]
    first, last = int(X.indptr[start]), int(X.indptr[stop])
    ends = X.indptr[start : stop + 1] - X.indptr[start]
    return csr_of(X.data[first:last], X.indices[first:last], ends, X.shape[1])


def csr_of(data: Any, indices: Any, indptr: Any, columns: int) -> Any:
    """Of these very arrays, which are in canonical order."""
    found = sp.csr_array((len(indptr) - 1, columns), dtype=data.dtype)
    # Given to the constructor, views of less than half an array would be copied.
    found.data, found.indices, found.indptr = data, indices, indptr
    found.has_canonical_format = True
    return found


def read_only(array: np.ndarray) -> np.ndarray:
    """The same memory, which cannot be changed through it."""
    view = array.view()
    view.flags.writeable = False
    return view


def fixed(block: Block) -> Block:
    """The same rows, which cannot be changed through it."""
    X = block.X
    if sp.issparse(X):
        X = copy.copy(X)
        for name in ("data", "indices", "indptr"):
            setattr(X, name, read_only(getattr(X, name)))
    else:
        X = read_only(X)
    beside = {name: read_only(array) for name, array in block.extra.items()}
    return Block(X, beside, block.index)


def float_dtype(given: np.dtype, wanted: Any = None) -> np.dtype:
    """The float type to compute in: float32 for float32, else float64, as in scikit-learn.

    Parameters
    ----------
    given : dtype
        Of the data.
    wanted : dtype, optional
        "float32" or "float64", whatever the data.
    """
    if given.kind not in "biuf":
        kinds = {"c": "complex numbers", "O": "objects", "M": "dates", "m": "durations"}
        what = kinds.get(given.kind, "text" if given.kind in "SUT" else "records")
        raise InputError(
            f"X must hold real numbers, got {what} (dtype {given}): encode them first, for "
            "example with `OneHotEncoder`, or convert with `X.astype(float)`."
        )
    if wanted is not None:
        dtype: np.dtype = np.dtype(wanted)
        if dtype not in (np.dtype("f4"), np.dtype("f8")):
            raise InputError(f"`dtype` must be float32 or float64, got {dtype}.")
        return dtype
    return np.dtype("f4" if given == np.dtype("f4") else "f8")


def as_matrix(X: Any, dtype: Any = None) -> Any:
    """``X`` as an ndarray or `csr_array` of shape (n, d) in float32 or float64."""
    check_unmasked(X, "X")
    matrix = X if sp.issparse(X) else np.asarray(X)
    check_shape(matrix.shape)
    return convert(matrix, float_dtype(matrix.dtype, dtype))


def as_csr(matrix: Any) -> Any:
    """A sparse matrix by rows: a CSR matrix as it is, others with each entry once."""
    if matrix.format == "csr":
        return matrix
    result = matrix.tocsr()  # which keeps what a CSC matrix stores twice
    result.sum_duplicates()
    return result


def convert(matrix: Any, dtype: np.dtype) -> Any:
    """C-contiguous, or CSR in canonical order, of ``dtype``; the same memory if it can.

    Indices are no wider than they must be: kernels read them as often as values.
    """
    if not sp.issparse(matrix):
        return np.ascontiguousarray(matrix, dtype=dtype)
    result = sp.csr_array(matrix, dtype=dtype)
    index = sp.get_index_dtype(maxval=max(result.nnz, result.shape[1]))
    result.indices = result.indices.astype(index, copy=False)
    result.indptr = result.indptr.astype(index, copy=False)
    if result.has_canonical_format:
        return result
    # The arrays may be the caller's: put them in order in a copy.
    result = result.copy()
    result.sum_duplicates()
    return result


@dataclass(frozen=True)
class Found:
    """What one block is like; ``bad`` is its first column with NaN or infinity."""

    rows: int
    columns: int
    nonzero: int
    nbytes: int
    dtype: np.dtype
    sparse: bool
    bad: int | None = None
    bad_value: float = 0.0


def inspect(X: Any, finite: bool = False) -> Found:
    """Shape, size and the first column that is not finite, unless all are known to be."""
    sparse = bool(sp.issparse(X))
    values = X.data if sparse else X
    bad, value = None, 0.0
    if not (finite or all_finite(values)):
        bad, value = _first_bad(X)
    rows, columns = X.shape
    return Found(
        rows, columns, int(values.size), array_bytes(X), X.dtype, sparse, bad, value
    )


def all_finite(values: np.ndarray) -> bool:
    """Whether no value is NaN or infinite."""
    # One NaN or infinity spoils the sum, which is several times faster than a mask; a sum
    # that overflows is looked at again.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum())) or bool(np.isfinite(values).all())


def _first_bad(X: Any) -> tuple[int, float]:
    if sp.issparse(X):
        wrong = np.flatnonzero(~np.isfinite(X.data))
        first = wrong[np.argmin(X.indices[wrong])]
        return int(X.indices[first]), float(X.data[first])
    wrong = ~np.isfinite(X)
    column = int(np.argmax(wrong.any(axis=0)))
    return column, float(X[np.argmax(wrong[:, column]), column])


def check_finite(found: Sequence[Found], names: Sequence[str] | None) -> None:
    """Raise for the first block that is not finite, naming column and block."""
    start = 0
    for number, one in enumerate(found):
        if one.bad is not None:
            name = f"`{names[one.bad]}`" if names else f"number {one.bad}"
            nan = np.isnan(one.bad_value)
            value, what = ("NaN", "NaN") if nan else (str(one.bad_value), "infinity")
            raise InputError(
                f"Input X contains {what}: column {name} has {value} in block "
                f"{number} (rows {start} to {start + one.rows - 1}). Impute it, for "
                "example with `SimpleImputer`, or leave these rows out."
            )
        start += one.rows


def check_unmasked(data: Any, name: str) -> None:
    """Raise for a masked array: what is masked would be read as if it were not.

    Of Dask's arrays, for one that says so before its chunks are read.
    """
    if isinstance(getattr(data, "_meta", data), np.ma.MaskedArray):
        raise InputError(
            f"{name} must not be a masked array, because masks would be ignored: fill it "
            f"with `{name}.filled(value)`, or with NaN and an imputer."
        )


def check_shape(shape: tuple[int, ...]) -> None:
    """X must be 2-D with a row and a column at least."""
    if len(shape) != 2:
        raise InputError(
            f"X must be 2-D (rows, columns), got {len(shape)}-D of shape {shape}: reshape "
            "it with `X.reshape(-1, 1)` for one column or `X.reshape(1, -1)` for one row."
        )
    if 0 in shape:
        raise InputError(
            f"X must have at least one row and one column, got shape {shape}: look at how "
            "it was read or selected."
        )


MEGABYTE = 1 << 20
_TARGET, _LARGEST = 8 * MEGABYTE, 256 * MEGABYTE
_MANY, _PARALLEL, _WORTH, _LEAST = 64, 8, 2048, MEGABYTE


def block_count(n: int, nbytes: int) -> int:
    """How many blocks ``n`` rows of ``nbytes`` in all are cut into: a power of two.

    4 to 8 MB each, at most 64 of them until a block would pass 256 MB; and up to eight
    smaller ones, for threads to share, as long as each has 2048 rows and 1 MB: one that is
    gone through in less time than it takes to hand it over (`benchmarks/blocks.py`) makes a
    pass longer. This must depend on the data alone: with it depends the order of every sum.
    """
    worth = min(n / _WORTH, nbytes / _LEAST)
    wanted = max(
        min(_power(nbytes / _TARGET), _MANY),
        _power(nbytes / _LARGEST),
        min(_PARALLEL, _power(worth / 2 + 0.5)),
    )
    while wanted > n:
        wanted //= 2
    return max(wanted, 1)


def _power(least: float) -> int:
    """The smallest power of two that is not below ``least``."""
    return 1 << max(0, int(np.ceil(np.log2(max(least, 1.0)))))


def boundaries(n: int, nbytes: int, block_rows: int | None = None) -> list[int]:
    """Where blocks begin, and ``n`` at the end; lengths differ by at most one."""
    count = -(-n // block_rows) if block_rows else block_count(n, nbytes)
    return [number * n // count for number in range(count + 1)]
