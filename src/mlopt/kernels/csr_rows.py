"""One CSR row times the weights of many models, and back: SIMD goes over the models.

``W`` is (d, B), flat: what one stored number meets lies together. The last lanes of a row
reach into the next one where B is not a multiple of the lanes; margins there mean nothing,
steps there are 0. So ``W`` is followed by as many numbers as `padded` adds, and ``z``, the
margins or steps of a row, is as long as a multiple of the lanes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, read_only
from mlopt.kernels.simd import (
    lane_count,
    like,
    load,
    muladd,
    number_at,
    put_number,
    splat,
    splat_at,
    store,
)

Array = NDArray[Any]
Csr = tuple[Array, Array, Array]
"""``data, indices, indptr``."""


def parts(X: Any) -> Csr:
    """Return a CSR matrix as kernels take it."""
    return read_only(X.data), read_only(X.indices), read_only(X.indptr)


def padded(W: Array) -> Array:
    """Return ``W (d, B)`` flat and followed by 0s, without a copy where none are needed."""
    L = lane_count(W.itemsize)
    if W.shape[1] % L == 0:
        return np.ascontiguousarray(W).reshape(-1)
    flat = np.empty(W.size + L, W.dtype)
    flat[W.size :] = 0
    flat[: W.size].reshape(W.shape)[:] = W
    return flat


@inlined
def _dot(data: Array, indices: Array, lo: int, hi: int, w: Array) -> Any:
    # Four sums, because an addition takes as long as four can start.
    a = b = c = e = like(w[0], 0.0)
    p = lo
    while p + 4 <= hi:
        a = muladd(number_at(data, p), number_at(w, number_at(indices, p)), a)
        b = muladd(number_at(data, p + 1), number_at(w, number_at(indices, p + 1)), b)
        c = muladd(number_at(data, p + 2), number_at(w, number_at(indices, p + 2)), c)
        e = muladd(number_at(data, p + 3), number_at(w, number_at(indices, p + 3)), e)
        p += 4
    while p < hi:
        a = muladd(number_at(data, p), number_at(w, number_at(indices, p)), a)
        p += 1
    return (a + b) + (c + e)


@inlined
def row_margins(rows: Csr, i: int, W: Array, B: int, z: Array, to: int) -> None:
    """Margins of row ``i`` for all columns, to ``z.flat[to]`` and after."""
    data, indices, indptr = rows
    lo, hi = indptr[i], indptr[i + 1]
    if B == 1:
        put_number(z, to, _dot(data, indices, lo, hi, W))
        return
    L = lane_count(W.itemsize)
    zero, k = splat(like(W[0], 0.0)), 0
    while k <= B - 4 * L:
        m0 = m1 = m2 = m3 = zero
        for p in range(lo, hi):
            x, at = splat_at(data, p), number_at(indices, p) * B + k
            m0, m1 = muladd(x, load(W, at), m0), muladd(x, load(W, at + L), m1)
            m2 = muladd(x, load(W, at + 2 * L), m2)
            m3 = muladd(x, load(W, at + 3 * L), m3)
        store(z, to + k, m0)
        store(z, to + k + L, m1)
        store(z, to + k + 2 * L, m2)
        store(z, to + k + 3 * L, m3)
        k += 4 * L
    while k < B:
        even, odd, p = zero, zero, lo
        while p + 2 <= hi:
            at, beside = number_at(indices, p) * B + k, number_at(indices, p + 1) * B + k
            even = muladd(splat_at(data, p), load(W, at), even)
            odd = muladd(splat_at(data, p + 1), load(W, beside), odd)
            p += 2
        if p < hi:
            at = number_at(indices, p) * B + k
            even = muladd(splat_at(data, p), load(W, at), even)
        store(z, to + k, even + odd)
        k += L


@inlined
def add_row(rows: Csr, i: int, z: Array, of: int, W: Array, B: int) -> None:
    """Add row ``i``, times the steps from ``z.flat[of]`` on, to all columns of ``W``."""
    data, indices, indptr = rows
    lo, hi = indptr[i], indptr[i + 1]
    if B == 1:
        c = number_at(z, of)
        for p in range(lo, hi):
            j = number_at(indices, p)
            put_number(W, j, muladd(number_at(data, p), c, number_at(W, j)))
        return
    L, k = lane_count(W.itemsize), 0
    while k <= B - 4 * L:
        c0, c1 = load(z, of + k), load(z, of + k + L)
        c2, c3 = load(z, of + k + 2 * L), load(z, of + k + 3 * L)
        for p in range(lo, hi):
            x, at = splat_at(data, p), number_at(indices, p) * B + k
            store(W, at, muladd(x, c0, load(W, at)))
            store(W, at + L, muladd(x, c1, load(W, at + L)))
            store(W, at + 2 * L, muladd(x, c2, load(W, at + 2 * L)))
            store(W, at + 3 * L, muladd(x, c3, load(W, at + 3 * L)))
        k += 4 * L
    while k < B:
        c0 = load(z, of + k)
        for p in range(lo, hi):
            at = number_at(indices, p) * B + k
            store(W, at, muladd(splat_at(data, p), c0, load(W, at)))
        k += L
