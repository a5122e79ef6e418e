"""Passes over CSR rows: every stored value updates all columns, whose weights lie together.

Weights and gradients are ``(d, B)`` here; margins of ``R`` rows turn into ``(B, R)`` for
the losses, and back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import kernel, part, stay_apart
from mlopt.kernels.simd import like
from mlopt.kernels.slopes import add_slopes

Array = NDArray[Any]

_ROWS = 256
"""Rows of a block: their margins stay in cache, and a block costs little by itself."""


@part
def _add_times(x: Any, w: Array, z: Array) -> None:
    stay_apart()
    for k in range(z.shape[0]):
        z[k] += x * w[k]


@part
def _margins(data: Array, indices: Array, lo: int, hi: int, W: Array, z: Array) -> None:
    """Margins of one row for all columns."""
    if W.shape[1] == 1:
        total = like(z[0], 0.0)
        for p in range(lo, hi):
            total += data[p] * W[indices[p], 0]
        z[0] = total
        return
    for k in range(z.shape[0]):
        z[k] = like(z[0], 0.0)
    for p in range(lo, hi):
        _add_times(data[p], W[indices[p]], z)


@part
def _add_row(data: Array, indices: Array, lo: int, hi: int, z: Array, G: Array) -> None:
    """Add one row, times a slope for each column, to the gradients."""
    if G.shape[1] == 1:
        for p in range(lo, hi):
            G[indices[p], 0] += data[p] * z[0]
        return
    for p in range(lo, hi):
        _add_times(data[p], z, G[indices[p]])


@part
def _turn(A: Array, T: Array) -> None:
    """Write the transpose of ``A`` to ``T``, in squares that stay in cache."""
    for first in range(0, A.shape[0], 8):
        for k in range(A.shape[1]):
            for i in range(first, min(first + 8, A.shape[0])):
                T[k, i] = A[i, k]


@part
def _clear_untrained(Z: Array, segments: Array, trained: Array) -> None:
    for s in range(segments.shape[0]):
        if not trained[s]:
            for k in range(segments[s, 0], segments[s, 1]):
                for i in range(Z.shape[1]):
                    Z[k, i] = like(Z[k, i], 0.0)


@kernel
def csr_pass(
    data: Array,
    indices: Array,
    indptr: Array,
    W: Array,
    b: Array,
    targets: Array,
    weights: Array,
    score_weights: Array,
    segments: Array,
    deltas: Array,
    sums: Array,
    scores: Array,
    G: Array,
) -> None:
    """Add up a pass; ``W`` is (d, B), and so is ``G``, or (0, B) without gradient."""
    B, n = W.shape[1], indptr.shape[0] - 1
    by_row, by_column = np.empty(_ROWS * B, W.dtype), np.empty(_ROWS * B, W.dtype)
    for start in range(0, n, _ROWS):
        stop = min(start + _ROWS, n)
        R = stop - start
        rows = by_row[: R * B].reshape(R, B)
        Z = by_column[: R * B].reshape(B, R)
        for i in range(R):
            _margins(data, indices, indptr[start + i], indptr[start + i + 1], W, rows[i])
        _turn(rows, Z)
        trained = add_slopes(
            Z, b, targets[start:stop], weights[start:stop], score_weights[start:stop],
            segments, deltas, sums, scores,
        )  # fmt: skip
        if G.shape[0] == 0 or trained.sum() == 0:
            continue
        _clear_untrained(Z, segments, trained)
        _turn(Z, rows)
        for i in range(R):
            _add_row(data, indices, indptr[start + i], indptr[start + i + 1], rows[i], G)
