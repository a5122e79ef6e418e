"""Passes over dense rows: two matrix products a block of rows for many models, one fused
loop for a few.

Weights and gradients lie here as ``(B, d)``, margins as ``(B, R)`` for a block of ``R``
rows: what belongs to a model is contiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import kernel, part, stay_apart
from mlopt.kernels.simd import like
from mlopt.kernels.slopes import add_slopes

Array = NDArray[Any]

FUSED_COLUMNS = 6
"""Up to so many columns the fused loop is faster than BLAS."""
_CACHE = 256 * 1024
"""Bytes of rows in a block: half of a common second-level cache."""


def fused_rows(d: int, itemsize: int) -> int:
    """Return how many rows make a block of the fused loop."""
    return int(min(max(_CACHE // 2 // (d * itemsize), 64), 1024)) // 8 * 8


def block_rows(d: int, itemsize: int) -> int:
    """Return how many rows make a block of matrix products."""
    return int(min(max(_CACHE // (d * itemsize), 256), 2048)) // 8 * 8


def products(
    X: Array,
    W: Array,
    b: Array,
    targets: Array,
    weights: Array,
    score_weights: Array,
    segments: Array,
    deltas: Array,
    sums: Array,
    scores: Array,
    G: Array,
) -> None:
    """Add up a pass by two BLAS products a block; ``W`` and ``G`` are (B, d)."""
    R = block_rows(X.shape[1], X.itemsize)
    margins = np.empty(W.shape[0] * R, X.dtype)
    change = np.empty_like(G)
    for start in range(0, X.shape[0], R):
        rows = slice(start, start + R)
        x = X[rows]
        Z = margins[: W.shape[0] * x.shape[0]].reshape(W.shape[0], x.shape[0])
        np.dot(W, x.T, out=Z)
        trained = add_slopes(
            Z, b, targets[rows], weights[rows], score_weights[rows], segments, deltas,
            sums, scores,
        )  # fmt: skip
        if not len(G):  # only the margins were asked for
            continue
        for first, last in spans(segments, trained):
            np.dot(Z[first:last], x, out=change[first:last])
            np.add(G[first:last], change[first:last], out=G[first:last])


def spans(segments: Array, trained: Array) -> list[tuple[int, int]]:
    """Return the column ranges of neighbouring segments that are trained, merged."""
    ranges: list[tuple[int, int]] = []
    for start, stop in segments[trained, :2].tolist():
        if ranges and ranges[-1][1] == start:
            start = ranges.pop()[0]
        ranges.append((start, stop))
    return ranges


@part
def _dots(X: Array, first: int, w: Array, z: Array) -> None:
    """Margins of the rows from ``first``; four rows share what is loaded of ``w``."""
    stay_apart()
    zero = like(w[0], 0.0)
    n = z.shape[0]
    for i in range(0, n - 3, 4):
        x0, x1, x2, x3 = X[first + i], X[first + i + 1], X[first + i + 2], X[first + i + 3]
        a0, a1, a2, a3 = zero, zero, zero, zero
        for j in range(w.shape[0]):
            a0 += x0[j] * w[j]
            a1 += x1[j] * w[j]
            a2 += x2[j] * w[j]
            a3 += x3[j] * w[j]
        z[i], z[i + 1], z[i + 2], z[i + 3] = a0, a1, a2, a3
    for i in range(n - n % 4, n):
        x0, a0 = X[first + i], zero
        for j in range(w.shape[0]):
            a0 += x0[j] * w[j]
        z[i] = a0


@part
def _add_rows(X: Array, first: int, z: Array, g: Array) -> None:
    """Add the rows from ``first``, times ``z``, to ``g``, four at a time."""
    stay_apart()
    n = z.shape[0]
    for i in range(0, n - 3, 4):
        x0, x1, x2, x3 = X[first + i], X[first + i + 1], X[first + i + 2], X[first + i + 3]
        a0, a1, a2, a3 = z[i], z[i + 1], z[i + 2], z[i + 3]
        for j in range(g.shape[0]):
            g[j] += a0 * x0[j] + a1 * x1[j] + a2 * x2[j] + a3 * x3[j]
    for i in range(n - n % 4, n):
        x0, a0 = X[first + i], z[i]
        for j in range(g.shape[0]):
            g[j] += a0 * x0[j]


@kernel
def fused(
    X: Array,
    W: Array,
    b: Array,
    targets: Array,
    weights: Array,
    score_weights: Array,
    segments: Array,
    deltas: Array,
    sums: Array,
    scores: Array,
    G: Array,
    R: int,
) -> None:
    """Add up a pass model by model over ``R`` rows that stay in the first-level cache.

    ``W`` is (B, d), and so is ``G``, or (0, d) without gradient.
    """
    B, n = W.shape[0], X.shape[0]
    buffer = np.empty(B * R, X.dtype)
    for start in range(0, n, R):
        stop = min(start + R, n)
        Z = buffer[: B * (stop - start)].reshape(B, stop - start)
        for k in range(B):
            _dots(X, start, W[k], Z[k])
        trained = add_slopes(
            Z, b, targets[start:stop], weights[start:stop], score_weights[start:stop],
            segments, deltas, sums, scores,
        )  # fmt: skip
        for s in range(segments.shape[0]):
            if trained[s] and G.shape[0] > 0:
                for k in range(segments[s, 0], segments[s, 1]):
                    _add_rows(X, start, Z[k], G[k])
