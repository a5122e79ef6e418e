"""Dual coordinate descent for linear support vector machines: arrays in, arrays out.

Hsieh, Chang, Lin, Keerthi, Sundararajan, "A dual coordinate descent method for
large-scale linear SVM", ICML 2008, Algorithm 3. The primal is

    min_w  1/2 ||w||^2 + sum_i cost_i * loss(1 - y_i w.x_i)

where the last entry of ``w`` belongs to a constant feature of value ``bias`` (0: no
intercept). Its dual has one variable a row,

    min_alpha  1/2 ||sum_i alpha_i y_i x_i||^2 + 1/2 sum_i D_i alpha_i^2 - sum_i alpha_i

with ``0 <= alpha_i <= U_i``: hinge has ``U_i = cost_i, D_i = 0``; squared hinge has
``U_i = inf, D_i = 1 / (2 cost_i)``. The minimum over one variable is in closed form.

Shapes: ``n`` rows, ``d`` columns. ``X`` is ``(n, d)`` C-contiguous, or CSR as ``data,
indices, indptr``; ``w`` is ``(d + 1,)`` float64 whatever the dtype of ``X``; ``codes``,
``weights``, ``norms`` (squared, without the constant feature) and ``alpha`` are ``(n,)``.
A row is positive if its code equals ``positive``.

Everything jitted is in this one file on purpose: Numba's disk cache does not notice an
edit to a callee in another file.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]

# Sums may be reordered, so that dot products vectorise; nan and inf keep their meaning.
_REORDER = {"reassoc", "contract", "nsz"}
_SMALL_STEP = 1e-12


@njit(cache=True, nogil=True, fastmath=_REORDER)
def _dot(x: Array, w: Array) -> float:
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * w[j]
    return total


@njit(cache=True, nogil=True)
def _add(x: Array, step: float, w: Array) -> None:
    for j in range(x.shape[0]):
        w[j] += step * x[j]


@njit(cache=True, nogil=True)
def _sparse_dot(data: Array, indices: Array, w: Array) -> float:
    total = 0.0
    for k in range(data.shape[0]):
        total += data[k] * w[indices[k]]
    return total


@njit(cache=True, nogil=True)
def _sparse_add(data: Array, indices: Array, step: float, w: Array) -> None:
    for k in range(data.shape[0]):
        w[indices[k]] += step * data[k]


@njit(cache=True, nogil=True)
def _visit(
    margin: float,
    sign: float,
    cost: float,
    squared: bool,
    norm: float,
    alpha: float,
    low: float,
    high: float,
) -> tuple[bool, float, float]:
    """One variable with all others fixed.

    Returns whether it is stuck at its bound, its violation (the gradient projected on the
    box: 0 where the variable is optimal) and its best value.
    """
    upper = math.inf if squared else cost
    extra = 0.5 / cost if squared else 0.0
    gradient = sign * margin - 1.0 + extra * alpha
    curvature = norm + extra
    if alpha <= 0.0:
        stuck, violation = gradient > high, min(gradient, 0.0)
    elif alpha >= upper:
        stuck, violation = gradient < low, max(gradient, 0.0)
    else:
        stuck, violation = False, gradient
    if abs(violation) <= _SMALL_STEP:
        return stuck, violation, alpha
    if curvature <= 0.0:  # an empty row: its loss can only be paid in full
        return stuck, violation, upper
    return stuck, violation, min(max(alpha - gradient / curvature, 0.0), upper)


@njit(cache=True, nogil=True)
def dual_epoch_dense(
    X: Array,
    norms: Array,
    codes: Array,
    weights: Array,
    positive: float,
    costs: tuple[float, float],
    squared: bool,
    bias: float,
    order: Array,
    alpha: Array,
    w: Array,
    low: float,
    high: float,
) -> tuple[int, float, float]:
    """Minimise over each variable of ``order`` in turn, in place of ``alpha`` and ``w``.

    Parameters
    ----------
    costs : (float, float)
        Cost of a unit of loss in a negative and in a positive row of weight 1.
    order : ndarray of shape (m,), int64
        Rows to visit, all of positive cost. Rows that are not stuck at a bound move to the
        front.
    low, high : float
        Least and greatest violation of the last epoch: a variable at its bound whose
        gradient lies beyond is shrunk. ``-inf, inf`` shrinks none.

    Returns
    -------
    kept, low, high : int, float, float
        How many rows of ``order`` stay, and the least and greatest violation seen.
    """
    d, kept, least, greatest = X.shape[1], 0, math.inf, -math.inf
    for position in range(order.shape[0]):
        i = order[position]
        sign, cost = (1.0, costs[1]) if codes[i] == positive else (-1.0, costs[0])
        margin = _dot(X[i], w) + bias * w[d]
        norm, cost = norms[i] + bias * bias, cost * weights[i]
        stuck, violation, best = _visit(
            margin, sign, cost, squared, norm, alpha[i], low, high
        )
        if stuck:
            continue
        order[kept], order[position] = i, order[kept]
        kept += 1
        least, greatest = min(least, violation), max(greatest, violation)
        if best != alpha[i]:
            step = (best - alpha[i]) * sign
            alpha[i] = best
            _add(X[i], step, w)
            w[d] += step * bias
    return kept, least, greatest


@njit(cache=True, nogil=True)
def dual_epoch_csr(
    data: Array,
    indices: Array,
    indptr: Array,
    norms: Array,
    codes: Array,
    weights: Array,
    positive: float,
    costs: tuple[float, float],
    squared: bool,
    bias: float,
    order: Array,
    alpha: Array,
    w: Array,
    low: float,
    high: float,
) -> tuple[int, float, float]:
    """As `dual_epoch_dense`, for a CSR block."""
    d, kept, least, greatest = w.shape[0] - 1, 0, math.inf, -math.inf
    for position in range(order.shape[0]):
        i = order[position]
        values = data[indptr[i] : indptr[i + 1]]
        columns = indices[indptr[i] : indptr[i + 1]]
        sign, cost = (1.0, costs[1]) if codes[i] == positive else (-1.0, costs[0])
        margin = _sparse_dot(values, columns, w) + bias * w[d]
        norm, cost = norms[i] + bias * bias, cost * weights[i]
        stuck, violation, best = _visit(
            margin, sign, cost, squared, norm, alpha[i], low, high
        )
        if stuck:
            continue
        order[kept], order[position] = i, order[kept]
        kept += 1
        least, greatest = min(least, violation), max(greatest, violation)
        if best != alpha[i]:
            step = (best - alpha[i]) * sign
            alpha[i] = best
            _sparse_add(values, columns, step, w)
            w[d] += step * bias
    return kept, least, greatest


def dual_epoch(X: Any, *rest: Any) -> tuple[int, float, float]:
    """`dual_epoch_dense` or `dual_epoch_csr`, by what ``X`` is."""
    if isinstance(X, np.ndarray):
        return dual_epoch_dense(X, *rest)  # type: ignore[no-any-return]
    return dual_epoch_csr(X.data, X.indices, X.indptr, *rest)  # type: ignore[no-any-return]


def squared_norms(X: Any) -> NDArray[np.float64]:
    """Squared length of every row of ``X``, dense or CSR, in float64."""
    if isinstance(X, np.ndarray):
        norms = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    else:
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        norms = np.bincount(rows, X.data.astype(np.float64) ** 2, minlength=X.shape[0])
    return np.asarray(norms, np.float64)
