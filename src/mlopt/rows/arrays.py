"""Any in-memory matrix as C-contiguous or CSR floats, without a copy where it is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mlopt.errors import InputError
from mlopt.rows.check import check_shape, check_unmasked


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
