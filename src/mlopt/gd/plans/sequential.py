"""What all solvers have in common that go from row to row, or from column to column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.costs import Cost
from mlopt.gd.plans.method import Start
from mlopt.gd.plans.task import Problem
from mlopt.prices import price

Array = NDArray[Any]

EPOCH = Cost(python=price("sequential.epoch"))
"""Of an epoch over rows that take nothing."""
SETUP = price("sequential.setup")
DOUBT = price("sequential.doubt")


class Sequential(ABC):
    """A `mlopt.training.Training` of one model, an epoch at a time, until its gap is small.

    Parameters
    ----------
    problem : Problem
    tolerance : float
        Converged when the relative gap of the objective is at most this.
    max_passes : int
        Epochs.
    start : (coef, intercept), optional
        Arrays (1, d) and (1,).
    """

    _saved: tuple[str, ...] = ("_weights",)
    """Arrays that a checkpoint holds."""

    def __init__(
        self, problem: Problem, tolerance: float, max_passes: int, start: Start = None
    ) -> None:
        self._problem, self._tolerance = problem, tolerance
        self._max_passes, self._passes = max_passes, 0
        self._weights = np.zeros(problem.rows.d + 1)
        if start is not None:
            self._weights[:-1], self._weights[-1] = start[0][0], start[1][0]
        self._value = self._gap = np.inf
        self._stuck = False

    @property
    def passes(self) -> int:
        """Epochs so far."""
        return self._passes

    @property
    def converged(self) -> bool:
        """Whether the relative gap is within the tolerance."""
        return bool(self._gap <= self._tolerance)

    @property
    def done(self) -> bool:
        """Whether another epoch would change nothing."""
        return self.converged or self._stuck or self._passes >= self._max_passes

    @property
    def gap(self) -> float:
        """The relative gap as far as it is known; infinite where nobody looked yet."""
        return self._gap

    def ask(self, tolerance: float) -> None:
        """Go on to another tolerance."""
        self._tolerance = tolerance

    def quality(self) -> float:
        """Minus the objective."""
        return -self._value

    def advance(self, passes: int) -> None:
        """Up to ``passes`` epochs."""
        for _ in range(passes):
            if self.done:
                return
            self._epoch()
            self._passes += 1

    @abstractmethod
    def _epoch(self) -> None:
        """One epoch, and a look at the gap."""

    def _penalised(self, gradient: Array) -> Array:
        """The gradient (d + 1,) of the mean loss, changed to that of the objective."""
        gradient[:-1] += self._problem.task.l2 * self._weights[:-1]
        if not self._problem.task.fit_intercept:
            gradient[-1] = 0.0
        return gradient

    def coefficients(self, number: int = 0) -> tuple[Array, Array]:
        """Weights (1, d) and intercept (1,)."""
        del number
        return self._weights[None, :-1].copy(), self._weights[-1:].copy()

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        arrays = {name: getattr(self, name).copy() for name in self._saved}
        numbers = {"passes": self._passes, "value": self._value, "gap": self._gap}
        return {"arrays": arrays, "stuck": self._stuck} | numbers

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint of the same problem."""
        for name in self._saved:
            setattr(self, name, np.array(state["arrays"][name]))
        self._passes, self._stuck = int(state["passes"]), bool(state["stuck"])
        self._value, self._gap = float(state["value"]), float(state["gap"])
