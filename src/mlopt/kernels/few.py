"""Passes over dense rows for one model or very few: dot products as fast as memory.

Four rows at a time share what is read of the weights, and what is written of the gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import kernel, part, stay_apart
from mlopt.kernels.simd import lane_count, like, load, muladd, splat, store, total
from mlopt.kernels.slopes import add_slopes

Array = NDArray[Any]


@part
def _tail(d: int, z: Array) -> Array:
    """Factors of the last lanes of a row: 0 where the lanes before reach, otherwise 1.

    The last lanes of ``d`` numbers start before the end of the whole lanes. With this
    factor they count once, and cost less than numbers one by one.
    """
    L = lane_count(z.itemsize)
    factors = np.zeros(L, z.dtype)
    factors[L - d % L :] = like(z[0], 1.0)
    return factors


@part
def _margins(X: Array, start: int, W: Array, k: int, tail: Array, z: Array) -> None:
    """Margins of model ``k`` for the rows from ``start``."""
    stay_apart()
    n, d, L = z.shape[0], X.shape[1], lane_count(X.itemsize)
    w, zero, beyond = k * d, splat(like(z[0], 0.0)), d % L > 0 and d > L
    whole = d - d % L
    last = load(W, w + d - L) * load(tail, 0) if beyond else zero
    for i in range(0, n - 3, 4):
        x = (start + i) * d
        a0 = a1 = a2 = a3 = zero
        for j in range(0, whole, L):
            v = load(W, w + j)
            a0, a1 = muladd(load(X, x + j), v, a0), muladd(load(X, x + d + j), v, a1)
            a2 = muladd(load(X, x + 2 * d + j), v, a2)
            a3 = muladd(load(X, x + 3 * d + j), v, a3)
        if beyond:
            x += d - L
            a0, a1 = muladd(load(X, x), last, a0), muladd(load(X, x + d), last, a1)
            a2 = muladd(load(X, x + 2 * d), last, a2)
            a3 = muladd(load(X, x + 3 * d), last, a3)
        z[i], z[i + 1], z[i + 2], z[i + 3] = total(a0), total(a1), total(a2), total(a3)
    for i in range(n - n % 4, n):
        z[i] = like(z[0], 0.0)
        for j in range(whole):
            z[i] += X[start + i, j] * W[k, j]
    for i in range(n - n % 4 if beyond else 0, n):
        for j in range(whole, d):
            z[i] += X[start + i, j] * W[k, j]


@part
def _add_gradient(X: Array, start: int, z: Array, tail: Array, G: Array, k: int) -> None:
    """Add the rows from ``start``, times ``z``, to the gradient of model ``k``."""
    stay_apart()
    n, d, L = z.shape[0], X.shape[1], lane_count(X.itemsize)
    g, whole, beyond = k * d, d - d % L, d % L > 0 and d > L
    last = load(tail, 0)
    for i in range(0, n - 3, 4):
        x = (start + i) * d
        c0, c1, c2, c3 = splat(z[i]), splat(z[i + 1]), splat(z[i + 2]), splat(z[i + 3])
        for j in range(0, whole, L):
            a = muladd(load(X, x + j), c0, load(G, g + j))
            b = load(X, x + 2 * d + j) * c2
            a = muladd(load(X, x + d + j), c1, a)
            store(G, g + j, a + muladd(load(X, x + 3 * d + j), c3, b))
        if beyond:
            x += d - L
            a = muladd(load(X, x + d), c1, load(X, x) * c0)
            b = muladd(load(X, x + 3 * d), c3, load(X, x + 2 * d) * c2)
            store(G, g + d - L, muladd(a + b, last, load(G, g + d - L)))
    for i in range(n - n % 4, n):
        for j in range(whole):
            G[k, j] += X[start + i, j] * z[i]
    for i in range(n - n % 4 if beyond else 0, n):
        for j in range(whole, d):
            G[k, j] += X[start + i, j] * z[i]


@kernel
def few(
    X: Array, W: Array, b: Array, targets: Array, weights: Array, score_weights: Array,
    segments: Array, deltas: Array, sums: Array, scores: Array, G: Array, R: int,
) -> None:  # fmt: skip
    """Add up a pass, ``R`` rows that stay in cache at a time.

    ``W`` is (B, d), and so is ``G``, or (0, d) without gradient.
    """
    B, n = W.shape[0], X.shape[0]
    buffer = np.empty(B * R, X.dtype)
    tail = _tail(X.shape[1], buffer)
    for start in range(0, n, R):
        stop = min(start + R, n)
        Z = buffer[: B * (stop - start)].reshape(B, stop - start)
        for k in range(B):
            _margins(X, start, W, k, tail, Z[k])
        trained = add_slopes(
            Z, b, targets[start:stop], weights[start:stop], score_weights[start:stop],
            segments, deltas, sums, scores,
        )  # fmt: skip
        for s in range(segments.shape[0]):
            if trained[s] and G.shape[0] > 0:
                for k in range(segments[s, 0], segments[s, 1]):
                    _add_gradient(X, start, Z[k], tail, G, k)
