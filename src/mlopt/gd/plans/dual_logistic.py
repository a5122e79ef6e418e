"""Dual coordinate descent of logistic regression, where rows have little in common.

See `mlopt.kernels.dual_logistic`. Rows of many columns meet in few of them, so that an
epoch over single variables leaves little to do: three to fifteen of them bring what takes
Newton's method forty to a hundred passes.

A free intercept is the multiplier of ``sum_i alpha_i y_i = 0``, and stays while an epoch
lasts. After each one it goes to where that sum seems to vanish: by the secant through the
last two epochs, and at first as if rows had nothing in common, each of which makes up for a
part of the intercept by itself.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from mlopt.costs import Cost
from mlopt.gd.columns import Model
from mlopt.gd.gap import strong_convexity_bound
from mlopt.gd.plans.bracket import balanced, combination, margins
from mlopt.gd.plans.by_plane import one_by_one
from mlopt.gd.plans.dual_coordinate import constant, epoch_operations
from mlopt.gd.plans.gathered import EPOCH, gathered
from mlopt.gd.plans.method import Method, Price, Solver, Start, at_least
from mlopt.gd.plans.one_model import OneModel
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import GradientNorm, Minimum, RelativeGap, tolerances
from mlopt.gd.plans.task import Problem, Task
from mlopt.gd.pricing import Shape, alone, gradient_work, scan
from mlopt.gd.sizes import ROUNDED, ROUNDINGS
from mlopt.kernels.dual_logistic import FAR, dual_logistic_epoch, variables
from mlopt.kernels.one_row import seeded, squared_norms
from mlopt.kernels.pointwise import losses_and_slopes
from mlopt.prices import price
from mlopt.resources import Resources

Array = NDArray[Any]

_ROUNDING = ROUNDINGS * float(np.finfo(np.float64).eps)
_CHANGE, _CAUTION = price("dual-logistic.change"), price("dual-logistic.caution")
_EPOCHS, _DOUBT = price("dual-logistic.epochs"), price("dual-logistic.doubt")
_ROW, _LOOKS = price("dual-logistic.row"), price("dual-logistic.looks")
_SETUP = price("dual-logistic.setup")


class DualLogistic(OneModel):
    """A `mlopt.training.Training` of one logistic model, an epoch a pass.

    Parameters
    ----------
    problem : Problem
        Of one column of weights, with a penalty.
    stop : RelativeGap or GradientNorm
        A gap is between the objective and the dual at variables that are feasible: those of
        the class with the larger sum scaled down.
    max_passes : int
    """

    _kept = (
        "passes", "gap", "_alpha", "_best", "_w", "_b", "_last", "_turns", "_order",
        "_random", "_weights", "_value", "_floor", "_largest", "_stuck",
    )  # fmt: skip

    def __init__(self, problem: Problem, stop: Minimum, max_passes: int) -> None:
        self._problem, self._max_passes = problem, max_passes
        self._gtol, self._tolerance = tolerances(stop)
        rows, model = self._problem.rows, problem.model
        self._y, shares = self._problem.targets_and_shares()
        self._sign, self._costs = np.where(self._y > 0, 1.0, -1.0), shares / model.l2
        self._there = self._costs > 0.0
        self._X, self._bias = gathered(rows), constant(model)
        self._norms = squared_norms(self._X)
        self._free = model.fit_intercept and not self._bias
        self._b = self._odds() if self._free else 0.0
        alpha = variables(self._sign, self._costs, self._norms, self._b)
        self._alpha = balanced(alpha, self._sign) if self._free else alpha
        signed = self._alpha * self._sign
        self._w = np.append(combination(rows, signed), self._bias * signed.sum())
        self._order, self._random = np.arange(rows.n), seeded(problem.seed)
        self._begin()

    def _begin(self) -> None:
        """Before the first epoch, where variables and weights are."""
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.log((self._costs - self._alpha) / self._alpha)
        # Rows without weight are not visited; beyond these, shares are 0 and 1.
        self._best = np.clip(np.nan_to_num(best), -FAR, FAR)
        # Of the intercept: where it was, the sum there, and how that falls.
        self._last, self._turns = np.full(3, np.nan), 0
        self._weights, self._value = np.zeros(self._problem.rows.d + 1), np.inf
        self.passes, self._floor, self._stuck = 0, 0.0, False
        self.gap, self._largest = np.inf, np.inf

    def weaker(self, model: Model) -> DualLogistic:
        """That of a model with a weaker penalty and all else alike, from where this is."""
        other, problem = copy(self), self._problem
        other._problem = replace(problem, task=Task.of(model), models=(model,))
        other._costs = self._costs * (problem.model.l2 / model.l2)
        for name in ("_alpha", "_w", "_order", "_random"):
            setattr(other, name, np.copy(getattr(self, name)))
        other._begin()
        return other

    def _odds(self) -> float:
        """The intercept of zero weights."""
        sums = [float(self._costs[self._sign == one].sum()) for one in (1.0, -1.0)]
        return float(np.log(sums[0] / sums[1])) if min(sums) > 0.0 else 0.0

    @property
    def converged(self) -> bool:
        """Whether it is at the tolerance; of gradients, or at all that rounding allows."""
        if self._tolerance:
            return bool(self.gap <= self._tolerance)
        return bool(self._largest <= self._gtol) or self._stuck

    def quality(self) -> float:
        """Minus the objective."""
        return -self._value * self._problem.model.l2

    def _pass(self) -> None:
        moved = dual_logistic_epoch(
            self._X, self._norms, self._sign, self._costs, bias=self._bias,
            intercept=self._b, alpha=self._alpha, margins=self._best, w=self._w,
            order=self._order, random=self._random,
        )  # fmt: skip
        off = float(self._alpha @ self._sign) if self._free else 0.0
        even = abs(off) <= ROUNDED * float(self._alpha.sum())
        self._stuck = even and moved <= ROUNDED
        self._look(off)

    def _look(self, off: float) -> None:
        w, b = self._w[:-1], self._b + self._bias * float(self._w[-1])
        z = margins(self._problem.rows, w) + b
        losses, slopes = losses_and_slopes("logistic", z, self._y)
        value = 0.5 * float(self._w @ self._w) + float(self._costs @ losses)
        if value < self._value or not self._tolerance:
            self._weights, self._value = np.append(w, b), value
        if self._tolerance:
            self._floor = max(self._floor, self._dual())
            left = max(self._value - self._floor, 0.0)
        else:
            left = self._gradient(slopes * self._costs)
        self.gap = left / max(self._value, np.finfo(float).tiny) + _ROUNDING
        if self._free and not self.converged:
            self._move(off)

    def _gradient(self, slopes: Array) -> float:
        """Its largest component; gives what bounds the gap, where it does."""
        l2, down = self._problem.model.l2, float(slopes.sum())
        found = self._w[:-1] + combination(self._problem.rows, slopes)
        last = down if self._free else self._bias * down + float(self._w[-1])
        by_intercept = abs(last) / (self._bias or 1.0)
        self._largest = l2 * max(float(np.abs(found).max()), by_intercept)
        if self._free:
            return np.inf  # nothing bends the objective along an intercept for certain
        return float(strong_convexity_bound(float(found @ found) + last**2, 1.0))

    def _dual(self) -> float:
        alpha, w = self._alpha, self._w
        if self._free:
            alpha = balanced(alpha, self._sign)
            w = combination(self._problem.rows, alpha * self._sign)
        alpha, costs = alpha[self._there], self._costs[self._there]
        entropy = xlogy(alpha, alpha / costs) + xlogy(costs - alpha, 1.0 - alpha / costs)
        return -0.5 * float(w @ w) - float(entropy.sum())

    def _move(self, off: float) -> None:
        """The intercept to where variables seem to balance, which are ``off`` by now.

        The more often that was too far, the shorter are steps: what other rows still make
        of the last one looks as if the intercept had to follow (Kesten, Ann. Math. Stat.
        29, 1958).
        """
        alpha, costs = self._alpha[self._there], self._costs[self._there]
        curved = alpha * (1.0 - alpha / costs)
        steepest = float((curved / (1.0 + self._norms[self._there] * curved)).sum())
        was, then, before = self._last
        fall = before
        if np.isnan(was):
            fall = steepest
        elif self._b != was:
            found = (then - off) / (self._b - was)
            near = min(max(found, before / _CHANGE), before * _CHANGE)
            fall = near if found > 0.0 else before
            self._turns += off * then < 0.0
        fall = min(fall, steepest)
        self._last = np.array([self._b, off, fall])
        if fall > 0.0:
            self._b += off / (fall * (1.0 + _CAUTION * self._turns))


def work_of(shape: Shape, epochs: float) -> tuple[float, Cost]:
    """Of a model: operations of single steps on one thread, and looks after epochs."""
    each = epoch_operations(shape) + _ROW * shape.n
    look = _LOOKS * gradient_work(replace(shape, columns=1))
    return (epochs + _SETUP) * each, (epochs + _SETUP) * (look + EPOCH)


def _cost(outline: Outline, resources: Resources, epochs: float) -> Cost:
    shape, begun = outline.shape, epochs + _SETUP
    read = scan(shape, resources, 8.0 * (shape.d + shape.n))
    steps, looks = work_of(shape, epochs)
    each = alone(steps, resources) + looks + begun * Cost(python=_LOOKS * read.python)
    return shape.columns * each


def _price(outline: Outline, resources: Resources) -> Price | str:
    if outline.l2 == 0:
        return "there is no dual without a penalty: `l2` must be positive"
    return lambda epochs: _cost(outline, resources, epochs)


def _begin(problem: Problem, stop: Minimum, max_passes: int, start: Start) -> Solver:
    def one(plane: Problem, start: Start) -> DualLogistic:
        del start  # weights alone do not tell the dual variables
        return DualLogistic(plane, stop, max_passes)

    return one_by_one(problem, one, start)


DUAL_LOGISTIC = Method(
    "dual-logistic", frozenset({"logistic"}), lambda shape: _EPOCHS, _price, _begin,
    stops=(RelativeGap, GradientNorm), least=at_least(2), doubt=_DOUBT, bounds=True,
    in_one_piece=True,
)  # fmt: skip
