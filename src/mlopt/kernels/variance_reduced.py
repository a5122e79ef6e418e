"""Stochastic gradient steps with the variance taken out, a row at a time (SVRG).

Johnson, Zhang, "Accelerating stochastic gradient descent using predictive variance
reduction", NIPS 2013. With the loss's gradient ``G`` and slopes ``s`` at an anchor, the
step for row ``i`` is

    w <- w - rate * scale * (c_i (loss'(z_i) - s_i) x_i)
    w <- the flow of  dw/dt = -scale * (G + l2 w)  over time ``rate``

``c_i`` holds the row's weight over the chance with which it is drawn. The second part is
the same for every row, and in closed form for any number of steps: where rows are sparse a
weight is brought up to date when a row next needs it, so a step costs what its row holds.

Shapes: ``n`` rows, ``d`` columns; rows as in `mlopt.kernels.one_row`. ``w, G, scale`` are
(d + 1,), the last entry for the intercept, which is not penalised; ``y, c, s`` are (n,).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel, read_only
from mlopt.kernels.elementary import exp
from mlopt.kernels.losses import LOSSES, loss_and_slope
from mlopt.kernels.one_row import dot, layout

Array = NDArray[Any]

_SMALL = 1e-3


@inlined
def _flow(w: float, time: float, l2: float, G: float) -> Any:
    """``w`` after some time of ``dw/dt = -(G + l2 w)``."""
    x = time * l2
    if x < _SMALL:
        return w - time * (1.0 - x * (0.5 - x * 0.16666666666666666)) * (l2 * w + G)
    return w - (1.0 - exp(-x)) * (w + G / l2)


@inlined
def _slope(loss: int, z: float, y: float, delta: float) -> Any:
    return loss_and_slope(loss, z, y, exp(-abs(z)), delta)[1]


@kernel
def _dense(
    loss: int, X: Array, y: Array, c: Array, s: Array, order: Array, rate: float,
    l2: float, delta: float, G: Array, scale: Array, w: Array,
) -> None:  # fmt: skip
    d = w.shape[0] - 1
    keep, push = np.empty(d), np.empty(d)
    for j in range(d):
        push[j] = -_flow(0.0, rate * scale[j], l2, G[j])
        keep[j] = push[j] + _flow(1.0, rate * scale[j], l2, G[j])
    none, zeros = np.empty(0, X.dtype), np.empty(0, np.int64)
    for position in range(order.shape[0]):
        i = order[position]
        z = dot(X, none, zeros, zeros, i, w) + w[d]
        step = -rate * c[i] * (_slope(loss, z, y[i], delta) - s[i])
        for j in range(d):
            w[j] = keep[j] * (w[j] + step * scale[j] * X[i, j]) - push[j]
        w[d] += scale[d] * (step - rate * G[d])


@kernel
def _sparse(
    loss: int, data: Array, indices: Array, indptr: Array, y: Array, c: Array, s: Array,
    order: Array, rate: float, l2: float, delta: float, G: Array, scale: Array, w: Array,
    seen: Array,
) -> None:  # fmt: skip
    d, count = w.shape[0] - 1, order.shape[0]
    for t in range(count):
        i, z = order[t], w[d]
        for k in range(indptr[i], indptr[i + 1]):
            j = np.uint64(indices[k])  # an index that is not counted from the end
            if seen[j] < t:
                w[j] = _flow(w[j], (t - seen[j]) * rate * scale[j], l2, G[j])
                seen[j] = t
            z += data[k] * w[j]
        step = -rate * c[i] * (_slope(loss, z, y[i], delta) - s[i])
        for k in range(indptr[i], indptr[i + 1]):
            j = np.uint64(indices[k])
            w[j] += step * scale[j] * data[k]
        w[d] += scale[d] * (step - rate * G[d])
    for late in range(d):
        time = (count - seen[late]) * rate * scale[late]
        w[late] = _flow(w[late], time, l2, G[late])


def variance_reduced_steps(
    X: Any,
    y: Array,
    c: Array,
    slopes: Array,
    order: NDArray[np.int64],
    *,
    loss: str,
    rate: float,
    l2: float,
    delta: float,
    gradient: Array,
    scale: Array,
    w: Array,
) -> None:
    """One step for each row of ``order``; ``w`` changes in place.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, d)
    y, c, slopes : ndarray of shape (n,), float64
        Targets, row weights over chances, and slopes of the losses at the anchor.
    order : ndarray of int64
    loss : str
        "logistic", "squared", "squared_hinge" or "huber".
    rate, l2, delta : float
    gradient : ndarray of shape (d + 1,), float64
        Of the mean loss at the anchor, without the penalty.
    scale : ndarray of shape (d + 1,), float64
        Of the steps of each weight; 0 for an intercept that is not there.
    w : ndarray of shape (d + 1,), float64
        At first the anchor.
    """
    rows = layout(X)
    beside = tuple(map(read_only, (y, c, slopes, order)))
    numbers = float(rate), float(l2), float(delta)
    metric = read_only(gradient), read_only(scale)
    if isinstance(X, np.ndarray):
        _dense(LOSSES[loss], read_only(X), *beside, *numbers, *metric, w)
        return
    seen = np.zeros(X.shape[1], np.int64)
    stored = map(read_only, rows[1:])
    _sparse(LOSSES[loss], *stored, *beside, *numbers, *metric, w, seen)
