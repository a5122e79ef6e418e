"""Dual coordinate descent that stops by its duality gap, a sure bound of the error.

The primal, ``1/2 ||w||^2 + sum_i cost_i loss_i``, is a task's objective over ``l2``. It is
never below the dual, and both meet at the solution (Hsieh et al., ICML 2008).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.dual import DualCoordinateDescent, TwoClasses, one_block
from mlopt.gd.plans.task import Problem

Array = NDArray[Any]

_FINEST = 1e-12


class DualGap(ABC):
    """A `mlopt.training.Training` of one model by its dual.

    Parameters
    ----------
    problem : Problem
        With a penalty and no intercept.
    tolerance : float
        Converged when primal minus dual is at most this share of the primal.
    max_passes : int
    """

    def __init__(self, problem: Problem, tolerance: float, max_passes: int) -> None:
        self._problem, self._tolerance = problem, tolerance
        self._max_passes, self._gap = max_passes, np.inf

    @property
    @abstractmethod
    def passes(self) -> int:
        """Epochs so far."""

    @property
    def gap(self) -> float:
        """The duality gap, relative to the primal."""
        return self._gap

    @property
    def converged(self) -> bool:
        """Whether the duality gap is within the tolerance."""
        return bool(self._gap <= self._tolerance)

    @property
    def done(self) -> bool:
        """Whether another pass would change nothing."""
        return self.converged or self.passes >= self._max_passes

    def ask(self, tolerance: float) -> None:
        """Go on to another tolerance."""
        self._tolerance = tolerance

    def quality(self) -> float:
        """Minus the duality gap, relative to the primal."""
        return -self._gap

    def advance(self, passes: int) -> None:
        """Up to ``passes`` epochs, with a look at the gap after each."""
        for _ in range(passes):
            if self.done:
                return
            self._epoch()
            primal, dual = self._primal_and_dual()
            size = max(primal, np.finfo(float).tiny)
            self._gap = max(primal - dual, 0.0) / size

    @abstractmethod
    def _epoch(self) -> None:
        """Visit all dual variables."""

    @abstractmethod
    def _primal_and_dual(self) -> tuple[float, float]:
        """Both objectives, over ``l2``."""


class DualDescent(DualGap):
    """A support vector machine without an intercept: hinge or squared hinge loss.

    See `DualGap` for the parameters.
    """

    def __init__(self, problem: Problem, tolerance: float, max_passes: int) -> None:
        super().__init__(problem, tolerance, max_passes)
        self._squared = problem.task.loss == "squared_hinge"
        self._cost = 1.0 / (problem.task.l2 * problem.weight)
        rows, beside = one_block(problem.rows, problem.rows.executor), problem.beside()
        if rows is not problem.rows:
            rows = rows.attach(**beside)
        self._training = DualCoordinateDescent(
            rows,
            [TwoClasses(1.0, (self._cost, self._cost))],
            squared=self._squared,
            bias=0.0,
            tol=_FINEST,
            seed=0,
        )
        self._weights = beside["weights"][:, 0].astype(np.float64)

    @property
    def passes(self) -> int:
        """Epochs so far."""
        return self._training.passes

    @property
    def done(self) -> bool:
        """Whether another pass would change nothing: none of the rows is violated."""
        return super().done or self._training.done

    def _epoch(self) -> None:
        self._training.advance(1)

    def _primal_and_dual(self) -> tuple[float, float]:
        coef, _ = self.coefficients()
        primal = self._problem.objective(coef, np.zeros(1)) / self._problem.task.l2
        alpha = self._training.state()["arrays"][0]["alpha"]
        dual = float(alpha.sum()) - 0.5 * float(np.sum(coef * coef))
        if self._squared:
            used = self._weights > 0
            dual -= 0.25 * float(
                np.sum(alpha[used] ** 2 / self._weights[used]) / self._cost
            )
        return primal, dual

    def coefficients(self, number: int = 0) -> tuple[Array, Array]:
        """Weights (1, d) and intercept (1,), which is 0."""
        coef, intercept = self._training.coefficients(number)
        return coef[None], np.array([intercept])

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return {"training": self._training.state(), "gap": self._gap}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self._training.restore(state["training"])
        self._gap = float(state["gap"])


def without_dual(problem: Problem) -> str | None:
    """Why there is no dual to descend on; None if there is one."""
    if problem.task.fit_intercept:
        return "it would penalise the intercept: `fit_intercept` must be False"
    if problem.task.l2 == 0:
        return "there is no dual without a penalty: `l2` must be positive"
    return None
