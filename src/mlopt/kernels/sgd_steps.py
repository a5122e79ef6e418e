"""One step of lockstep SGD: all columns at one row.

Columns are packed into ``P`` places: neighbours of `lane_count` places form a group that
shares a loss, filled up with columns that never move. ``state (F, P)`` holds what a column
has, one line a field; ``groups (P / lanes, 4)`` and ``columns (P, 2)`` hold numbers.

Weights are ``scale * v``: shrinking them is one multiplication of the scale. Margins and
steps in ``state`` are those of ``v``.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, part, stay_apart
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
    like,
    load_like,
    magnitude,
    muladd,
    select,
    some,
    store,
)

Array = NDArray[Any]

TILE = 4
"""Rows of which margins and steps are kept at the same time, at most."""
(
    SCALE, BIAS, NUMERATOR, FIXED, GROWING, POWER, ALPHA, INTERCEPT, DELTA, CODE, START,
    COUNT, LOSS, TARGET, WEIGHT, MARGIN,
) = range(16)  # fmt: skip
"""Lines of ``state``. The step size at step t is
``NUMERATOR / (FIXED + GROWING * t) / t**POWER`` with ``t = START + COUNT``."""
STEP = MARGIN + TILE
"""The first line of steps; each row of a tile has a line of margins and one of steps."""
FIELDS = STEP + TILE

GROUP_LOSS, GROUP_CODED, GROUP_POWER, GROUP_MIXED = range(4)
"""Columns of ``groups``: the loss, and whether targets are class codes, step sizes have a
power of t, and the columns differ in their target or weights."""

_LARGEST_SLOPE = 1e12
_SMALLEST_SCALE = 1e-9
ROWS = 128
"""Rows between two looks at what they have in common."""


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
def _step_of(loss: int, state: Array, at: int, y: Any, c: Any, eta: Any, r: int) -> Any:
    """Step one group at one row; return whether a scale has become tiny."""
    P = state.shape[1]
    zero, one = like(y, 0.0), like(y, 1.0)
    # What does not depend on the margin comes first: the processor gets ahead with it.
    still, scale = c == zero, load_like(y, state, SCALE * P + at)
    shrink = muladd(-eta, load_like(y, state, ALPHA * P + at), one)
    shrink = select(still, one, select(shrink < zero, zero, shrink))
    shrunk = scale * shrink
    tiny = some(shrunk < like(y, _SMALLEST_SCALE))
    factor = -eta * c
    per_scale = factor if tiny else factor / shrunk
    b = load_like(y, state, BIAS * P + at)
    z = muladd(load_like(y, state, (MARGIN + r) * P + at), scale, b)
    e = exp(-magnitude(z)) if loss == LOGISTIC else z
    value, slope = loss_and_slope(loss, z, y, e, load_like(y, state, DELTA * P + at))
    slope = _clipped(loss, slope)
    store(state, (STEP + r) * P + at, per_scale * slope)
    store(state, SCALE * P + at, shrunk)
    moved = load_like(y, state, INTERCEPT * P + at) * slope
    store(state, BIAS * P + at, muladd(factor, moved, b))
    count, losses = load_like(y, state, COUNT * P + at), load_like(y, state, LOSS * P + at)
    store(state, COUNT * P + at, count + select(still, zero, one))
    store(state, LOSS * P + at, losses + select(still, zero, value))
    return tiny


@part
def _step(
    loss: int, power: int, coded: int, state: Array, at: int, y: Any, c: Any, r: int
) -> Any:
    stay_apart()
    eta = _step_sizes(y, state, at, power)
    if coded:
        codes = load_like(y, state, CODE * state.shape[1] + at)
        y = select(codes == y, like(y, 1.0), like(y, -1.0))
    if loss == LOGISTIC:
        return _step_of(LOGISTIC, state, at, y, c, eta, r)
    if loss == HINGE:
        return _step_of(HINGE, state, at, y, c, eta, r)
    if loss == SQUARED_HINGE:
        return _step_of(SQUARED_HINGE, state, at, y, c, eta, r)
    if loss == HUBER:
        return _step_of(HUBER, state, at, y, c, eta, r)
    return _step_of(SQUARED, state, at, y, c, eta, r)


@part
def _gather(
    state: Array, at: int, columns: Array, i: int, targets: Array, weights: Array, size: int
) -> None:
    """Write each column's target and weight at row ``i`` into ``state``."""
    for k in range(at, at + size):
        state[TARGET, k] = targets[i, columns[k, 0]]
        state[WEIGHT, k] = weights[i, columns[k, 1]]


@inlined
def step_group(
    form: Any, state: Array, at: int, size: int, groups: Array, columns: Array, i: int,
    targets: Array, weights: Array, r: int,
) -> Any:  # fmt: skip
    """Step the ``size`` columns from ``at``, lanes like ``form``, at row ``i``, which is
    row ``r`` of the tile; return whether a scale has become tiny."""
    g, P = at // size, state.shape[1]
    loss, power = groups[g, GROUP_LOSS], groups[g, GROUP_POWER]
    coded = groups[g, GROUP_CODED]
    if groups[g, GROUP_MIXED]:
        _gather(state, at, columns, i, targets, weights, size)
        y = load_like(form, state, TARGET * P + at)
        c = load_like(form, state, WEIGHT * P + at)
    else:
        weight = weights[i, columns[at, 1]]
        if weight == 0:
            store(state, (STEP + r) * P + at, like(form, 0.0))
            return False
        y, c = like(form, targets[i, columns[at, 0]]), like(form, weight)
    return _step(loss, power, coded, state, at, y, c, r)


@part
def add_up(state: Array, sums: Array) -> None:
    """Losses and steps so far, (2, P) in float64: float32 stops to count at 2^24."""
    for k in range(state.shape[1]):
        sums[0, k] += state[LOSS, k]
        sums[1, k] += state[COUNT, k]
        state[START, k] = like(state[START, k], sums[1, k])
        state[LOSS, k] = state[COUNT, k] = like(state[LOSS, k], 0.0)
