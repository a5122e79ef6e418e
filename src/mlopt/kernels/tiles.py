"""Matrix products in tiles of registers, for the shapes that a pass over rows has.

A BLAS copies both factors to buffers of its own; where one of them is a few columns wide
the copies cost as much as the product. Here only that factor lies in panels, two registers
wide, and the rows are read where they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel, part, stay_apart
from mlopt.kernels.simd import lane_count, like, load, muladd, splat, splat_at, store, turn
from mlopt.kernels.slopes import Inputs, add_slopes, clear_untrained, of_rows

Array = NDArray[Any]

_STREAMS = 6
"""Lines of a tile: six times two registers of sums, and four for what they sum up."""


@inlined
def _more(A: Array, at: int, low: Any, high: Any, sums: Any) -> Any:
    x = splat_at(A, at)
    return muladd(x, low, sums[0]), muladd(x, high, sums[1])


@inlined
def _put(C: Array, at: int, sums: Any, add: bool) -> None:
    L, (low, high) = lane_count(C.itemsize), sums
    store(C, at, low + load(C, at) if add else low)
    store(C, at + L, high + load(C, at + L) if add else high)


@part
def tile(
    A: Array, first: int, stride: int, used: int, step: int, count: int, panel: Array,
    base: int, C: Array, to: int, add: bool,
) -> None:  # fmt: skip
    """Multiply up to six streams of numbers by a panel of two registers.

    Line k of the product, from ``C.flat[to + 2 * L * k]`` with ``L`` lanes a register, is
    the sum over t < ``count`` of ``A.flat[first + k * stride + t * step]`` times
    ``panel.flat[base + 2 * L * t]`` and what follows there; ``add`` adds it to what is in
    ``C``. Of the lines the first ``used`` are written.
    """
    stay_apart()
    L = lane_count(A.itemsize)
    # Streams that are not used read the last one that is.
    a1, a2 = min(1, used - 1) * stride, min(2, used - 1) * stride
    a3, a4 = min(3, used - 1) * stride, min(4, used - 1) * stride
    a5 = min(5, used - 1) * stride
    zero = splat(like(panel[0], 0.0))
    c = d = e = f = g = h = (zero, zero)
    for _ in range(count):
        low, high = load(panel, base), load(panel, base + L)
        base += 2 * L
        c = _more(A, first, low, high, c)
        d = _more(A, first + a1, low, high, d)
        e = _more(A, first + a2, low, high, e)
        f = _more(A, first + a3, low, high, f)
        g = _more(A, first + a4, low, high, g)
        h = _more(A, first + a5, low, high, h)
        first += step
    _put(C, to, c, add)
    if used > 1:
        _put(C, to + 2 * L, d, add)
    if used > 2:
        _put(C, to + 4 * L, e, add)
    if used > 3:
        _put(C, to + 6 * L, f, add)
    if used > 4:
        _put(C, to + 8 * L, g, add)
    if used > 5:
        _put(C, to + 10 * L, h, add)


@part
def _margins(X: Array, start: int, R: int, W: Array, p: int, Z: Array) -> None:
    """Margins of panel ``p`` for ``R`` rows from ``start``, to ``Z (R, width)``."""
    d, width = X.shape[1], 2 * lane_count(X.itemsize)
    for r in range(0, R, _STREAMS):
        used = min(_STREAMS, R - r)
        at = (start + r) * d
        tile(X, at, d, used, 1, d, W, p * d * width, Z, r * width, False)


@part
def _add_gradient(X: Array, start: int, R: int, Z: Array, G: Array, p: int) -> None:
    """Add the rows times the slopes ``Z (R, width)`` to panel ``p`` of the gradient."""
    d, width = X.shape[1], 2 * lane_count(X.itemsize)
    for j in range(0, d, _STREAMS):
        used = min(_STREAMS, d - j)
        at = start * d + j
        tile(X, at, 1, used, d, R, Z, 0, G, (p * d + j) * width, True)


@part
def _turn_panel(Z: Array, lines: Array, p: int, back: bool) -> None:
    """Copy between ``Z (R, width)`` and the lines of panel ``p``."""
    L, length = lane_count(Z.itemsize), lines.shape[1]
    for half in range(2):
        line = (2 * p + half) * L * length
        for r in range(0, length, L):
            at = (2 * r + half) * L
            if back:
                turn(lines, line + r, length, Z, at, 2 * L)
            else:
                turn(Z, at, 2 * L, lines, line + r, length)


@part
def _any_trained(segments: Array, trained: Array, first: int, last: int) -> bool:
    found = False
    for s in range(segments.shape[0]):
        if trained[s] and segments[s, 0] < last and segments[s, 1] > first:
            found = True
    return found


@part
def _fetch(X: Array, start: int, stop: int, anywhere: Array) -> None:
    """Read numbers from ``X.flat[start]`` on, which are in cache then.

    They come twice as fast as for the six streams of a tile, from memory as from the last
    cache: a processor reads ahead of a single line of addresses. Their sum goes to
    ``anywhere``.
    """
    stay_apart()
    L = lane_count(X.itemsize)
    a = b = splat(like(X[0, 0], 0.0))
    for i in range(start, stop - 2 * L + 1, 2 * L):
        a, b = a + load(X, i), b + load(X, i + L)
    store(anywhere, 0, a + b)


@kernel
def tiled(X: Array, W: Array, inputs: Inputs, G: Array, R: int) -> None:
    """Add up a pass, ``R`` rows at a time.

    ``W`` and ``G`` are panels (P, d, width), flat, with zeros for the columns that fill
    up the last one; ``G`` is empty without gradient. ``R`` is a multiple of 8.
    """
    n, d, width = X.shape[0], X.shape[1], 2 * lane_count(X.itemsize)
    B, segments = inputs[0].shape[0], inputs[4]
    P = W.shape[0] // (d * width)
    Z, buffer = np.zeros(R * width, X.dtype), np.zeros(P * width * R, X.dtype)
    for start in range(0, n, R):
        stop = min(start + R, n)
        rows = stop - start
        # Squares of lanes are turned whole: lines are as long as a multiple of 8.
        length = (rows + 7) // 8 * 8
        lines = buffer[: P * width * length].reshape(P * width, length)
        _fetch(X, start * d, stop * d, Z)
        for p in range(P):
            _margins(X, start, rows, W, p, Z)
            _turn_panel(Z, lines, p, False)
        trained = add_slopes(lines[:B], *of_rows(inputs, start, stop))
        if G.shape[0] == 0:
            continue
        clear_untrained(lines, rows, segments, trained)
        for p in range(P):
            if _any_trained(segments, trained, p * width, (p + 1) * width):
                _turn_panel(Z, lines, p, True)
                _add_gradient(X, start, rows, Z, G, p)
