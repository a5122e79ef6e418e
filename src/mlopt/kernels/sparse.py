"""Passes over CSR rows: every stored value updates all columns, whose weights lie together.

Weights and gradients are ``(d, B)`` here; margins of ``R`` rows turn into lines ``(B, R)``
for the losses, and back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import kernel, part, read_only, stay_apart
from mlopt.kernels.csr_rows import Csr, add_row, padded, parts, row_margins
from mlopt.kernels.simd import lane_count, turn
from mlopt.kernels.slopes import Inputs, add_slopes, clear_untrained, of_rows

Array = NDArray[Any]

_ROWS = 256
"""Rows of a block, a multiple of 8: their margins stay in cache."""


@part
def _margins(X: Csr, start: int, stop: int, W: Array, B: int, rows: Array) -> None:
    stay_apart()
    for i in range(start, stop):
        row_margins(X, i, W, B, rows, (i - start) * rows.shape[1])


@part
def _add_gradient(X: Csr, start: int, stop: int, rows: Array, G: Array, B: int) -> None:
    stay_apart()
    for i in range(start, stop):
        add_row(X, i, rows, (i - start) * rows.shape[1], G, B)


@part
def _turn_all(A: Array, T: Array) -> None:
    """Write the transpose of ``A`` to ``T``, in whole squares of lanes."""
    L = lane_count(A.itemsize)
    for i in range(0, A.shape[0], L):
        for k in range(0, A.shape[1], L):
            turn(A, i * A.shape[1] + k, A.shape[1], T, k * T.shape[1] + i, T.shape[1])


@kernel
def csr_pass(X: Csr, W: Array, inputs: Inputs, G: Array) -> None:
    """Add up a pass; ``W`` and ``G`` as in `csr_rows`, ``G`` empty without gradient."""
    B, n, L = inputs[0].shape[0], X[2].shape[0] - 1, lane_count(W.itemsize)
    width = (B + L - 1) // L * L
    rows, lines = np.zeros((_ROWS, width), W.dtype), np.zeros((width, _ROWS), W.dtype)
    for start in range(0, n, _ROWS):
        stop = min(start + _ROWS, n)
        _margins(X, start, stop, W, B, rows)
        _turn_all(rows, lines)
        trained = add_slopes(lines[:B], *of_rows(inputs, start, stop))
        if G.shape[0] == 0 or trained.sum() == 0:
            continue
        clear_untrained(lines, stop - start, inputs[4], trained)
        lines[B:] = 0
        _turn_all(lines, rows)
        _add_gradient(X, start, stop, rows, G, B)


def sparse_pass(X: Any, W: Array, inputs: Inputs, gradient: bool) -> Array:
    """Add up a pass; return the gradient (d, B), or none (0,)."""
    V = padded(W)
    G = np.zeros_like(V if gradient else V[:0])
    csr_pass(parts(X), read_only(V), inputs, G)
    return G[: W.size].reshape(W.shape) if gradient else G
