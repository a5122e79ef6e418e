"""Lockstep SGD on CSR rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import kernel, part
from mlopt.kernels.csr_rows import add_row, row_margins
from mlopt.kernels.sgd_steps import (
    MARGIN,
    ROWS,
    SCALE,
    STEP,
    add_losses,
    step_group,
)
from mlopt.kernels.simd import like, splat

Array = NDArray[Any]


@part
def _rescale_columns(W: Array, places: Array, state: Array, at: int, size: int) -> None:
    B = places.shape[0]
    for k in range(B):
        if at <= places[k] < at + size:
            for j in range(W.shape[0] // B):
                W[j * B + k] *= state[SCALE, places[k]]
    for k in range(at, at + size):
        state[SCALE, k] = like(state[SCALE, k], 1.0)


@part
def _moves(weights: Array, columns: Array, i: int) -> bool:
    """Whether row ``i`` has weight in any of the columns."""
    moves = False
    for k in range(columns.shape[0]):
        moves |= weights[i, columns[k, 1]] != 0
    return moves


@kernel
def csr_epoch(
    data: Array, indices: Array, indptr: Array, order: Array, targets: Array,
    weights: Array, W: Array, size: int, groups: Array, columns: Array, state: Array,
    sums: Array, places: Array,
) -> None:  # fmt: skip
    """Any number of models on CSR rows; ``W`` as in `csr_rows`, its columns unpacked."""
    P, B = state.shape[1], places.shape[0]
    z = np.zeros(P, W.dtype)
    form = splat(like(z[0], 0.0))
    for r in range(order.shape[0]):
        i = order[r]
        if not _moves(weights, columns, i):
            continue
        lo, hi = indptr[i], indptr[i + 1]
        row_margins(data, indices, lo, hi, W, B, z, 0)
        for k in range(B):
            state[MARGIN, places[k]] = z[k]
        for g in range(0, P, size):
            if step_group(form, state, g, size, groups, columns, i, targets, weights, 0):
                _rescale_columns(W, places, state, g, size)
        for k in range(P):
            z[k] = state[STEP, places[k]] if k < B else like(z[0], 0.0)
        add_row(data, indices, lo, hi, z, 0, W, B)
        if r % ROWS == 0:
            add_losses(state, sums)
    add_losses(state, sums)
