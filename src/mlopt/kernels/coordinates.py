"""Primal coordinate descent for smooth losses: one column of the matrix at a time.

Minimises ``sum_i c_i loss(z_i, y_i) + l2/2 ||w||^2`` for margins ``z = X w + b``, by steps
``-g / H`` along one column each, with ``g = sum_i s_i x_ij + l2 w_j`` and the slopes
``s_i = c_i loss'(z_i)``. Margins and slopes are kept up to date, so a visit costs one pass
over the column and, where it steps, one loss for each value stored in it.

``H`` starts from an upper bound of the curvature, with which no step is too long (Chang,
Hsieh, Lin, "Coordinate descent method for large-scale L2-loss linear SVM", JMLR 2008).
From then on it is the curvature between the two ends of the last step, but no less than a
part of what it was: losses that are straight far from their minimum, as Huber's, tell of
none, and steps only grow as long as slopes stay. A step that leads beyond the minimum, to a
slope not much smaller, is shortened at once: to where the line through the slopes at its
two ends is zero, which lies between these.

Shapes: ``n`` rows, ``d`` columns. The matrix is given transposed, rows as in
`mlopt.kernels.one_row`. ``z, slopes, y, c`` are (n,); ``w, curvature, bound`` (d + 1,),
the last entry for the intercept, which is not penalised.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel, read_only
from mlopt.kernels.elementary import exp
from mlopt.kernels.losses import (
    HUBER,
    LOGISTIC,
    LOSSES,
    SQUARED,
    SQUARED_HINGE,
    loss_and_slope,
)
from mlopt.kernels.one_row import Rows, dot, layout, products

Array = NDArray[Any]

_TRIES = 8
_SHORT = 0.5
_FLATTEST = 1e-9
_FLATTER = 0.1
"""Of a curvature, the least that the next one may be."""


@inlined
def _move_row(
    loss: int, i: Any, by: float, z: Array, y: Array, c: Array, delta: float, s: Array
) -> Any:
    margin = z[i] + by
    e = exp(-abs(margin))
    slope = c[i] * loss_and_slope(loss, margin, y[i], e, delta)[1]
    z[i], s[i] = margin, slope
    return slope


@inlined
def _move(
    loss: int, rows: Rows, j: int, step: float, z: Array, y: Array, c: Array,
    delta: float, s: Array,
) -> Any:  # fmt: skip
    """A step along column ``j``; returns its product with the new slopes."""
    X, data, indices, indptr = rows
    total = 0.0
    if j == X.shape[0] + indptr.shape[0] - 1:  # the intercept, beyond the last column
        for i in range(z.shape[0]):
            _move_row(loss, i, step, z, y, c, delta, s)
        for i in range(z.shape[0]):
            total += s[i]
    elif X.shape[0] > 0:
        for i in range(z.shape[0]):  # no sum in this loop: it becomes SIMD instructions
            _move_row(loss, i, step * X[j, i], z, y, c, delta, s)
        total = dot(rows, j, s)
    else:
        for k in range(indptr[j], indptr[j + 1]):
            row = np.uint64(indices[k])
            slope = _move_row(loss, row, step * data[k], z, y, c, delta, s)
            total += data[k] * slope
    return total


@inlined
def _moved(loss: int, *rest: Any) -> Any:
    # The number as a constant: loops without branches instead of one with them.
    if loss == LOGISTIC:
        return _move(LOGISTIC, *rest)
    if loss == SQUARED:
        return _move(SQUARED, *rest)
    if loss == SQUARED_HINGE:
        return _move(SQUARED_HINGE, *rest)
    return _move(HUBER, *rest)


@inlined
def _slope(rows: Rows, j: int, s: Array) -> Any:
    if j < rows[0].shape[0] + rows[3].shape[0] - 1:
        return dot(rows, j, s)
    total = 0.0
    for i in range(s.shape[0]):
        total += s[i]
    return total


@kernel
def _epoch(
    loss: int, rows: Rows, y: Array, c: Array, order: Array, bound: Array, l2: float,
    delta: float, trifle: float, z: Array, slopes: Array, w: Array, curvature: Array,
) -> float:  # fmt: skip
    fell, d = 0.0, w.shape[0] - 1
    for position in range(order.shape[0]):
        j = order[position]
        penalty = l2 if j < d else 0.0
        if bound[j] <= 0.0:
            continue
        g = _slope(rows, j, slopes) + penalty * w[j]
        H = curvature[j]
        fall = 0.5 * g * g / H
        if fall <= trifle:
            continue
        fell += fall
        first, moved = g, 0.0
        for _ in range(_TRIES):
            step = -g / H
            moved += step
            w[j] += step
            g = penalty * w[j] + _moved(loss, rows, j, step, z, y, c, delta, slopes)
            if moved == 0.0:  # there and back: only rounding is left
                break
            least = max(_FLATTEST * bound[j] + penalty, _FLATTER * H)
            H = min(max((g - first) / moved, least), bound[j])
            if g * first >= 0.0 or abs(g) <= _SHORT * abs(first):
                break
        curvature[j] = H
    return fell


def coordinate_epoch(
    columns: Any,
    y: Array,
    c: Array,
    order: NDArray[np.int64],
    *,
    loss: str,
    l2: float,
    delta: float,
    trifle: float,
    bound: Array,
    z: Array,
    slopes: Array,
    w: Array,
    curvature: Array,
) -> float:
    """Visit columns in the given order; ``z, slopes, w, curvature`` change in place.

    Parameters
    ----------
    columns : ndarray or CSR array of shape (d, n)
        The transpose of the matrix.
    y, c, z, slopes : ndarray of shape (n,), float64
        Targets, weights of the rows, margins and weighted slopes of the losses there.
    order : ndarray of int64
        Column numbers; ``d`` is the intercept.
    loss : str
        "logistic", "squared", "squared_hinge" or "huber".
    l2, delta : float
    trifle : float
        Columns are passed over where a step promises no more than this.
    bound, w, curvature : ndarray of shape (d + 1,), float64
        Largest curvatures of the objective along each column, weights, and curvatures of
        the last steps, at first those of ``bound``.

    Returns
    -------
    float
        The decrease of the objective that the steps promised.
    """
    fell = _epoch(
        LOSSES[loss], layout(columns), *map(read_only, (y, c, order, bound)), float(l2),
        float(delta), float(trifle), z, slopes, w, curvature,
    )  # fmt: skip
    return float(fell)


def column_slopes(columns: Any, slopes: Array) -> NDArray[np.float64]:
    """Product of every column, and of a column of ones, with the slopes, (d + 1,)."""
    return np.append(products(columns, slopes), slopes.sum())
