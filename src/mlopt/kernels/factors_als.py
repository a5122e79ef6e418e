"""Matrix factorization by alternating least squares: the factors of one side, row by row.

With the rows ``f`` of the other side fixed, each row ``z`` has a problem of its own.
Ratings (`solve_rows`; Zhou et al., "Large-scale parallel collaborative filtering for the
Netflix prize", AAIM 2008), over the ratings ``t`` of the row::

    sum (t - z f)^2 + penalty n |z|^2

by Cholesky's factorization, or by turns of its coordinates where none may be negative; then
by sets of those that are zero, where a row is asked for to the end.
Counts (`confide_rows`; Hu, Koren, Volinsky, "Collaborative filtering for implicit feedback
datasets", ICDM 2008), over all rows ``f`` of the other side::

    sum c (t - z f)^2 + penalty |z|^2,   t = 1 and c = 1 + weight where there is a count,
                                         t = 0 and c = 1 where there is none

by a few steps of conjugate gradients from the ``z`` of before (Takács, Pilászy, Tikk,
"Applications of the conjugate gradient method for implicit feedback collaborative
filtering", RecSys 2011). Many rows go together through ``F'F``.

Rows are float32, filled up with zeros to ``width``, whole lanes; sums of squares of a row
are in float32, and in float64 where that is not enough; systems are solved in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import kernel, part, read_only
from mlopt.kernels.factors_sgd import LANES
from mlopt.kernels.nonnegative import by_sets, by_turns, cholesky
from mlopt.kernels.simd import like, load, muladd, splat, splat_at, store, total

Array = NDArray[Any]

TURNS = 50
"""Turns of all coordinates at most, of a row that may not be negative, in a pass: the next
pass goes on from there, with other factors of the other side."""
TOGETHER = 32
"""Rows that go through ``F'F`` together: twice as many take as long."""
_LEFT = 1e-4
"""What elimination must leave of a diagonal entry: sums in float32, right to 1e-7 of it,
know three digits of so much, and of less hardly whether it is positive."""
_QUARTET = 4
"""Of rows whose sums stay in registers at a time."""


@part
def _gram(
    indices: Array, targets: Array, begin: int, end: int, F: Array, m: int, G: Array,
    h: Array,
) -> None:  # fmt: skip
    """``G += sum f f'`` from its diagonal on, by whole lanes, and ``h += sum t f``."""
    width = F.shape[1]
    at = begin
    while at < end:
        # Four at a time, so that sums are read and written once for them.
        f0 = np.int64(indices[at]) * width
        f1 = np.int64(indices[min(at + 1, end - 1)]) * width
        f2 = np.int64(indices[min(at + 2, end - 1)]) * width
        f3 = np.int64(indices[min(at + 3, end - 1)]) * width
        one, none = like(F[0, 0], 1.0), like(F[0, 0], 0.0)
        w1 = one if at + 1 < end else none
        w2 = one if at + 2 < end else none
        w3 = one if at + 3 < end else none
        t0, t1 = splat(targets[at]), splat(w1 * targets[min(at + 1, end - 1)])
        t2 = splat(w2 * targets[min(at + 2, end - 1)])
        t3 = splat(w3 * targets[min(at + 3, end - 1)])
        for j in range(0, width, LANES):
            v = muladd(t0, load(F, f0 + j), load(h, j))
            v = muladd(t1, load(F, f1 + j), v)
            v = muladd(t2, load(F, f2 + j), v)
            store(h, j, muladd(t3, load(F, f3 + j), v))
        for a in range(m):
            x0, x1 = splat_at(F, f0 + a), splat(w1) * splat_at(F, f1 + a)
            x2, x3 = splat(w2) * splat_at(F, f2 + a), splat(w3) * splat_at(F, f3 + a)
            row = a * width
            for j in range(a - a % LANES, width, LANES):
                v = muladd(x0, load(F, f0 + j), load(G, row + j))
                v = muladd(x1, load(F, f1 + j), v)
                v = muladd(x2, load(F, f2 + j), v)
                store(G, row + j, muladd(x3, load(F, f3 + j), v))
        at += _QUARTET


@part
def _fill(
    indices: Array, targets: Array, begin: int, end: int, F: Array, m: int,
    penalty: float, A: Array, b: Array,
) -> None:  # fmt: skip
    """The system of a row, with sums in float64."""
    A[:] = 0.0
    b[:] = 0.0
    for at in range(begin, end):
        f = F[np.uint64(indices[at])]
        for a in range(m):
            b[a] += np.float64(targets[at]) * f[a]
            for k in range(a, m):
                A[a, k] += np.float64(f[a]) * f[k]
    for a in range(m):
        A[a, a] += penalty * (end - begin)


@kernel
def _solve_rows(
    starts: Array, indices: Array, targets: Array, F: Array, m: int, penalty: float,
    bounded: int, ends: bool, Z: Array, first: int, last: int,
) -> None:  # fmt: skip
    width = F.shape[1]
    G, h = np.empty((m, width), F.dtype), np.empty(width, F.dtype)
    A, b, z = np.empty((m, m)), np.empty(m), np.empty(m)
    B, c, free = np.empty((m, m)), np.empty(m), np.empty(m, np.int8)
    for u in range(first, last):
        begin, end = starts[u], starts[u + 1]
        if begin == end:
            Z[u, :] = 0
            continue
        G[:] = 0
        h[:] = 0
        _gram(indices, targets, begin, end, F, m, G, h)
        for a in range(m):
            for k in range(a, m):
                A[a, k] = G[a, k]
            A[a, a] += penalty * (end - begin)
            b[a], z[a] = h[a], Z[u, a]
        if bounded > 0:
            by_turns(A, b, m, bounded, TURNS, z)
            if ends:
                _fill(indices, targets, begin, end, F, m, penalty, A, b)
                by_sets(A, b, m, bounded, z, free, B, c)
            for a in range(m):
                Z[u, a] = z[a]
        else:
            if not cholesky(A, b, m, _LEFT):
                _fill(indices, targets, begin, end, F, m, penalty, A, b)
                if not cholesky(A, b, m, 0.0):
                    b[:] = np.nan
            for a in range(m):
                Z[u, a] = b[a]


def solve_rows(
    rows: tuple[Array, Array, Array],
    F: Array,
    Z: Array,
    *,
    columns: int,
    penalty: float,
    bounded: int = 0,
    ends: bool = False,
    first: int = 0,
    last: int | None = None,
) -> None:
    """The least squares solution of each row, into ``Z``.

    Parameters
    ----------
    rows : int64 (n + 1,), int32 (stored,), float32 (stored,)
        Where each row begins; the rows of ``F`` that it has a target for; the targets.
    F : float32 (other side, width)
        C-contiguous, ``width`` a multiple of `LANES`.
    Z : float32 (n, width)
        Changed in place; where coordinates are bounded, also where their turns begin.
    columns : int
        Of ``F`` that are not there to fill it up, at most ``width``.
    penalty : float
        Positive. Counts once for each target of a row.
    bounded : int, default=0
        So many first coordinates may not be negative.
    ends : bool
        Whether bounded coordinates are to be at the solution, and not only near it.
    first, last : int
        Rows from ``first`` up to ``last`` are solved.
    """
    end = len(Z) if last is None else last
    fixed = map(read_only, (*rows, F))
    _solve_rows(*fixed, columns, penalty, bounded, ends, Z, first, end)


@part
def _through(gram: Array, X: Array, count: int, Y: Array) -> None:
    """``Y = X gram`` for the first ``count`` rows, four at a time."""
    width = X.shape[1]
    t = 0
    while t < count:
        x0, x1 = t * width, min(t + 1, count - 1) * width
        x2, x3 = min(t + 2, count - 1) * width, min(t + 3, count - 1) * width
        for j in range(0, width, LANES):
            a = b = c = d = splat(like(X[0, 0], 0.0))
            for k in range(width):
                g = load(gram, k * width + j)
                a = muladd(splat_at(X, x0 + k), g, a)
                b = muladd(splat_at(X, x1 + k), g, b)
                c = muladd(splat_at(X, x2 + k), g, c)
                d = muladd(splat_at(X, x3 + k), g, d)
            store(Y, x3 + j, d)
            store(Y, x2 + j, c)
            store(Y, x1 + j, b)
            store(Y, x0 + j, a)
        t += _QUARTET


@part
def _add(
    indices: Array, weights: Array, begin: int, end: int, F: Array, x: int, X: Array,
    target: Any, y: int, Y: Array,
) -> None:  # fmt: skip
    """``y += sum ((1 + weight) target + weight x f) f``, for rows at ``x`` and ``y``."""
    width = F.shape[1]
    for at in range(begin, end):
        f = np.int64(indices[at]) * width
        a = b = splat(like(F[0, 0], 0.0))
        even = width - width % (2 * LANES)
        for j in range(0, even, 2 * LANES):
            a = muladd(load(F, f + j), load(X, x + j), a)
            b = muladd(load(F, f + j + LANES), load(X, x + j + LANES), b)
        if even < width:
            a = muladd(load(F, f + even), load(X, x + even), a)
        weight = weights[at]
        step = splat((like(weight, 1.0) + weight) * target + weight * total(a + b))
        for j in range(0, width, LANES):
            store(Y, y + j, muladd(step, load(F, f + j), load(Y, y + j)))


@part
def _dot(X: Array, x: int, Y: Array, y: int, width: int) -> Any:
    a = splat(like(X[0, 0], 0.0))
    for j in range(0, width, LANES):
        a = muladd(load(X, x + j), load(Y, y + j), a)
    return total(a)


@kernel
def _confide_rows(
    starts: Array, indices: Array, weights: Array, F: Array, gram: Array, steps: int,
    Z: Array, first: int, last: int,
) -> None:  # fmt: skip
    width = F.shape[1]
    shape = (TOGETHER, width)
    X, R = np.empty(shape, F.dtype), np.empty(shape, F.dtype)
    D, Y = np.empty(shape, F.dtype), np.empty(shape, F.dtype)
    squares = np.empty(TOGETHER, F.dtype)
    zero, one = like(F[0, 0], 0.0), like(F[0, 0], 1.0)
    for low in range(first, last, TOGETHER):
        count = min(TOGETHER, last - low)
        X[:count] = -Z[low : low + count]
        _through(gram, X, count, R)
        for t in range(count):
            begin, end, x = starts[low + t], starts[low + t + 1], t * width
            _add(indices, weights, begin, end, F, x, X, one, x, R)
            D[t] = R[t]
            squares[t] = _dot(R, x, R, x, width)
        for _step in range(steps):
            _through(gram, D, count, Y)
            for t in range(count):
                x = t * width
                if squares[t] <= zero:
                    continue
                _add(
                    indices, weights, starts[low + t], starts[low + t + 1], F, x, D, zero,
                    x, Y,
                )  # fmt: skip
                bend = _dot(D, x, Y, x, width)
                if bend <= zero:  # too small for its square: nothing is left to do
                    squares[t] = zero
                    continue
                rate = squares[t] / bend
                for j in range(width):
                    Z[low + t, j] += rate * D[t, j]
                    R[t, j] -= rate * Y[t, j]
                new = _dot(R, x, R, x, width)
                turn = new / squares[t]
                squares[t] = new
                for j in range(width):
                    D[t, j] = R[t, j] + turn * D[t, j]


def confide_rows(
    rows: tuple[Array, Array, Array],
    F: Array,
    gram: Array,
    Z: Array,
    *,
    steps: int,
    first: int = 0,
    last: int | None = None,
) -> None:
    """Steps of conjugate gradients for each row, from ``Z`` into ``Z``.

    Parameters
    ----------
    rows : int64 (n + 1,), int32 (stored,), float32 (stored,)
        Where each row begins; the rows of ``F`` that it has a count for; what these weigh
        more than those without.
    F : float32 (other side, width)
        C-contiguous, ``width`` a multiple of `LANES`.
    gram : float32 (width, width)
        ``F'F`` with the penalty on its diagonal.
    Z : float32 (n, width)
        Changed in place.
    steps : int
    first, last : int
        Rows from ``first`` up to ``last`` are solved.
    """
    end = len(Z) if last is None else last
    _confide_rows(*map(read_only, (*rows, F, gram)), steps, Z, first, end)
