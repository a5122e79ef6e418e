"""The minimum of hinges with a free intercept, between two bounds that are proven.

In units of the penalty, the primal and its dual, one variable a row, are

    min_w,b    1/2 ||w||^2 + sum_i cost_i max(0, 1 - y_i (x_i w + b))
    max_alpha  sum_i alpha_i - 1/2 ||sum_i alpha_i y_i x_i||^2

with ``0 <= alpha_i <= cost_i``; ``sum_i alpha_i y_i = 0`` is the intercept's part.
Weights are a bound above with the intercept at its best for them, a median of the points
where rows reach their margin. Any variables are one below, once those of the class whose
sum is larger have been scaled down to that of the other one.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.plans.task import Problem
from mlopt.gd.sizes import ROUNDINGS
from mlopt.kernels import one_row
from mlopt.rows import Block, Rows

Array = NDArray[Any]

_ROUNDING = ROUNDINGS * float(np.finfo(np.float64).eps)


class Bracket:
    """The best weights so far, and the highest floor.

    Parameters
    ----------
    problem : Problem
        With the hinge loss, a penalty and a free intercept.

    Attributes
    ----------
    sign, cost : ndarray of shape (n,)
        -1 or 1, and that of a unit of loss.
    best : ndarray of shape (d + 1,)
        Weights, the intercept's last.
    value, floor : float
        Their objective, and what none is below, over the penalty.
    """

    def __init__(self, problem: Problem) -> None:
        self.sign, shares = problem.targets_and_shares()
        self._rows, self.cost = problem.rows, shares / problem.task.l2
        self.best, self.value, self.floor = np.zeros(problem.rows.d + 1), np.inf, 0.0

    @property
    def gap(self) -> float:
        """Of the best weights, relative to their objective."""
        if not np.isfinite(self.value):
            return np.inf
        return max(self.value - self.floor, 0.0) / self.size + _ROUNDING

    @property
    def size(self) -> float:
        """The objective, or what of it at zero weights is rounding: one class has none."""
        return max(self.value, _ROUNDING * float(self.cost.sum()))

    def margins(self, w: Array) -> Array:
        """``X w`` for weights (d,): (n,)."""
        return margins(self._rows, w)

    def combination(self, v: Array) -> Array:
        """``X' v``: (d,)."""
        return combination(self._rows, v)

    def narrow(self, w: Array, z: Array, alpha: Array) -> None:
        """Look from weights (d,), their margins ``X w`` (n,) and variables (n,)."""
        b = self._intercept(z)
        lacking = np.maximum(1.0 - self.sign * (z + b), 0.0)
        value = 0.5 * float(w @ w) + float(self.cost @ lacking)
        if value < self.value:
            self.value, self.best = value, np.append(w, b)
        self.floor = max(self.floor, self._dual(alpha))

    def _intercept(self, z: Array) -> float:
        """Where the slope, which only grows with the intercept, is no longer negative."""
        corners = self.sign - z
        order = np.argsort(corners)
        slopes = np.cumsum(self.cost[order]) - float(self.cost[self.sign > 0].sum())
        last = len(order) - 1
        return float(corners[order[min(int(np.searchsorted(slopes, 0.0)), last)]])

    def _dual(self, alpha: Array) -> float:
        """At the best multiple of what is feasible of the variables."""
        alpha = balanced(np.clip(alpha, 0.0, self.cost), self.sign)
        used, total = alpha > 0.0, float(alpha.sum())
        if not total > 0.0:
            return 0.0
        v = self.combination(alpha * self.sign)
        most, square = float((self.cost[used] / alpha[used]).min()), float(v @ v)
        times = min(most, total / square) if square > 0.0 else most
        return times * total - 0.5 * times**2 * square

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return {"best": self.best.copy(), "value": self.value, "floor": self.floor}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint of the same problem."""
        self.best = np.array(state["best"])
        self.value, self.floor = float(state["value"]), float(state["floor"])


def balanced(alpha: Array, sign: Array) -> Array:
    """Variables (n,) of which those of the class with the larger sum are scaled down."""
    positive = sign > 0
    sums = float(alpha[positive].sum()), float(alpha[~positive].sum())
    if not min(sums) > 0.0:
        return np.zeros_like(alpha)
    return alpha * np.where(positive, *(min(sums) / side for side in sums))


def combination(rows: Rows, v: Array) -> Array:
    """``X' v`` for variables (n,), in float64 whatever the rows are: (d,)."""
    return np.asarray(rows.attach(slopes=v).map_reduce(_combination, operator.add))


def margins(rows: Rows, w: Array) -> Array:
    """``X w`` for weights (d,), in float64 whatever the rows are: (n,)."""
    return np.concatenate(rows.map(_products, w))


def _products(block: Block, w: Array) -> Array:
    return one_row.products(block.X, w)


def _combination(block: Block) -> Array:
    return one_row.combination(block.X, block.extra["slopes"])
