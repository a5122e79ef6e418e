"""The loops of lockstep SGD: one row at a time, all models at once.

Columns are packed into ``P`` places: neighbours of `lane_count` places form a group that
shares a loss, filled up with columns that never move. ``state (F, P)`` holds what a column
has, one line a field; ``groups (P / lanes, 4)`` and ``columns (P, 2)`` hold numbers.

Weights are ``scale * v``: shrinking them is one multiplication of the scale. While a row's
step is added to ``v``, the margins of the next row are summed up from the numbers that are
in registers anyway, so ``v`` goes through them once a row, not twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel, part, stay_apart
from mlopt.kernels.elementary import exp, log
from mlopt.kernels.losses import (
    HINGE,
    HUBER,
    LOGISTIC,
    SQUARED,
    SQUARED_HINGE,
    loss_and_slope,
)
from mlopt.kernels.simd import (
    lane_count,
    like,
    load,
    load_like,
    magnitude,
    muladd,
    select,
    some,
    splat,
    splat_wide,
    store,
    total,
)

Array = NDArray[Any]

FIELDS = 17
"""Lines of ``state``. The step size at step t is
``NUMERATOR / (FIXED + GROWING * t) / t**POWER`` with ``t = START + COUNT``."""
(
    SCALE, BIAS, NUMERATOR, FIXED, GROWING, POWER, ALPHA, INTERCEPT, DELTA, CODE, START,
    COUNT, LOSS, MARGIN, STEP, TARGET, WEIGHT,
) = range(FIELDS)  # fmt: skip

GROUP_LOSS, GROUP_CODED, GROUP_POWER, GROUP_MIXED = range(4)
"""Columns of ``groups``: the loss, and whether targets are class codes, step sizes have a
power of t, and the columns differ in their target or weights."""

_LARGEST_SLOPE = 1e12
_SMALLEST_SCALE = 1e-9
_ROWS = 128
"""Rows that one panel of columns goes through before the next one does."""


@inlined
def _step_sizes(form: Any, state: Array, at: int, power: int) -> Any:
    P = state.shape[1]
    t = load_like(form, state, START * P + at) + load_like(form, state, COUNT * P + at)
    eta = load_like(form, state, NUMERATOR * P + at) / muladd(
        load_like(form, state, GROWING * P + at), t, load_like(form, state, FIXED * P + at)
    )
    if power:
        eta = eta * exp(-load_like(form, state, POWER * P + at) * log(t))
    return eta


@inlined
def _clipped(loss: int, slope: Any) -> Any:
    # The slopes of the other losses are bounded by 1 or by delta.
    if loss != SQUARED and loss != SQUARED_HINGE:
        return slope
    limit = like(slope, _LARGEST_SLOPE)
    slope = select(slope > limit, limit, slope)
    return select(slope < -limit, -limit, slope)


@inlined
def _step_of(loss: int, state: Array, at: int, y: Any, c: Any, eta: Any) -> Any:
    """Step one group at one row; return whether a scale has become tiny."""
    P = state.shape[1]
    zero, one = like(y, 0.0), like(y, 1.0)
    # What does not depend on the margin comes first: the processor gets ahead with it.
    still, scale = c == zero, load_like(y, state, SCALE * P + at)
    shrink = one - eta * load_like(y, state, ALPHA * P + at)
    shrink = select(still, one, select(shrink < zero, zero, shrink))
    shrunk = scale * shrink
    tiny = some(shrunk < like(y, _SMALLEST_SCALE))
    factor = -eta * c
    per_scale = factor if tiny else factor / shrunk
    b = load_like(y, state, BIAS * P + at)
    z = muladd(load_like(y, state, MARGIN * P + at), scale, b)
    e = exp(-magnitude(z)) if loss == LOGISTIC else z
    value, slope = loss_and_slope(loss, z, y, e, load_like(y, state, DELTA * P + at))
    slope = _clipped(loss, slope)
    store(state, STEP * P + at, per_scale * slope)
    store(state, SCALE * P + at, shrunk)
    moved = load_like(y, state, INTERCEPT * P + at) * slope
    store(state, BIAS * P + at, muladd(factor, moved, b))
    count, losses = load_like(y, state, COUNT * P + at), load_like(y, state, LOSS * P + at)
    store(state, COUNT * P + at, count + select(still, zero, one))
    store(state, LOSS * P + at, losses + select(still, zero, value))
    return tiny


@part
def _step(loss: int, power: int, coded: int, state: Array, at: int, y: Any, c: Any) -> Any:
    stay_apart()
    eta = _step_sizes(y, state, at, power)
    if coded:
        codes = load_like(y, state, CODE * state.shape[1] + at)
        y = select(codes == y, like(y, 1.0), like(y, -1.0))
    if loss == LOGISTIC:
        return _step_of(LOGISTIC, state, at, y, c, eta)
    if loss == HINGE:
        return _step_of(HINGE, state, at, y, c, eta)
    if loss == SQUARED_HINGE:
        return _step_of(SQUARED_HINGE, state, at, y, c, eta)
    if loss == HUBER:
        return _step_of(HUBER, state, at, y, c, eta)
    return _step_of(SQUARED, state, at, y, c, eta)


@part
def _gather(
    state: Array, at: int, columns: Array, i: int, targets: Array, weights: Array, size: int
) -> None:
    """Write each column's target and weight at row ``i`` into ``state``."""
    for k in range(at, at + size):
        state[TARGET, k] = targets[i, columns[k, 0]]
        state[WEIGHT, k] = weights[i, columns[k, 1]]


@inlined
def _step_group(
    form: Any, state: Array, at: int, size: int, groups: Array, columns: Array, i: int,
    targets: Array, weights: Array,
) -> Any:  # fmt: skip
    """Step the ``size`` columns from ``at``, lanes like ``form``, at row ``i``."""
    g, P = at // size, state.shape[1]
    loss, power = groups[g, GROUP_LOSS], groups[g, GROUP_POWER]
    coded = groups[g, GROUP_CODED]
    if groups[g, GROUP_MIXED]:
        _gather(state, at, columns, i, targets, weights, size)
        y = load_like(form, state, TARGET * P + at)
        c = load_like(form, state, WEIGHT * P + at)
        return _step(loss, power, coded, state, at, y, c)
    weight = weights[i, columns[at, 1]]
    if weight == 0:
        store(state, STEP * P + at, like(form, 0.0))
        return False
    y = like(form, targets[i, columns[at, 0]])
    return _step(loss, power, coded, state, at, y, like(form, weight))


@part
def _sweep_panel(
    X: Array, i: int, following: int, V: Array, base: int, state: Array, at: int
) -> None:
    """Add row ``i`` times the steps to a panel of four groups, and sum up the margins of
    the row ``following``."""
    stay_apart()
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


@part
def _sweep_column(X: Array, i: int, following: int, V: Array, k: int, step: Any) -> Any:
    """As `_sweep_panel` for one column, whose weights are line ``k`` of ``V``."""
    stay_apart()
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
        V[k, j] += step * X[i, j]
        margin += V[k, j] * X[following, j]
    return margin


@part
def _moved_rows(
    order: Array, weights: Array, columns: Array, first: int, last: int, rows: Array
) -> int:
    """List the rows of ``order`` with weight in any of the columns from first to last."""
    count = 0
    for i in order:
        for k in range(first, last):
            if weights[i, columns[k, 1]] != 0:
                rows[count] = i
                count += 1
                break
    return count


@part
def _add_losses(state: Array, sums: Array) -> None:
    for k in range(state.shape[1]):
        sums[k] += state[LOSS, k]
        state[LOSS, k] = like(state[LOSS, k], 0.0)


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
    width, rows = 4 * L, np.empty(_ROWS + 1, np.int64)
    form = splat_wide(like(V[0], 0.0))
    for first in range(0, order.shape[0], _ROWS):
        some_rows = order[first : first + _ROWS]
        for at in range(0, state.shape[1], width):
            count = _moved_rows(some_rows, weights, columns, at, at + width, rows)
            if count == 0:
                continue
            rows[count] = rows[count - 1]
            for k in range(at, at + width):
                state[STEP, k] = like(V[0], 0.0)
            _sweep_panel(X, rows[0], rows[0], V, at * d, state, at)
            for r in range(count):
                for g in range(at, at + width, size):
                    if _step_group(
                        form, state, g, size, groups, columns, rows[r], targets, weights
                    ):
                        _rescale_panel(V, at * d + g - at, d, width, state, g, size)
                _sweep_panel(X, rows[r], rows[r + 1], V, at * d, state, at)
        _add_losses(state, sums)


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
    P, rows = state.shape[1], np.empty(_ROWS + 1, np.int64)
    form = splat(like(V[0, 0], 0.0))
    for first in range(0, order.shape[0], _ROWS):
        count = _moved_rows(order[first : first + _ROWS], weights, columns, 0, P, rows)
        if count == 0:
            continue
        rows[count] = rows[count - 1]
        for k in used:
            state[MARGIN, k] = _sweep_column(X, rows[0], rows[0], V, k, like(V[0, 0], 0.0))
        for r in range(count):
            for g in range(0, P, size):
                if _step_group(
                    form, state, g, size, groups, columns, rows[r], targets, weights
                ):
                    _rescale_lines(V, state, g, size)
            for k in used:
                state[MARGIN, k] = _sweep_column(
                    X, rows[r], rows[r + 1], V, k, state[STEP, k]
                )
        _add_losses(state, sums)


@part
def _row_margins(data: Array, indices: Array, lo: int, hi: int, W: Array, z: Array) -> None:
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
def _add_row(data: Array, indices: Array, lo: int, hi: int, steps: Array, W: Array) -> None:
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


@part
def _rescale_columns(W: Array, places: Array, state: Array, at: int, size: int) -> None:
    for k in range(W.shape[1]):
        if at <= places[k] < at + size:
            for j in range(W.shape[0]):
                W[j, k] *= state[SCALE, places[k]]
    for k in range(at, at + size):
        state[SCALE, k] = like(state[SCALE, k], 1.0)


@kernel
def csr_epoch(
    data: Array, indices: Array, indptr: Array, order: Array, targets: Array,
    weights: Array, W: Array, size: int, groups: Array, columns: Array, state: Array,
    sums: Array, places: Array,
) -> None:  # fmt: skip
    """Any number of models on CSR rows; ``W`` is (d, B), unpacked, in place."""
    P, B = state.shape[1], W.shape[1]
    z, moved = np.empty(B, W.dtype), np.empty(1, np.int64)
    form = splat(like(z[0], 0.0))
    for r in range(order.shape[0]):
        i = order[r]
        if _moved_rows(order[r : r + 1], weights, columns, 0, P, moved) == 0:
            continue
        lo, hi = indptr[i], indptr[i + 1]
        _row_margins(data, indices, lo, hi, W, z)
        for k in range(B):
            state[MARGIN, places[k]] = z[k]
        for g in range(0, P, size):
            if _step_group(form, state, g, size, groups, columns, i, targets, weights):
                _rescale_columns(W, places, state, g, size)
        for k in range(B):
            z[k] = state[STEP, places[k]]
        _add_row(data, indices, lo, hi, z, W)
        if r % _ROWS == 0:
            _add_losses(state, sums)
    _add_losses(state, sums)
