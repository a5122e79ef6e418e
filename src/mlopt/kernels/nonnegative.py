"""Small systems ``A z = b``, also where some coordinates may not be negative.

What is minimised is ``z A z / 2 - b z``; of ``A`` the upper triangle is read. *By turns*
each coordinate takes its best value for the others: near enough in a few turns where A is
well-conditioned. *By sets* (Lawson and Hanson, "Solving least squares problems", 1974,
chapter 23) the coordinates that are not bound are solved for, and those that would be
negative are bound; then the one is freed whose slope is the steepest. That ends at the
solution, whatever the condition.
"""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray

from mlopt.kernels.compiled import part

Array = NDArray[Any]

_BOUND, _FREE, _BARRED = 0, 1, 2
"""What a coordinate is; barred: it was freed, and adds nothing until another one does."""
_STILL = 1e-6
"""Turns are done when no coordinate moves by more than this share of the largest."""
_ROUNDS = 3
"""Coordinates are freed so many times as there are, at most: as scipy's `nnls` has it."""
_STEEP = 1e-13
"""A slope that is less than this share of the largest in b is rounding, in float64."""
_SURE = 1e-13
"""What elimination must leave of a diagonal entry, as a share: else the coordinate adds
nothing that float64 could tell from rounding."""


@part
def cholesky(A: Array, b: Array, m: int, least: float) -> bool:
    """Solve ``A z = b`` into ``b``; of ``A`` the upper triangle is read, and lost.

    False, and nothing is solved, where less than ``least`` of a diagonal entry is left.
    """
    for j in range(m):
        whole = A[j, j]
        for i in range(j):
            whole += A[i, j] * A[i, j]
        if not A[j, j] > least * whole:
            return False
        pivot = 1.0 / math.sqrt(A[j, j])
        b[j] *= pivot
        for k in range(j, m):
            A[j, k] *= pivot
        for i in range(j + 1, m):
            c = A[j, i]
            b[i] -= c * b[j]
            for k in range(i, m):
                A[i, k] -= c * A[j, k]
    for j in range(m - 1, -1, -1):
        value = b[j]
        for k in range(j + 1, m):
            value -= A[j, k] * b[k]
        b[j] = value / A[j, j]
    return True


@part
def _slope(A: Array, b: Array, m: int, z: Array, j: int) -> float:
    """How steeply the aim falls where coordinate ``j`` grows."""
    slope = b[j]
    for k in range(j):
        slope -= A[k, j] * z[k]
    for k in range(j, m):
        slope -= A[j, k] * z[k]
    return float(slope)


@part
def by_turns(A: Array, b: Array, m: int, bounded: int, turns: int, z: Array) -> None:
    """Turns of all coordinates, from ``z``, of which the first ``bounded`` are bounded."""
    for _turn in range(turns):
        largest, moved = 0.0, 0.0
        for j in range(m):
            new = z[j] + _slope(A, b, m, z, j) / A[j, j]
            if j < bounded:
                new = max(new, 0.0)
            moved = max(moved, abs(new - z[j]))
            largest = max(largest, abs(new))
            z[j] = new
        if moved <= _STILL * largest:
            return


@part
def _solved(A: Array, b: Array, m: int, free: Array, B: Array, c: Array) -> bool:
    """The solution of the free coordinates, into ``c``, where the others are zero."""
    count = 0
    for j in range(m):
        if free[j] == _FREE:
            at = count
            for k in range(j, m):
                if free[k] == _FREE:
                    B[count, at] = A[j, k]
                    at += 1
            c[count] = b[j]
            count += 1
    if not cholesky(B, c, count, _SURE):
        return False
    for j in range(m - 1, -1, -1):
        if free[j] == _FREE:
            count -= 1
            c[j] = c[count]
        else:
            c[j] = 0.0
    return True


@part
def _settle(
    A: Array, b: Array, m: int, bounded: int, z: Array, free: Array, B: Array, c: Array
) -> bool:
    """To the best ``z`` for free coordinates, binding those that would be negative."""
    while True:
        if not _solved(A, b, m, free, B, c):
            return False
        step, first = 1.0, -1
        for j in range(bounded):
            if free[j] == _FREE and c[j] <= 0.0 and z[j] <= step * (z[j] - c[j]):
                step, first = z[j] / (z[j] - c[j]) if z[j] > c[j] else 0.0, j
        for j in range(m):
            if free[j] == _FREE:
                z[j] += step * (c[j] - z[j])
        if first < 0:
            return True
        z[first], free[first] = 0.0, _BOUND


@part
def by_sets(
    A: Array, b: Array, m: int, bounded: int, z: Array, free: Array, B: Array, c: Array
) -> None:
    """The solution, from any ``z``; ``free`` (m,), ``B`` (m, m) and ``c`` (m,) are lost."""
    steep = 0.0
    for j in range(m):
        free[j] = _BOUND if j < bounded and z[j] <= 0.0 else _FREE
        steep = max(steep, _STEEP * abs(b[j]))
    if not _settle(A, b, m, bounded, z, free, B, c):
        for j in range(m):
            free[j], z[j] = _BOUND if j < bounded else _FREE, 0.0
        _settle(A, b, m, bounded, z, free, B, c)
    for _round in range(_ROUNDS * m):
        best, steepest = -1, steep
        for j in range(bounded):
            if free[j] == _BOUND:
                slope = _slope(A, b, m, z, j)
                if slope > steepest:
                    best, steepest = j, slope
        if best < 0:
            return
        free[best] = _FREE
        if _settle(A, b, m, bounded, z, free, B, c) and free[best] == _FREE:
            for j in range(m):
                free[j] = _FREE if free[j] == _FREE else _BOUND
        else:
            free[best], z[best] = _BARRED, 0.0
