"""A pass over dense rows: which loop, how many rows at a time, and the layouts it wants."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import read_only
from mlopt.kernels.few import few
from mlopt.kernels.simd import lane_count
from mlopt.kernels.tiles import tiled

Array = NDArray[Any]

_LANES = {size: lane_count(size) for size in (4, 8)}
"""By the bytes of a number."""
_CACHE = 200_000
"""Bytes of rows in a block: it stays in the second-level cache, margins beside it."""
_CACHED, _LONG = 16_000_000, 10_000
"""Bytes of rows that the last cache may hold from one pass to the next; and of a row that
is long enough to be read ahead of by itself, beside others."""


def block_rows(d: int, itemsize: int) -> int:
    """Return how many rows make a block, a multiple of 8."""
    return min(max(_CACHE // (d * itemsize), 64), 256) // 8 * 8


def dense_pass(
    X: Array,
    W: Array,
    inputs: tuple[Array, ...],
    sums: Array,
    scores: Array,
    gradient: bool,
) -> Array:
    """Add up a pass to ``sums`` and ``scores``; return the gradient (d, B), or (d, 0).

    ``inputs`` are the arguments of `mlopt.kernels.slopes.add_slopes` from ``b`` to
    ``deltas``, for all rows.
    """
    d, B = W.shape
    lanes, R = _LANES[X.itemsize], block_rows(d, X.itemsize)
    width = 2 * lanes
    # A tile costs the same however many of its columns are used.
    if 3 * width // 8 >= B and d >= lanes:
        G = np.zeros((B if gradient else 0, d), X.dtype)
        by_four = _whole_bytes(X) <= _CACHED or d * X.itemsize >= _LONG
        few(read_only(X), read_only(W.T), *inputs, sums, scores, G, R, by_four)
        return G.T
    panels = _to_panels(W, width)
    G = np.zeros_like(panels if gradient else panels[:0])
    tiled(
        read_only(X), read_only(panels.reshape(-1)), *inputs, sums, scores,
        G.reshape(-1), R,
    )  # fmt: skip
    return _from_panels(G, B)


def _whole_bytes(X: Array) -> int:
    """Bytes of the array that ``X`` is a block of, as far as its memory tells."""
    return X.base.nbytes if isinstance(X.base, np.ndarray) else X.nbytes


def _to_panels(W: Array, width: int) -> Array:
    """Return ``W (d, B)`` as panels (P, d, width), filled up with zeros."""
    d, B = W.shape
    P = -(-B // width)
    filled = np.zeros((d, P * width), W.dtype)
    filled[:, :B] = W
    return np.ascontiguousarray(filled.reshape(d, P, width).transpose(1, 0, 2))


def _from_panels(panels: Array, B: int) -> Array:
    P, d, width = panels.shape
    return panels.transpose(1, 0, 2).reshape(d, P * width)[:, :B]
