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
def _margins(X: Array, start: int, W: Array, k: int, z: Array) -> None:
    """Margins of model ``k`` for the rows from ``start``."""
    stay_apart()
    n, d, L = z.shape[0], X.shape[1], lane_count(X.itemsize)
    whole, w = d - d % L, k * d
    for i in range(0, n - 3, 4):
        x = (start + i) * d
        a0 = a1 = a2 = a3 = splat(like(z[0], 0.0))
        for j in range(0, whole, L):
            v = load(W, w + j)
            a0, a1 = muladd(load(X, x + j), v, a0), muladd(load(X, x + d + j), v, a1)
            a2 = muladd(load(X, x + 2 * d + j), v, a2)
            a3 = muladd(load(X, x + 3 * d + j), v, a3)
        s0, s1, s2, s3 = total(a0), total(a1), total(a2), total(a3)
        for j in range(whole, d):
            v0 = W[k, j]
            s0, s1 = s0 + X[start + i, j] * v0, s1 + X[start + i + 1, j] * v0
            s2, s3 = s2 + X[start + i + 2, j] * v0, s3 + X[start + i + 3, j] * v0
        z[i], z[i + 1], z[i + 2], z[i + 3] = s0, s1, s2, s3
    for i in range(n - n % 4, n):
        s0 = like(z[0], 0.0)
        for j in range(d):
            s0 += X[start + i, j] * W[k, j]
        z[i] = s0


@part
def _add_gradient(X: Array, start: int, z: Array, G: Array, k: int) -> None:
    """Add the rows from ``start``, times ``z``, to the gradient of model ``k``."""
    stay_apart()
    n, d, L = z.shape[0], X.shape[1], lane_count(X.itemsize)
    whole, g = d - d % L, k * d
    for i in range(0, n - 3, 4):
        x = (start + i) * d
        s0, s1, s2, s3 = z[i], z[i + 1], z[i + 2], z[i + 3]
        c0, c1, c2, c3 = splat(s0), splat(s1), splat(s2), splat(s3)
        for j in range(0, whole, L):
            a = muladd(load(X, x + j), c0, load(G, g + j))
            b = load(X, x + 2 * d + j) * c2
            a = muladd(load(X, x + d + j), c1, a)
            b = muladd(load(X, x + 3 * d + j), c3, b)
            store(G, g + j, a + b)
        for j in range(whole, d):
            G[k, j] += (X[start + i, j] * s0 + X[start + i + 1, j] * s1) + (
                X[start + i + 2, j] * s2 + X[start + i + 3, j] * s3
            )
    for i in range(n - n % 4, n):
        for j in range(d):
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
    for start in range(0, n, R):
        stop = min(start + R, n)
        Z = buffer[: B * (stop - start)].reshape(B, stop - start)
        for k in range(B):
            _margins(X, start, W, k, Z[k])
        trained = add_slopes(
            Z, b, targets[start:stop], weights[start:stop], score_weights[start:stop],
            segments, deltas, sums, scores,
        )  # fmt: skip
        for s in range(segments.shape[0]):
            if trained[s] and G.shape[0] > 0:
                for k in range(segments[s, 0], segments[s, 1]):
                    _add_gradient(X, start, Z[k], G, k)
