"""Lockstep SGD on dense rows, four at a time.

A step changes the margins of the rows after it by itself times their inner products. With
these for four rows, all four steps follow from margins taken before the first of them: the
weights are read and written once for four rows, and the sums over features, which are the
same for every model, do not wait for the steps. Steps are those of one row after the other,
but for rounding.

::

    tile      rows 4..7, gathered from X, and their inner products
    sweep     each model's weights:  + the steps of rows 0..3;  margins of rows 4..7
    steps     row 4 of all models, its effect on the margins of 5, 6, 7;  row 5 ...
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel, part
from mlopt.kernels.sgd_steps import (
    MARGIN,
    ROWS,
    SCALE,
    STEP,
    TILE,
    add_up,
    step_group,
)
from mlopt.kernels.simd import (
    lane_count,
    like,
    load,
    load_like,
    muladd,
    number_at,
    prefetch,
    put_number,
    splat,
    splat_at,
    splat_wide,
    store,
    total,
)

Array = NDArray[Any]

_AHEAD = 2 * TILE
"""Rows: so far ahead of its turn a row is asked for, as rows come in random order."""
_LINES = 64
"""Cache lines of a row are asked for; what follows the processor sees coming by itself."""


@inlined
def _row_at(rows: Array, at: int, d: int) -> Any:
    """Where row number ``at`` of ``rows`` begins; beyond the last, that one again."""
    return rows[min(at, rows.shape[0] - 1)] * d


@inlined
def _gather(X: Array, rows: Array, first: int, tile: Array, at: int, gram: Array) -> None:
    """Copy four rows to ``tile`` from ``at`` on, and take the inner products of each with
    those after it. Ask for the rows that come later on the way, line by line: all at once
    would keep the copies waiting."""
    d, L = X.shape[1], lane_count(X.itemsize)
    x0, x1 = _row_at(rows, first, d), _row_at(rows, first + 1, d)
    x2, x3 = _row_at(rows, first + 2, d), _row_at(rows, first + 3, d)
    later = first + _AHEAD
    y0, y1 = _row_at(rows, later, d), _row_at(rows, later + 1, d)
    asked, line = min(d, _LINES * 2 * L), 2 * L - 1
    a = b = c = e = f = g = splat(like(gram[0], 0.0))
    whole = d - d % L
    for j in range(0, d, L):
        if (j & line == 0 or j == whole) and j < asked:
            prefetch(X, y0 + j)
            prefetch(X, y1 + j)
        if j == whole:
            for q in range(d - whole):
                put_number(tile, at + q, number_at(X, x0 + j + q))
                put_number(tile, at + L + q, number_at(X, x1 + j + q))
                put_number(tile, at + 2 * L + q, number_at(X, x2 + j + q))
                put_number(tile, at + 3 * L + q, number_at(X, x3 + j + q))
            v0, v1 = load(tile, at), load(tile, at + L)
            v2, v3 = load(tile, at + 2 * L), load(tile, at + 3 * L)
        else:
            v0, v1 = load(X, x0 + j), load(X, x1 + j)
            v2, v3 = load(X, x2 + j), load(X, x3 + j)
            store(tile, at, v0)
            store(tile, at + L, v1)
            store(tile, at + 2 * L, v2)
            store(tile, at + 3 * L, v3)
        a, b, c = muladd(v0, v1, a), muladd(v0, v2, b), muladd(v0, v3, c)
        e, f, g = muladd(v1, v2, e), muladd(v1, v3, f), muladd(v2, v3, g)
        at += TILE * L
    gram[1], gram[2], gram[3] = total(a), total(b), total(c)
    gram[TILE + 2], gram[TILE + 3], gram[2 * TILE + 3] = total(e), total(f), total(g)


@inlined
def _ask(X: Array, rows: Array, first: int, share: int) -> None:
    """Ask for one part in `TILE` of the two rows that `_gather` does not ask for."""
    d, line = X.shape[1], 2 * lane_count(X.itemsize)
    asked = min(d, _LINES * line)
    y2, y3 = _row_at(rows, first + _AHEAD + 2, d), _row_at(rows, first + _AHEAD + 3, d)
    size = (asked // TILE + line) // line * line
    for j in range(share * size, min((share + 1) * size, asked), line):
        prefetch(X, y2 + j)
        prefetch(X, y3 + j)


@inlined
def _sweep(
    tile: Array, old: int, new: int, V: Array, base: int, state: Array, k: int
) -> None:
    """Add the four old rows times the steps of place ``k`` to the weights from ``base``,
    and sum up their margins at the four new rows."""
    P, L = state.shape[1], lane_count(state.itemsize)
    step, margin = STEP * P + k, MARGIN * P + k
    c0, c1 = splat_at(state, step), splat_at(state, step + P)
    c2, c3 = splat_at(state, step + 2 * P), splat_at(state, step + 3 * P)
    m0 = m1 = m2 = m3 = n0 = n1 = n2 = n3 = like(c0, 0.0)
    end = base + V.shape[1]
    while base < end:
        v, w = load(V, base), load(V, base + L)
        v = muladd(load(tile, old), c0, v)
        w = muladd(load(tile, old + 4 * L), c0, w)
        v = muladd(load(tile, old + L), c1, v)
        w = muladd(load(tile, old + 5 * L), c1, w)
        v = muladd(load(tile, old + 2 * L), c2, v)
        w = muladd(load(tile, old + 6 * L), c2, w)
        v = muladd(load(tile, old + 3 * L), c3, v)
        w = muladd(load(tile, old + 7 * L), c3, w)
        store(V, base, v)
        store(V, base + L, w)
        m0, n0 = muladd(load(tile, new), v, m0), muladd(load(tile, new + 4 * L), w, n0)
        m1, n1 = muladd(load(tile, new + L), v, m1), muladd(load(tile, new + 5 * L), w, n1)
        m2 = muladd(load(tile, new + 2 * L), v, m2)
        n2 = muladd(load(tile, new + 6 * L), w, n2)
        m3 = muladd(load(tile, new + 3 * L), v, m3)
        n3 = muladd(load(tile, new + 7 * L), w, n3)
        base, old, new = base + 2 * L, old + 8 * L, new + 8 * L
    put_number(state, margin, total(m0 + n0))
    put_number(state, margin + P, total(m1 + n1))
    put_number(state, margin + 2 * P, total(m2 + n2))
    put_number(state, margin + 3 * P, total(m3 + n3))


@part
def _rescale(V: Array, places: Array, state: Array, at: int, size: int, r: int) -> None:
    """Multiply the weights of a group by their scales, and what is still to be added."""
    for k in range(places.shape[0]):
        if at <= places[k] < at + size:
            for j in range(V.shape[1]):
                V[k, j] *= state[SCALE, places[k]]
    for k in range(at, at + size):
        for before in range(r):
            state[STEP + before, k] *= state[SCALE, k]
        for after in range(r + 1, TILE):
            state[MARGIN + after, k] *= state[SCALE, k]
        state[SCALE, k] = like(state[SCALE, k], 1.0)


@inlined
def _move_margins(form: Any, state: Array, at: int, gram: Array, r: int) -> None:
    """What the step of row ``r`` does to the margins of the rows after it."""
    P = state.shape[1]
    step = load_like(form, state, (STEP + r) * P + at)
    for after in range(r + 1, TILE):
        place = (MARGIN + after) * P + at
        product = like(step, gram[r * TILE + after])
        store(state, place, muladd(product, step, load_like(form, state, place)))


@part
def _trained_rows(order: Array, weights: Array, rows: Array) -> int:
    """List the rows of ``order`` with weight in any set, of these columns or not: what
    rows meet in a tile, and so how they round, must not depend on the columns."""
    count = 0
    for i in order:
        for k in range(weights.shape[1]):
            if weights[i, k] != 0:
                rows[count] = i
                count += 1
                break
    return count


@kernel
def dense_epoch(
    X: Array, order: Array, targets: Array, weights: Array, V: Array, size: int,
    groups: Array, columns: Array, state: Array, sums: Array, places: Array,
) -> None:  # fmt: skip
    """Models on dense rows; ``V`` is (B, d) with d filled up to pairs of lanes."""
    P, width = state.shape[1], V.shape[1]
    rows = np.empty(order.shape[0], np.int64)
    count = _trained_rows(order, weights, rows)
    rows = rows[:count]
    # Lanes of the first row, of the second ..., then the next lanes of the first row.
    tile, gram = np.zeros(2 * TILE * width, X.dtype), np.zeros(TILE * TILE, X.dtype)
    form = splat_wide(like(V[0, 0], 0.0))
    state[STEP : STEP + TILE] = 0
    old, new = 0, TILE * width
    for first in range(0, count + TILE, TILE):
        here = min(TILE, count - first)
        if here > 0:
            _gather(X, rows, first, tile, new, gram)
        for k in range(places.shape[0]):
            _sweep(tile, old, new, V, k * width, state, places[k])
        for r in range(here):
            i = rows[first + r]
            ahead = first + r + _AHEAD
            prefetch(targets, _row_at(rows, ahead, targets.shape[1]))
            prefetch(weights, _row_at(rows, ahead, weights.shape[1]))
            _ask(X, rows, first, r)
            for g in range(0, P, size):
                if step_group(
                    form, state, g, size, groups, columns, i, targets, weights, r
                ):
                    _rescale(V, places, state, g, size, r)
                _move_margins(form, state, g, gram, r)
        for r in range(max(here, 0), TILE):
            state[STEP + r] = 0
        if first % ROWS == 0:
            add_up(state, sums)
        old, new = new, old
    add_up(state, sums)
