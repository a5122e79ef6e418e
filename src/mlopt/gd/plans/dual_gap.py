"""Dual coordinate descent that stops by its duality gap, a sure bound of the error.

The primal, ``1/2 ||w||^2 + sum_i cost_i loss_i``, is a task's objective over ``l2``. It is
never below the dual, and both meet at the solution (Hsieh et al., ICML 2008).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.task import Problem

Array = NDArray[Any]


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


def without_dual(outline: Outline) -> str:
    """Why there is no dual to descend on; "" if there is one."""
    if outline.free_intercept:
        return "it would penalise the intercept: `fit_intercept` must be False"
    if outline.l2 == 0:
        return "there is no dual without a penalty: `l2` must be positive"
    return ""
