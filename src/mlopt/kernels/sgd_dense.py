"""Lockstep SGD on dense rows: panels of many models, or a line for each of a few.

While a row's step is added to the weights, the margins of the next row are summed up from
the numbers that are in registers anyway: weights go through them once a row, not twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel, part
from mlopt.kernels.sgd_steps import (
    GROUP_USED,
    MARGIN,
    ROWS,
    SCALE,
    STEP,
    add_losses,
    moved_rows,
    step_group,
)
from mlopt.kernels.simd import (
    lane_count,
    like,
    load,
    muladd,
    prefetch,
    splat,
    splat_wide,
    store,
    total,
)

Array = NDArray[Any]

_AHEAD = 6
"""Rows: so far ahead of its turn a row is asked for, as rows come in random order."""
_LINE = 64
"""Bytes of a cache line."""
_LINES = 32
"""Of a row are asked for; what follows the processor sees coming by itself."""


@inlined
def _ask_for(X: Array, i: int) -> None:
    step, d = _LINE // X.itemsize, X.shape[1]
    for j in range(0, min(d, _LINES * step), step):
        prefetch(X, i * d + j)


@inlined
def _sweep_panel(
    X: Array, i: int, following: int, V: Array, base: int, state: Array, at: int
) -> None:
    """Add row ``i`` times the steps to a panel of four registers, and sum up the margins
    of the row ``following``."""
    P, L = state.shape[1], lane_count(state.itemsize)
    step, margin = STEP * P + at, MARGIN * P + at
    c0, c1 = load(state, step), load(state, step + L)
    c2, c3 = load(state, step + 2 * L), load(state, step + 3 * L)
    m0 = m1 = m2 = m3 = like(c0, 0.0)
    x, ahead = X[i], X[following]
    for j in range(x.shape[0]):
        a, n = splat(x[j]), splat(ahead[j])
        v0, v1 = muladd(a, c0, load(V, base)), muladd(a, c1, load(V, base + L))
        v2, v3 = muladd(a, c2, load(V, base + 2 * L)), muladd(a, c3, load(V, base + 3 * L))
        store(V, base, v0)
        store(V, base + L, v1)
        store(V, base + 2 * L, v2)
        store(V, base + 3 * L, v3)
        m0, m1 = muladd(n, v0, m0), muladd(n, v1, m1)
        m2, m3 = muladd(n, v2, m2), muladd(n, v3, m3)
        base += 4 * L
    store(state, margin, m0)
    store(state, margin + L, m1)
    store(state, margin + 2 * L, m2)
    store(state, margin + 3 * L, m3)


@inlined
def _sweep_half(
    X: Array, i: int, following: int, V: Array, base: int, state: Array, at: int
) -> None:
    """As `_sweep_panel` for a panel of which only the first two registers are used."""
    P, L = state.shape[1], lane_count(state.itemsize)
    step, margin = STEP * P + at, MARGIN * P + at
    c0, c1 = load(state, step), load(state, step + L)
    m0 = m1 = like(c0, 0.0)
    x, ahead = X[i], X[following]
    for j in range(x.shape[0]):
        a, n = splat(x[j]), splat(ahead[j])
        v0, v1 = muladd(a, c0, load(V, base)), muladd(a, c1, load(V, base + L))
        store(V, base, v0)
        store(V, base + L, v1)
        m0, m1 = muladd(n, v0, m0), muladd(n, v1, m1)
        base += 4 * L
    store(state, margin, m0)
    store(state, margin + L, m1)


@inlined
def _sweep_column(X: Array, i: int, following: int, V: Array, k: int, step: Any) -> Any:
    """As `_sweep_panel` for one column, whose weights are line ``k`` of ``V``."""
    d, L = X.shape[1], lane_count(X.itemsize)
    c, x, ahead, base = splat(step), i * d, following * d, k * d
    even = odd = like(c, 0.0)
    whole = d - d % (2 * L)
    for j in range(0, whole, 2 * L):
        v = muladd(load(X, x + j), c, load(V, base + j))
        store(V, base + j, v)
        even = muladd(load(X, ahead + j), v, even)
        v = muladd(load(X, x + j + L), c, load(V, base + j + L))
        store(V, base + j + L, v)
        odd = muladd(load(X, ahead + j + L), v, odd)
    margin = total(even + odd)
    for j in range(whole, d):
        V[k, j] = muladd(step, X[i, j], V[k, j])
        margin = muladd(V[k, j], X[following, j], margin)
    return margin


@part
def _rescale_panel(
    V: Array, base: int, d: int, width: int, state: Array, at: int, size: int
) -> None:
    for k in range(size):
        for j in range(d):
            V[base + j * width + k] *= state[SCALE, at + k]
        state[SCALE, at + k] = like(state[SCALE, at + k], 1.0)


@kernel
def panels_epoch(
    X: Array, order: Array, targets: Array, weights: Array, V: Array, size: int,
    groups: Array, columns: Array, state: Array, sums: Array,
) -> None:  # fmt: skip
    """Many models on dense rows; ``V`` is (P / width, d, width), flat."""
    L, d = lane_count(X.itemsize), X.shape[1]
    width, rows = 4 * L, np.empty(ROWS, np.int64)
    form = splat_wide(like(V[0], 0.0))
    for first in range(0, order.shape[0], ROWS):
        some_rows = order[first : first + ROWS]
        for at in range(0, state.shape[1], width):
            count = moved_rows(some_rows, weights, columns, at, at + width, rows)
            if count == 0:
                continue
            for k in range(at, at + width):
                state[STEP, k] = like(V[0], 0.0)
            whole = groups[at // size + 1, GROUP_USED]
            last = at + width if whole else at + size
            for r in range(count + 1):
                # The first sweep is for its margins only, the last one for its steps.
                i = rows[max(r - 1, 0)]
                _ask_for(X, rows[min(r + _AHEAD, count - 1)])
                for g in range(at, last if r > 0 else at, size):
                    if step_group(
                        form, state, g, size, groups, columns, i, targets, weights
                    ):
                        _rescale_panel(V, at * d + g - at, d, width, state, g, size)
                if whole:
                    _sweep_panel(X, i, rows[min(r, count - 1)], V, at * d, state, at)
                else:
                    _sweep_half(X, i, rows[min(r, count - 1)], V, at * d, state, at)
        add_losses(state, sums)


@part
def _rescale_lines(V: Array, state: Array, at: int, size: int) -> None:
    for k in range(at, at + size):
        for j in range(V.shape[1]):
            V[k, j] *= state[SCALE, k]
        state[SCALE, k] = like(state[SCALE, k], 1.0)


@kernel
def lines_epoch(
    X: Array, order: Array, targets: Array, weights: Array, V: Array, size: int,
    groups: Array, columns: Array, state: Array, sums: Array, used: Array,
) -> None:  # fmt: skip
    """Few models on dense rows; ``V`` is (P, d), of which the lines ``used`` matter."""
    P, rows = state.shape[1], np.empty(ROWS, np.int64)
    form = splat(like(V[0, 0], 0.0))
    for first in range(0, order.shape[0], ROWS):
        count = moved_rows(order[first : first + ROWS], weights, columns, 0, P, rows)
        if count == 0:
            continue
        for k in used:
            state[STEP, k] = like(V[0, 0], 0.0)
        for r in range(count + 1):
            i, following = rows[max(r - 1, 0)], rows[min(r, count - 1)]
            _ask_for(X, rows[min(r + _AHEAD, count - 1)])
            for g in range(0, P if r > 0 else 0, size):
                if step_group(form, state, g, size, groups, columns, i, targets, weights):
                    _rescale_lines(V, state, g, size)
            for k in used:
                step = state[STEP, k]
                state[MARGIN, k] = _sweep_column(X, i, following, V, k, step)
        add_losses(state, sums)
