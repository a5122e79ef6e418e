"""One CSR row times the weights of many models, and back: SIMD goes over the models.

``W`` is (d, B): what one stored number meets lies together. ``lo`` and ``hi`` bound the
row in ``data`` and ``indices``.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from mlopt.kernels.compiled import part, stay_apart
from mlopt.kernels.simd import lane_count, like, load, muladd, splat, store

Array = NDArray[Any]


@part
def row_margins(data: Array, indices: Array, lo: int, hi: int, W: Array, z: Array) -> None:
    """Margins of one CSR row for all columns of ``W (d, B)``."""
    stay_apart()
    B, L = W.shape[1], lane_count(W.itemsize)
    zero, k = splat(like(z[0], 0.0)), 0
    while k <= B - 4 * L:
        m0 = m1 = m2 = m3 = zero
        for p in range(lo, hi):
            x, at = splat(data[p]), indices[p] * B + k
            m0, m1 = muladd(x, load(W, at), m0), muladd(x, load(W, at + L), m1)
            m2 = muladd(x, load(W, at + 2 * L), m2)
            m3 = muladd(x, load(W, at + 3 * L), m3)
        store(z, k, m0)
        store(z, k + L, m1)
        store(z, k + 2 * L, m2)
        store(z, k + 3 * L, m3)
        k += 4 * L
    while k <= B - L:
        even, odd = zero, zero
        for p in range(lo, hi - 1, 2):
            even = muladd(splat(data[p]), load(W, indices[p] * B + k), even)
            odd = muladd(splat(data[p + 1]), load(W, indices[p + 1] * B + k), odd)
        if (hi - lo) % 2:
            even = muladd(splat(data[hi - 1]), load(W, indices[hi - 1] * B + k), even)
        store(z, k, even + odd)
        k += L
    while k < B:
        margin = like(z[0], 0.0)
        for p in range(lo, hi):
            margin += data[p] * W[indices[p], k]
        z[k] = margin
        k += 1


@part
def add_row(data: Array, indices: Array, lo: int, hi: int, steps: Array, W: Array) -> None:
    """Add one CSR row, times each column's step, to ``W (d, B)``."""
    stay_apart()
    B, L = W.shape[1], lane_count(W.itemsize)
    k = 0
    while k <= B - 4 * L:
        c0, c1 = load(steps, k), load(steps, k + L)
        c2, c3 = load(steps, k + 2 * L), load(steps, k + 3 * L)
        for p in range(lo, hi):
            x, at = splat(data[p]), indices[p] * B + k
            store(W, at, muladd(x, c0, load(W, at)))
            store(W, at + L, muladd(x, c1, load(W, at + L)))
            store(W, at + 2 * L, muladd(x, c2, load(W, at + 2 * L)))
            store(W, at + 3 * L, muladd(x, c3, load(W, at + 3 * L)))
        k += 4 * L
    while k <= B - L:
        c0 = load(steps, k)
        for p in range(lo, hi):
            at = indices[p] * B + k
            store(W, at, muladd(splat(data[p]), c0, load(W, at)))
        k += L
    while k < B:
        for p in range(lo, hi):
            W[indices[p], k] += data[p] * steps[k]
        k += 1
