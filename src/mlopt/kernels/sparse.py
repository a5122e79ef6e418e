"""Passes over CSR rows: every stored value updates all columns, whose weights lie together.

Weights and gradients are ``(d, B)`` here; margins of ``R`` rows turn into lines ``(B, R)``
for the losses, and back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import kernel, part, read_only, stay_apart
from mlopt.kernels.csr_rows import add_row, padded, row_margins
from mlopt.kernels.simd import lane_count, turn
from mlopt.kernels.slopes import add_slopes, clear_untrained

Array = NDArray[Any]

_ROWS = 256
"""Rows of a block, a multiple of 8: their margins stay in cache."""


@part
def _margins(
    data: Array, indices: Array, indptr: Array, W: Array, B: int, rows: Array
) -> None:
    stay_apart()
    for i in range(indptr.shape[0] - 1):
        lo, hi = indptr[i], indptr[i + 1]
        row_margins(data, indices, lo, hi, W, B, rows, i * rows.shape[1])


@part
def _add_gradient(
    data: Array, indices: Array, indptr: Array, rows: Array, G: Array, B: int
) -> None:
    stay_apart()
    for i in range(indptr.shape[0] - 1):
        lo, hi = indptr[i], indptr[i + 1]
        add_row(data, indices, lo, hi, rows, i * rows.shape[1], G, B)


@part
def _turn_all(A: Array, T: Array) -> None:
    """Write the transpose of ``A`` to ``T``, in whole squares of lanes."""
    L = lane_count(A.itemsize)
    for i in range(0, A.shape[0], L):
        for k in range(0, A.shape[1], L):
            turn(A, i * A.shape[1] + k, A.shape[1], T, k * T.shape[1] + i, T.shape[1])


@kernel
def csr_pass(
    data: Array, indices: Array, indptr: Array, W: Array, b: Array, targets: Array,
    weights: Array, score_weights: Array, segments: Array, deltas: Array, sums: Array,
    scores: Array, G: Array,
) -> None:  # fmt: skip
    """Add up a pass; ``W`` and ``G`` as in `csr_rows`, ``G`` empty without gradient."""
    B, n, L = b.shape[0], indptr.shape[0] - 1, lane_count(W.itemsize)
    width = (B + L - 1) // L * L
    rows, lines = np.zeros((_ROWS, width), W.dtype), np.zeros((width, _ROWS), W.dtype)
    for start in range(0, n, _ROWS):
        stop = min(start + _ROWS, n)
        _margins(data, indices, indptr[start : stop + 1], W, B, rows)
        _turn_all(rows, lines)
        trained = add_slopes(
            lines[:B], b, targets[start:stop], weights[start:stop],
            score_weights[start:stop], segments, deltas, sums, scores,
        )  # fmt: skip
        if G.shape[0] == 0 or trained.sum() == 0:
            continue
        clear_untrained(lines, stop - start, segments, trained)
        lines[B:] = 0
        _turn_all(lines, rows)
        _add_gradient(data, indices, indptr[start : stop + 1], rows, G, B)


def sparse_pass(
    X: Any, W: Array, inputs: tuple[Array, ...], sums: Array, scores: Array, gradient: bool
) -> Array:
    """Add up a pass to ``sums`` and ``scores``; return the gradient (d, B), or none (0,).

    ``inputs`` are the arguments of `mlopt.kernels.slopes.add_slopes` from ``b`` to
    ``deltas``, for all rows.
    """
    V = padded(W)
    G = np.zeros_like(V if gradient else V[:0])
    csr_pass(
        read_only(X.data), read_only(X.indices), read_only(X.indptr), read_only(V), *inputs,
        sums, scores, G,
    )  # fmt: skip
    return G[: W.size].reshape(W.shape) if gradient else G
