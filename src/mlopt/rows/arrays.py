"""In-memory matrices as C-contiguous or CSR floats, and what must hold of them.

Without a copy where a matrix is so already; one pass finds out whether it is finite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlopt.errors import InputError
from mlopt.rows.block import array_bytes


def float_dtype(given: np.dtype, wanted: Any = None) -> np.dtype:
    """The float type to compute in: float32 for float32 and float16, else float64.

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
    return np.dtype("f4" if given in (np.dtype("f2"), np.dtype("f4")) else "f8")


def as_matrix(X: Any, dtype: Any = None) -> Any:
    """``X`` as an ndarray or `csr_array` of shape (n, d) in float32 or float64."""
    check_unmasked(X, "X")
    matrix = X if sp.issparse(X) else np.asarray(X)
    check_shape(matrix.shape)
    return convert(matrix, float_dtype(matrix.dtype, dtype))


def convert(matrix: Any, dtype: np.dtype) -> Any:
    """C-contiguous, or CSR in canonical order, of ``dtype``; the same memory if it can."""
    if not sp.issparse(matrix):
        return np.ascontiguousarray(matrix, dtype=dtype)
    result = sp.csr_array(matrix, dtype=dtype)
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


def inspect(X: Any) -> Found:
    """Shape, size and the first column that is not finite."""
    sparse = bool(sp.issparse(X))
    values = X.data if sparse else X
    bad, value = None, 0.0
    if not _all_finite(values):
        bad, value = _first_bad(X)
    rows, columns = X.shape
    return Found(
        rows, columns, int(values.size), array_bytes(X), X.dtype, sparse, bad, value
    )


def _all_finite(values: np.ndarray) -> bool:
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
    """Raise for a masked array: what is masked would be read as if it were not."""
    if isinstance(data, np.ma.MaskedArray):
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
