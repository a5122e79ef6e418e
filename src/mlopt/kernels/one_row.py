"""A row at a time, dense or CSR: what methods do that step from row to row.

``rows`` are what `layout` makes of a matrix ``(n, d)``, so that one loop serves both. ``w``
has at least ``d`` entries. With the transpose of a matrix in place of it, rows are columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel, read_only
from mlopt.kernels.simd import prefetch

Array = NDArray[Any]
Rows = tuple[Array, Array, Array, Array]
"""``X`` and no ``data, indices, indptr`` of CSR, or these and an empty ``X``."""

_MODULUS = 2**31 - 1
AHEAD = 4
"""Rows that are visited while memory answers; 2 and 8 take as long."""
_LINE = 8
"""Values of float64 that memory gives at once, in the processors of today."""


@inlined
def dot(rows: Rows, i: int, w: Array) -> float:
    """The product of row ``i`` and ``w``."""
    X, data, indices, indptr = rows
    # Four sums, because an addition takes as long as four can start.
    a = b = c = e = 0.0
    if X.shape[0] > 0:
        last = X.shape[1]
        whole = last - last % 4
        for j in range(0, whole, 4):
            a += X[i, j] * w[j]
            b += X[i, j + 1] * w[j + 1]
            c += X[i, j + 2] * w[j + 2]
            e += X[i, j + 3] * w[j + 3]
        for j in range(whole, last):
            a += X[i, j] * w[j]
    else:
        first, last = indptr[i], indptr[i + 1]
        whole = last - (last - first) % 4
        for k in range(first, whole, 4):
            # An unsigned index needs no test for "counted from the end".
            a += data[k] * w[np.uint64(indices[k])]
            b += data[k + 1] * w[np.uint64(indices[k + 1])]
            c += data[k + 2] * w[np.uint64(indices[k + 2])]
            e += data[k + 3] * w[np.uint64(indices[k + 3])]
        for k in range(whole, last):
            a += data[k] * w[np.uint64(indices[k])]
    return (a + b) + (c + e)


@inlined
def add(rows: Rows, i: int, step: float, w: Array) -> None:
    """Add ``step`` times row ``i`` to ``w``."""
    X, data, indices, indptr = rows
    if X.shape[0] > 0:
        for j in range(X.shape[1]):
            w[j] += step * X[i, j]
    else:
        for k in range(indptr[i], indptr[i + 1]):
            w[np.uint64(indices[k])] += step * data[k]


@inlined
def fetch(rows: Rows, i: int) -> None:
    """Have row ``i`` on its way to the cache: rows in random order wait for memory."""
    X, data, indices, indptr = rows
    if X.shape[0] > 0:
        for j in range(0, X.shape[1], _LINE):
            prefetch(X, i * X.shape[1] + j)
    else:
        for k in range(indptr[i], indptr[i + 1], _LINE):
            prefetch(data, k)
            prefetch(indices, k)


@inlined
def shuffle(order: Array, count: int, random: Array) -> None:
    """Fisher and Yates, on Park and Miller's generator of 31 bits."""
    state = random[0]
    for i in range(count - 1, 0, -1):
        state = state * 48271 % _MODULUS
        j = state % (i + 1)
        order[i], order[j] = order[j], order[i]
    random[0] = state


def seeded(seed: int) -> NDArray[np.int64]:
    """State of the generator of `shuffle`, 1 ... 2^31 - 2, shape (1,)."""
    return np.array([seed % (_MODULUS - 1) + 1], np.int64)


def layout(X: Any) -> Rows:
    """Dense and CSR rows as the same four types, so that one compilation serves both."""
    if isinstance(X, np.ndarray):
        # CSR of no rows: there are ``X.shape[0] + indptr.shape[0] - 1`` in either case.
        parts = X, np.empty(0, X.dtype), np.empty(0, np.int32), np.zeros(1, np.int64)
    else:
        if X.shape[1] > np.iinfo(np.int32).max:
            raise OverflowError(
                f"Rows must have less than 2**31 columns, got {X.shape[1]}."
            )
        indices = X.indices.astype(np.int32, copy=False)
        indptr = X.indptr.astype(np.int64, copy=False)
        parts = np.empty((0, 0), X.dtype), X.data, indices, indptr
    X, data, indices, indptr = map(read_only, parts)
    return X, data, indices, indptr


def squared_norms(X: Any) -> NDArray[np.float64]:
    """Squared length of every row of ``X``, dense or CSR, in float64."""
    if isinstance(X, np.ndarray):
        norms = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    else:
        norms = np.empty(X.shape[0])
        _squares(read_only(X.data), read_only(X.indptr.astype(np.int64, copy=False)), norms)
    return np.asarray(norms, np.float64)


@kernel
def _squares(data: Array, indptr: Array, out: Array) -> None:
    for i in range(out.shape[0]):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[k]) * np.float64(data[k])
        out[i] = total


@kernel
def _products(rows: Rows, w: Array, out: Array) -> None:
    for i in range(out.shape[0]):
        out[i] = dot(rows, i, w)


@kernel
def _combine(rows: Rows, v: Array, out: Array) -> None:
    for i in range(v.shape[0]):
        if v[i] != 0.0:
            add(rows, i, v[i], out)


@kernel
def _curved(rows: Rows, h: Array, v: Array, z: Array, out: Array) -> None:
    for i in range(h.shape[0]):
        z[i] = dot(rows, i, v) + v[-1]
        if h[i] != 0.0:
            add(rows, i, h[i] * z[i], out)
            out[-1] += h[i] * z[i]


@kernel
def _sloped(rows: Rows, slopes: Array, h: Array, first: Array, second: Array) -> None:
    X, data, indices, indptr = rows
    for i in range(h.shape[0]):
        if slopes[i] == 0.0 and h[i] == 0.0:
            continue
        first[-1] += slopes[i]
        second[-1] += h[i]
        if X.shape[0] > 0:
            for j in range(X.shape[1]):
                x = np.float64(X[i, j])
                first[j] += slopes[i] * x
                second[j] += h[i] * x * x
        else:
            for k in range(indptr[i], indptr[i + 1]):
                x = np.float64(data[k])
                first[np.uint64(indices[k])] += slopes[i] * x
                second[np.uint64(indices[k])] += h[i] * x * x


def products(X: Any, w: Array) -> NDArray[np.float64]:
    """``X @ w`` in float64 whatever the dtype of ``X``, without a copy of it, (n,)."""
    out = np.empty(X.shape[0])
    _products(layout(X), read_only(w), out)
    return out


def combination(X: Any, v: Array) -> NDArray[np.float64]:
    """``X.T @ v`` in float64 whatever the dtype of ``X``, without a copy of it, (d,)."""
    out = np.zeros(X.shape[1])
    _combine(layout(X), read_only(v), out)
    return out


def curved(X: Any, h: Array, v: Array) -> tuple[Array, Array]:
    """``z = X v`` and ``X' (h z)``, of rows that are read once and end with a 1.

    Parameters
    ----------
    X : ndarray or CSR of shape (n, d)
    h : ndarray of shape (n,)
        Rows of 0 cost no more than their product.
    v : ndarray of shape (d + 1,), float64

    Returns
    -------
    ndarray of shape (n,) and of shape (d + 1,), float64
    """
    z, out = np.empty(X.shape[0]), np.zeros(X.shape[1] + 1)
    _curved(layout(X), read_only(h), read_only(v), z, out)
    return z, out


def sloped(X: Any, slopes: Array, h: Array) -> Array:
    """``X' slopes`` and the sums of ``h x^2``, of rows that end with a 1, (2, d + 1)."""
    out = np.zeros((2, X.shape[1] + 1))
    _sloped(layout(X), read_only(slopes), read_only(h), out[0], out[1])
    return out
