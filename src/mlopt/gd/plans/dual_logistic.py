"""Dual coordinate descent for logistic regression, which stops by its duality gap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.costs import Cost
from mlopt.gd.plans import dual_coordinate
from mlopt.gd.plans.gathered import Gathered, gathering
from mlopt.gd.plans.method import Method, Price, Solver, Start, at_least
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.sequential import EPOCH, DualGap, without_dual
from mlopt.gd.plans.stop import RelativeGap
from mlopt.gd.plans.task import Problem
from mlopt.gd.pricing import alone
from mlopt.kernels.dual_logistic import LogisticState, logistic_epoch
from mlopt.kernels.one_row import products, squared_norms
from mlopt.kernels.pointwise import losses_and_slopes
from mlopt.prices import price
from mlopt.resources import Resources

Array = NDArray[Any]

_EPOCHS = price("dual-logistic.epochs")
_LOGARITHMS = price("dual-logistic.logarithms")


class DualLogistic(DualGap):
    """A `mlopt.training.Training` of one logistic model without an intercept.

    Parameters
    ----------
    problem : Problem
        With the logistic loss, a penalty and no intercept.
    tolerance : float
        Converged when primal minus dual is at most this share of the primal.
    max_passes : int
    """

    def __init__(self, problem: Problem, tolerance: float, max_passes: int) -> None:
        super().__init__(problem, tolerance, max_passes)
        self._data = Gathered.of(problem.rows)
        self._costs = self._data.c / problem.task.l2
        self._norms = squared_norms(self._data.X)
        self._state = LogisticState.start(
            self._data.X, self._data.y, self._costs, problem.seed
        )

    def _visit(self) -> None:
        data = self._data
        logistic_epoch(data.X, self._norms, data.y, self._costs, self._state)

    def _primal_and_dual(self) -> tuple[float, float]:
        data, w = self._data, self._state.w
        losses, _ = losses_and_slopes("logistic", products(data.X, w), data.y)
        primal = 0.5 * float(w @ w) + float(losses @ self._costs)
        return primal, -self._state.objective(self._costs)

    def coefficients(self, number: int = 0) -> tuple[Array, Array]:
        """Weights (1, d) and intercept (1,), which is 0."""
        del number
        return self._state.w[None].copy(), np.zeros(1)

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        arrays = {name: array.copy() for name, array in vars(self._state).items()}
        return super().state() | {"dual": arrays}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of the same problem."""
        super().restore(state)
        kept = {name: np.array(array) for name, array in state["dual"].items()}
        self._state = LogisticState(**kept)


def epochs_cost(outline: Outline, resources: Resources, epochs: float) -> Cost:
    """Steps as in `mlopt.gd.plans.dual_coordinate`, and the logarithms of every row."""
    shape = outline.shape
    logarithms = alone(epochs * _LOGARITHMS * shape.n, resources)
    return dual_coordinate.cost(shape, resources, epochs) + logarithms + epochs * EPOCH


_gathered = gathering(epochs_cost)


def _price(outline: Outline, resources: Resources) -> Price | str:
    return without_dual(outline) or _gathered(outline, resources)


def _begin(problem: Problem, stop: RelativeGap, max_passes: int, start: Start) -> Solver:
    del start  # weights do not tell the dual variables
    return DualLogistic(problem, stop.tolerance, max_passes)


DUAL_LOGISTIC = Method(
    "dual-coordinate-descent-logistic", frozenset({"logistic"}), lambda shape: _EPOCHS,
    _price, _begin, least=at_least(6), bounds=True,
)  # fmt: skip
