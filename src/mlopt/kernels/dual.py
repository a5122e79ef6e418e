"""Dual coordinate descent for linear support vector machines: arrays in, arrays out.

Hsieh, Chang, Lin, Keerthi, Sundararajan, "A dual coordinate descent method for
large-scale linear SVM", ICML 2008, Algorithm 3. The primal is

    min_w  1/2 ||w||^2 + sum_i cost_i * loss(1 - y_i w.x_i)

where the last entry of ``w`` belongs to a constant feature of value ``bias`` (0: no
intercept). Its dual has one variable a row,

    min_alpha  1/2 ||sum_i alpha_i y_i x_i||^2 + 1/2 sum_i D_i alpha_i^2 - sum_i alpha_i

with ``0 <= alpha_i <= U_i``: hinge has ``U_i = cost_i, D_i = 0``; squared hinge has
``U_i = inf, D_i = 1 / (2 cost_i)``. The minimum over one variable is in closed form.

Shapes: ``n`` rows, ``d`` columns; rows as in `mlopt.kernels.one_row`. ``w`` is ``(d + 1,)``
float64 whatever the dtype of ``X``; ``codes``, ``weights``, ``norms`` (squared, without the
constant feature) and ``alpha`` are ``(n,)``. A row is positive if its code equals
``positive``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel, read_only
from mlopt.kernels.one_row import (
    AHEAD,
    Rows,
    add,
    dot,
    fetch,
    layout,
    seeded,
    shuffle,
    squared_norms,
)

__all__ = ["DualState", "dual_epochs", "squared_norms"]

Array = NDArray[Any]

_SMALL_STEP = 1e-12
_ACTIVE, _LOW, _HIGH, _LEAST, _GREATEST = range(5)
ANEW = (-math.inf, math.inf, -math.inf, math.inf)
"""Of `DualState.control`, after how many rows are active, where no epoch counts yet."""


@inlined
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
    if cost <= 0.0:  # its loss is free
        return False, 0.0, alpha
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


@inlined
def _judge(control: Array, n: int, tol: float) -> bool:
    """After an epoch: solved, look at everything again, or shrink further.

    0 counts as a violation: rows that are violated alike are not at their optimum.
    """
    least, greatest = control[_LEAST], control[_GREATEST]
    if greatest - least > tol:
        control[_LOW] = least if least < 0.0 else -math.inf
        control[_HIGH] = greatest if greatest > 0.0 else math.inf
        return False
    if control[_ACTIVE] == n:
        return True
    control[_ACTIVE], control[_LOW], control[_HIGH] = n, -math.inf, math.inf
    return False


@kernel
def _epochs(
    rows: Rows,
    norms: Array,
    codes: Array,
    weights: Array,
    positive: float,
    costs: tuple[float, float],
    squared: bool,
    bias: float,
    tol: float,
    epochs: int,
    alpha: Array,
    w: Array,
    order: Array,
    control: Array,
    random: Array,
) -> tuple[int, bool]:
    n, d = alpha.shape[0], w.shape[0] - 1
    for epoch in range(epochs):
        count, kept = int(control[_ACTIVE]), 0
        low, high = control[_LOW], control[_HIGH]
        least, greatest = 0.0, 0.0
        shuffle(order, count, random)
        for position in range(count):
            i, later = order[position], order[min(position + AHEAD, count - 1)]
            fetch(rows, later)
            sign, cost = (1.0, costs[1]) if codes[i] == positive else (-1.0, costs[0])
            margin = dot(rows, i, w) + bias * w[d]
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
                add(rows, i, step, w)
                w[d] += step * bias
        control[_ACTIVE], control[_LEAST], control[_GREATEST] = kept, least, greatest
        if _judge(control, n, tol):
            return epoch + 1, True
    return epochs, False


@dataclass(frozen=True)
class DualState:
    """Where a problem stands; `dual_epochs` changes the arrays in place.

    Attributes
    ----------
    alpha : ndarray of shape (n,)
    w : ndarray of shape (d + 1,)
    order : ndarray of shape (n,), int64
        The active rows, then those that were shrunk.
    control : ndarray of shape (5,)
        How many rows are active; the least and greatest violation of the epoch before the
        last one, beyond which variables are shrunk; and those of the last one.
    random : ndarray of shape (1,), int64
        State of the generator, 1 ... 2^31 - 2.
    """

    alpha: NDArray[np.float64]
    w: NDArray[np.float64]
    order: NDArray[np.int64]
    control: NDArray[np.float64]
    random: NDArray[np.int64]

    @staticmethod
    def start(n: int, d: int, seed: int) -> DualState:
        """All variables at zero."""
        control = np.array([n, *ANEW])
        start = np.zeros(n), np.zeros(d + 1), np.arange(n)
        return DualState(*start, control, seeded(seed))

    def copy(self) -> DualState:
        """With arrays of its own."""
        return DualState(*(array.copy() for array in vars(self).values()))

    @property
    def violation(self) -> float:
        """Greatest minus least violation of the last epoch; infinite before the first."""
        return float(self.control[_GREATEST] - self.control[_LEAST])


def dual_epochs(
    X: Any,
    norms: Array,
    codes: Array,
    weights: Array,
    state: DualState,
    *,
    positive: float,
    costs: tuple[float, float],
    squared: bool,
    bias: float,
    tol: float,
    epochs: int,
) -> tuple[int, bool]:
    """Minimise over each active variable in turn, in random order, with shrinking.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, d)
    norms, codes, weights : ndarray of shape (n,)
    state : DualState
        Changed in place.
    positive : float
    costs : (float, float)
        Of a unit of loss in a negative and in a positive row of weight 1.
    squared : bool
    bias : float
    tol : float
        Solved when the greatest violation, or 0, minus the least, or 0, is at most this.
    epochs : int
        At most so many.

    Returns
    -------
    epochs, solved : int, bool
    """
    done, solved = _epochs(
        layout(X),
        *map(read_only, (norms, codes, weights)),
        float(positive),
        (float(costs[0]), float(costs[1])),
        squared,
        float(bias),
        float(tol),
        epochs,
        *vars(state).values(),
    )
    return int(done), bool(solved)
