"""Passes over dense rows for one model or very few: as fast as memory delivers the rows.

The gradient of a block of rows needs its slopes, and they need all its margins. So while
the margins of one block are summed up from rows that come from memory, the block before it,
which is still in cache, is added to the gradient: the processor works while it waits.

Four rows at a time need the weights once for four, and are the quickest where a cache holds
all rows, or where rows are long. From memory, short rows come twice as fast one after the
other, since a processor reads ahead of a single line of addresses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import allocating, inlined, kernel, part, stay_apart
from mlopt.kernels.simd import lane_count, like, load, muladd, splat, splat_at, store, total
from mlopt.kernels.slopes import add_slopes, clear_untrained

Array = NDArray[Any]


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
def _margin(X: Array, x: int, W: Array, once: Any) -> Any:
    d, L = X.shape[1], lane_count(X.itemsize)
    whole, last, j = d - d % L, d - L, 0
    a = b = splat(like(X[0, 0], 0.0))
    while j + L < whole:
        a = muladd(load(X, x + j), load(W, j), a)
        b = muladd(load(X, x + j + L), load(W, j + L), b)
        j += 2 * L
    if j < whole:
        a = muladd(load(X, x + j), load(W, j), a)
    if whole < d:
        b = muladd(load(X, x + last), load(W, last) * once, b)
    return total(a + b)


@inlined
def _plus_rows(X: Array, y: int, c0: Any, c1: Any, c2: Any, c3: Any, g: Any) -> Any:
    """Lanes ``g`` and those of four rows from ``y``, each times its factor."""
    d = X.shape[1]
    g = muladd(load(X, y + d), c1, muladd(load(X, y), c0, g))
    return muladd(load(X, y + 3 * d), c3, muladd(load(X, y + 2 * d), c2, g))


@part
def _sweep_in_turn(
    X: Array, new: int, news: int, old: int, olds: int, W: Array, G: Array, tail: Array,
    z: Array, slopes: Array,
) -> None:  # fmt: skip
    """As `_sweep`, but four new rows after one another, and four old rows after these."""
    stay_apart()
    d, L = X.shape[1], lane_count(X.itemsize)
    last, whole, once = d - L, d - d % L, load(tail, 0)
    for i in range(0, max(news, olds), 4):
        x = (new + i if i < news else old + i) * d
        for q in range(4):
            z[i + q] = _margin(X, x + q * d, W, once)
        y = (old + i if i < olds else new + i) * d
        c0, c1 = splat_at(slopes, i), splat_at(slopes, i + 1)
        c2, c3 = splat_at(slopes, i + 2), splat_at(slopes, i + 3)
        for j in range(0, whole, L):
            store(G, j, _plus_rows(X, y + j, c0, c1, c2, c3, load(G, j)))
        if whole < d:
            y += last
            g = _plus_rows(X, y, c0, c1, c2, c3, splat(like(z[0], 0.0)))
            store(G, last, muladd(g, once, load(G, last)))


@part
def _sweep(
    X: Array, new: int, news: int, old: int, olds: int, W: Array, G: Array, tail: Array,
    z: Array, slopes: Array,
) -> None:  # fmt: skip
    """Margins of ``news`` rows from ``new``, for one model, to ``z``; and add ``olds``
    rows from ``old``, times ``slopes``, to its gradient.

    Both counts are multiples of 4. What ``z`` holds beyond ``news`` means nothing,
    ``slopes`` beyond ``olds`` are 0.
    """
    stay_apart()
    d, L = X.shape[1], lane_count(X.itemsize)
    last, whole, once = d - L, d - d % L, load(tail, 0)
    for i in range(0, max(news, olds), 4):
        # Four rows at a distance of d: with an address for each of them the processor
        # would have too few registers.
        x = (new + i if i < news else old + i) * d
        y = (old + i if i < olds else new + i) * d
        c0, c1 = splat_at(slopes, i), splat_at(slopes, i + 1)
        c2, c3 = splat_at(slopes, i + 2), splat_at(slopes, i + 3)
        a0 = a1 = a2 = a3 = splat(like(z[0], 0.0))
        j = 0
        while j < whole:
            w = load(W, j)
            a0, a1 = muladd(load(X, x), w, a0), muladd(load(X, x + d), w, a1)
            a2, a3 = muladd(load(X, x + 2 * d), w, a2), muladd(load(X, x + 3 * d), w, a3)
            store(G, j, _plus_rows(X, y, c0, c1, c2, c3, load(G, j)))
            x, y, j = x + L, y + L, j + L
        if whole < d:
            x, y = x + last - whole, y + last - whole
            w = load(W, last) * once
            a0, a1 = muladd(load(X, x), w, a0), muladd(load(X, x + d), w, a1)
            a2, a3 = muladd(load(X, x + 2 * d), w, a2), muladd(load(X, x + 3 * d), w, a3)
            g = _plus_rows(X, y, c0, c1, c2, c3, splat(like(z[0], 0.0)))
            store(G, last, muladd(g, once, load(G, last)))
        z[i], z[i + 1], z[i + 2], z[i + 3] = total(a0), total(a1), total(a2), total(a3)


@part
def _row_margins(X: Array, start: int, W: Array, Z: Array) -> None:
    """Margins of the last rows, fewer than four, one by one."""
    for i in range(start, X.shape[0]):
        for k in range(W.shape[0]):
            Z[k, i - start] = like(Z[0, 0], 0.0)
            for j in range(X.shape[1]):
                Z[k, i - start] += X[i, j] * W[k, j]


@part
def _add_rows(X: Array, start: int, Z: Array, G: Array) -> None:
    for i in range(start, X.shape[0]):
        for k in range(G.shape[0]):
            for j in range(X.shape[1]):
                G[k, j] += X[i, j] * Z[k, i - start]


@kernel
def few(
    X: Array, W: Array, b: Array, targets: Array, weights: Array, score_weights: Array,
    segments: Array, deltas: Array, sums: Array, scores: Array, G: Array, R: int,
    by_four: bool,
) -> None:  # fmt: skip
    """Add up a pass, ``R`` rows at a time, a multiple of 4; ``by_four``: of rows that a
    cache holds, or long ones.

    ``W`` and ``G`` are (B, d), with d at least as large as the lanes are many.
    """
    B, n = W.shape[0], X.shape[0]
    tail, even = _tail(X.shape[1], b), n - n % 4
    Z, slopes = np.zeros((B, R), X.dtype), np.zeros((B, R), X.dtype)
    start, before, olds = 0, 0, 0
    while start < n or olds > 0:
        news = min(R, even - start)
        for k in range(B):
            if by_four:
                _sweep(X, start, news, before, olds, W[k], G[k], tail, Z[k], slopes[k])
            else:
                _sweep_in_turn(
                    X, start, news, before, olds, W[k], G[k], tail, Z[k], slopes[k]
                )
        rows = news if news > 0 else n - start
        if news == 0:
            _row_margins(X, start, W, Z)
        trained = add_slopes(
            Z, b, targets[start : start + rows], weights[start : start + rows],
            score_weights[start : start + rows], segments, deltas, sums, scores,
        )  # fmt: skip
        clear_untrained(Z, rows, segments, trained)
        Z[:, rows:] = 0
        if news == 0:
            _add_rows(X, start, Z, G)
            return
        Z, slopes = slopes, Z
        start, before, olds = start + news, start, news
