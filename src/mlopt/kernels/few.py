"""Passes over dense rows for one model or very few: as fast as memory delivers the rows.

A few rows come from memory, give their margins and at once their slopes, in registers,
and are added to the gradient before they have left the first-level cache. All of it is one
loop without calls, and so short that the processor, which reads ahead of what a loop asks
for, has no time to stop doing so.

Where a loss needs several columns, or rows are scored, blocks of rows get their slopes from
`add_slopes`.

Four rows at a time need the weights once for four, and are the quickest where a cache holds
all rows, or where rows are long. From memory, short rows come twice as fast one after the
other, since a processor reads ahead of a single line of addresses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import allocating, inlined, kernel, part
from mlopt.kernels.elementary import exp
from mlopt.kernels.losses import (
    HINGE,
    HUBER,
    LOGISTIC,
    SQUARED,
    SQUARED_HINGE,
    logistic_of_one_weight,
    loss_and_slope,
)
from mlopt.kernels.simd import (
    lane_count,
    like,
    load,
    load_like,
    magnitude,
    muladd,
    put_number,
    splat,
    splat_at,
    splat_wide,
    store,
    total,
)
from mlopt.kernels.slopes import (
    Inputs,
    add_slopes,
    clear_untrained,
    of_rows,
    one_weight,
    with_logarithms,
)

Array = NDArray[Any]

_EIGHT = 8
_SUMMED = 1024
"""Rows whose losses are added up in lanes, a multiple of 16: rounding errors grow with
their number, and so do products, see `mlopt.kernels.losses.logistic_of_one_weight`."""


@allocating
def _tail(d: int, sample: Any) -> Array:
    """Factors of the last lanes of a row: 0 where the lanes before reach, otherwise 1.

    The last lanes of ``d`` numbers start before the end of the whole lanes. With this
    factor they count once, and cost less than numbers one by one.
    """
    factors = np.zeros(lane_count(sample.itemsize), sample.dtype)
    factors[factors.shape[0] - d % factors.shape[0] :] = like(sample[0], 1.0)
    return factors


@inlined
def _margin(X: Array, x: int, W: Array, w: int, once: Any) -> Any:
    """Of one row, from ``X.flat[x]``: added up in the order of `_four_margins`."""
    d, L = X.shape[1], lane_count(X.itemsize)
    whole, last, j = d - d % L, d - L, 0
    a = b = splat(like(X[0, 0], 0.0))
    while j + L < whole:
        a = muladd(load(X, x + j), load(W, w + j), a)
        b = muladd(load(X, x + j + L), load(W, w + j + L), b)
        j += 2 * L
    if j < whole:
        a = muladd(load(X, x + j), load(W, w + j), a)
    if whole < d:
        b = muladd(load(X, x + last), load(W, w + last) * once, b)
    return total(a + b)


@inlined
def _four_margins(X: Array, x: int, W: Array, w: int, once: Any, Z: Array, z: int) -> None:
    """Of four rows, from ``X.flat[x]``, to ``Z.flat[z]``, each as by `_margin`.

    Which of the two is taken depends on where rows lie, and must not change a bit.
    """
    d, L = X.shape[1], lane_count(X.itemsize)
    whole, last, j = d - d % L, x + d - L, 0
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = splat(like(X[0, 0], 0.0))
    while j + L < whole:
        v, y = load(W, w + j), x + j
        a0, a1 = muladd(load(X, y), v, a0), muladd(load(X, y + d), v, a1)
        a2, a3 = muladd(load(X, y + 2 * d), v, a2), muladd(load(X, y + 3 * d), v, a3)
        v, y = load(W, w + j + L), y + L
        b0, b1 = muladd(load(X, y), v, b0), muladd(load(X, y + d), v, b1)
        b2, b3 = muladd(load(X, y + 2 * d), v, b2), muladd(load(X, y + 3 * d), v, b3)
        j += 2 * L
    if j < whole:
        v, y = load(W, w + j), x + j
        a0, a1 = muladd(load(X, y), v, a0), muladd(load(X, y + d), v, a1)
        a2, a3 = muladd(load(X, y + 2 * d), v, a2), muladd(load(X, y + 3 * d), v, a3)
    if whole < d:
        v, y = load(W, w + d - L) * once, last
        b0, b1 = muladd(load(X, y), v, b0), muladd(load(X, y + d), v, b1)
        b2, b3 = muladd(load(X, y + 2 * d), v, b2), muladd(load(X, y + 3 * d), v, b3)
    a0, a1, a2, a3 = a0 + b0, a1 + b1, a2 + b2, a3 + b3
    put_number(Z, z, total(a0))
    put_number(Z, z + 1, total(a1))
    put_number(Z, z + 2, total(a2))
    put_number(Z, z + 3, total(a3))


@inlined
def _margins(
    X: Array, row: int, W: Array, once: Any, by_four: bool, Z: Array, z: int
) -> None:
    """Of eight rows from ``row``, for each model, to ``Z (B, R)`` from column ``z``."""
    d = X.shape[1]
    if by_four:
        for k in range(W.shape[0]):
            at = k * Z.shape[1] + z
            _four_margins(X, row * d, W, k * d, once, Z, at)
            _four_margins(X, (row + 4) * d, W, k * d, once, Z, at + 4)
        return
    for i in range(_EIGHT):
        put_number(Z, z + i, _margin(X, (row + i) * d, W, 0, once))
    for k in range(1, W.shape[0]):
        at = k * Z.shape[1] + z
        _four_margins(X, row * d, W, k * d, once, Z, at)
        _four_margins(X, (row + 4) * d, W, k * d, once, Z, at + 4)


@inlined
def _slopes(
    loss: int, Z: Array, z: int, b: Any, targets: Array, weights: Array, row: int,
    delta: Any, same: bool, losses: Any, rises: Any, product: Any,
) -> Any:  # fmt: skip
    """Margins of two registers of rows become slopes; return what they add up to.

    ``same``: of logistic losses, whose rows have one weight or none, a part goes to
    ``losses`` and the other one to ``product``.
    """
    m, c = load_like(losses, Z, z) + b, load_like(losses, weights, row)
    y = load_like(losses, targets, row)
    e = exp(-magnitude(m)) if loss == LOGISTIC else m
    if loss == LOGISTIC and same:
        value, slope, product = logistic_of_one_weight(m, y, e, c, product)
    else:
        value, slope = loss_and_slope(loss, m, y, e, delta)
    losses, slope = muladd(c, value, losses), c * slope
    store(Z, z, slope)
    return losses, rises + slope, product


@inlined
def _add_eight(X: Array, row: int, Z: Array, z: int, G: Array, g: int, once: Any) -> None:
    """Add eight rows, times their slopes, to the gradient from ``G.flat[g]``.

    Written out: the second sum begins with a product. One that begins with zeros, as a
    function of four rows would have it, keeps a register for them; passes take 1.17x.
    """
    d, L = X.shape[1], lane_count(X.itemsize)
    x, last, whole = row * d, d - L, d - d % L
    c0, c1, c2 = splat_at(Z, z), splat_at(Z, z + 1), splat_at(Z, z + 2)
    c3, c4, c5 = splat_at(Z, z + 3), splat_at(Z, z + 4), splat_at(Z, z + 5)
    c6, c7 = splat_at(Z, z + 6), splat_at(Z, z + 7)
    for j in range(0, whole, L):
        y = x + j
        u = muladd(load(X, y + d), c1, muladd(load(X, y), c0, load(G, g + j)))
        u = muladd(load(X, y + 3 * d), c3, muladd(load(X, y + 2 * d), c2, u))
        v = muladd(load(X, y + 5 * d), c5, load(X, y + 4 * d) * c4)
        v = muladd(load(X, y + 7 * d), c7, muladd(load(X, y + 6 * d), c6, v))
        store(G, g + j, u + v)
    if whole < d:
        y = x + last
        u = muladd(load(X, y + d), c1, load(X, y) * c0)
        u = muladd(load(X, y + 3 * d), c3, muladd(load(X, y + 2 * d), c2, u))
        v = muladd(load(X, y + 5 * d), c5, load(X, y + 4 * d) * c4)
        v = muladd(load(X, y + 7 * d), c7, muladd(load(X, y + 6 * d), c6, v))
        store(G, g + last, muladd(u + v, once, load(G, g + last)))


@inlined
def _slopes_by_kind(loss: int, *rest: Any) -> Any:
    # The number as a constant: a loop without branches instead of one with them.
    if loss == LOGISTIC:
        return _slopes(LOGISTIC, *rest)
    if loss == HINGE:
        return _slopes(HINGE, *rest)
    if loss == SQUARED_HINGE:
        return _slopes(SQUARED_HINGE, *rest)
    if loss == HUBER:
        return _slopes(HUBER, *rest)
    return _slopes(SQUARED, *rest)


@part
def _pass_by_registers(
    X: Array, stop: int, W: Array, b: Array, targets: Array, weights: Array,
    segments: Array, deltas: Array, sums: Array, G: Array, tail: Array, lanes: Array,
    Z: Array, by_four: bool,
) -> None:  # fmt: skip
    """A pass up to row ``stop`` for models of one column each, ``R`` rows at a time.

    ``R`` is two registers of rows, the columns of ``Z`` (B, R), and ``stop`` a multiple of
    it. ``Z`` and ``lanes`` (B, 3 R) are overwritten.
    """
    d, once, R, zero = X.shape[1], load(tail, 0), Z.shape[1], like(tail[0], 0.0)
    for start in range(0, stop, _SUMMED):
        lanes[:] = zero
        end = min(start + _SUMMED, stop)
        weight = one_weight(weights[start:end])
        for row in range(start, end, R):
            for i in range(0, R, _EIGHT):
                _margins(X, row + i, W, once, by_four, Z, i)
            for s in range(segments.shape[0]):
                delta = splat_wide(deltas[s])
                for k in range(segments[s, 0], segments[s, 1]):
                    lost, rose, grew = 3 * k * R, (3 * k + 1) * R, (3 * k + 2) * R
                    losses, rises, product = _slopes_by_kind(
                        segments[s, 2], Z, k * R, splat_wide(b[k]), targets, weights, row,
                        delta, weight != zero, load_like(delta, lanes, lost),
                        load_like(delta, lanes, rose), load_like(delta, lanes, grew),
                    )  # fmt: skip
                    store(lanes, lost, losses)
                    store(lanes, rose, rises)
                    store(lanes, grew, product)
            for i in range(0, R, _EIGHT):
                for k in range(G.shape[0]):
                    _add_eight(X, row + i, Z, k * R + i, G, k * d, once)
        like_lanes = splat_wide(zero)
        for k in range(W.shape[0]):
            lost, rose, grew = 3 * k * R, (3 * k + 1) * R, (3 * k + 2) * R
            losses = load_like(like_lanes, lanes, lost)
            product = load_like(like_lanes, lanes, grew)
            sums[0, k] += with_logarithms(losses, product, weight)
            sums[1, k] += total(load_like(like_lanes, lanes, rose))


@part
def _margins_of_block(
    X: Array, start: int, stop: int, W: Array, tail: Array, by_four: bool, Z: Array
) -> None:
    even, once = stop - (stop - start) % _EIGHT, load(tail, 0)
    for row in range(start, even, _EIGHT):
        _margins(X, row, W, once, by_four, Z, row - start)
    for i in range(even, stop):
        for k in range(W.shape[0]):
            Z[k, i - start] = like(Z[0, 0], 0.0)
            for j in range(X.shape[1]):
                Z[k, i - start] += X[i, j] * W[k, j]


@part
def _add_block(X: Array, start: int, stop: int, Z: Array, tail: Array, G: Array) -> None:
    even, once = stop - (stop - start) % _EIGHT, load(tail, 0)
    for row in range(start, even, _EIGHT):
        for k in range(G.shape[0]):
            z = k * Z.shape[1] + row - start
            _add_eight(X, row, Z, z, G, k * X.shape[1], once)
    for i in range(even, stop):
        for k in range(G.shape[0]):
            for j in range(X.shape[1]):
                G[k, j] += X[i, j] * Z[k, i - start]


@kernel
def few(X: Array, W: Array, inputs: Inputs, G: Array, R: int, by_four: bool) -> None:
    """Add up a pass; ``by_four``: of rows that a cache holds, or long ones.

    ``W`` is (B, d), with d at least as large as the lanes are many, ``G`` as well, or
    (0, d) without gradient. Where slopes are worked out for blocks, these have ``R`` rows,
    a multiple of 8.
    """
    b, targets, weights, score_weights, segments, deltas, sums, _ = inputs
    B, n, done, tail = W.shape[0], X.shape[0], 0, _tail(X.shape[1], b)
    alike = targets.shape[1] == 1 and weights.shape[1] == 1 and score_weights.shape[1] == 0
    if alike and segments[:, 5].max() == 1:
        r = 2 * tail.shape[0]
        done = n - n % r
        _pass_by_registers(
            X, done, W, b, targets.reshape(-1), weights.reshape(-1), segments, deltas, sums,
            G, tail, np.empty((B, 3 * r), X.dtype), np.empty((B, r), X.dtype), by_four,
        )  # fmt: skip
    Z = np.empty((B, min(R, n - done)), X.dtype)
    for start in range(done, n, R):
        stop = min(start + R, n)
        _margins_of_block(X, start, stop, W, tail, by_four, Z)
        trained = add_slopes(Z, *of_rows(inputs, start, stop))
        clear_untrained(Z, stop - start, segments, trained)
        _add_block(X, start, stop, Z, tail, G)
