"""Least squares as its methods see them, and what these come to.

    minimise  sum_i weight_i (y_i - x_i.w - b)^2 + alpha ||w||^2     for each target

Shapes: ``X`` (n, d), targets (n, T), coefficients (d, T).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.conjugate_gradients import ConjugateGradients
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import CoefficientError, RelativeGap, Stop
from mlopt.gd.plans.task import Problem
from mlopt.gd.sizes import HALF
from mlopt.rows import Rows

Array = NDArray[np.float64]

_COARSEST = 1e-3
"""Relative error of coefficients that is asked for at least, whatever the tolerance."""
_MARGIN = 30.0
"""By which an error is smaller than the root of the tolerance: for an R^2 up to 0.999."""
_FLAT = 1e-3
"""Gradient, relative to a gap, at which least squares are solved for certain."""


@dataclass(frozen=True)
class Squares:
    """A least-squares problem.

    Parameters
    ----------
    rows : Rows
        With "targets" (n, T) and "weights" (n, 1) beside them.
    alphas : ndarray of shape (T,)
    intercept : bool
    tol : float
        Relative gradient at which conjugate gradients stop.
    accuracy : float
        Relative rounding error of the coefficients that is acceptable.
    cutoff : float, optional
        See `CoefficientError`.
    gap : float, default=0.0
        Where it is positive, conjugate gradients stop where the objective is within so much
        of its minimum, relative to it.
    rank : int, optional
        Of a sketch, where it is known what rows ask for.
    """

    rows: Rows
    alphas: Array
    intercept: bool
    tol: float
    accuracy: float
    cutoff: float | None
    gap: float = 0.0
    rank: int | None = None

    @staticmethod
    def of(problem: Problem, stop: RelativeGap | CoefficientError) -> Squares:
        """Of a problem with a model for each target, in their order."""
        alphas = np.array([model.l2 for model in problem.models]) * problem.weight
        intercept, rank = problem.model.fit_intercept, rank_seen(problem.outline)
        accuracy, gap = asked(stop)
        tol, cutoff = _FLAT * gap, None
        if isinstance(stop, CoefficientError):
            tol, cutoff = stop.gradient, stop.cutoff
        return Squares(problem.rows, alphas, intercept, tol, accuracy, cutoff, gap, rank)


def rank_seen(outline: Outline) -> int | None:
    """The rank of a sketch for these rows; None where they were not looked at."""
    seen = outline.spectrum
    return None if seen is None else seen.rank(outline.l2)


def accuracy_for(gap: float) -> float:
    """The relative error of coefficients at which the objective is within the gap.

    The objective grows with the square of the error, ``R^2 / (1 - R^2)`` times of its
    minimum. The margin is for an R^2 up to 0.999.
    """
    return min(max(float(np.sqrt(gap)) / _MARGIN, HALF), _COARSEST)


def asked(stop: Stop | None) -> tuple[float, float]:
    """The relative error of coefficients, and of the objective, that are asked for."""
    if isinstance(stop, RelativeGap):
        return accuracy_for(stop.tolerance), stop.tolerance
    return stop.accuracy if isinstance(stop, CoefficientError) else HALF, 0.0


@dataclass(frozen=True)
class Fit:
    """A solution and how it was found."""

    coef: Array
    mean: Array
    solver: str
    rank: int | None = None
    singular: Array | None = None
    iterations: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()

    def plane(self, target: int) -> tuple[Array, Array]:
        """Weights (1, d) and intercept (1,) of one target."""
        d, coef = len(self.coef), self.coef[:, [target]]
        return coef.T.copy(), self.mean[[d + target]] - self.mean[:d] @ coef


@dataclass(frozen=True)
class Iteration:
    """A solver that goes step by step, before its first one.

    Attributes
    ----------
    name : str
    training : ConjugateGradients
    patience : int, optional
        Steps after which it gives up.
    instead : callable, optional
        What then solves the problem.
    """

    name: str
    training: ConjugateGradients
    patience: int | None = None
    instead: Callable[[], Fit] | None = None

    @property
    def gives_up(self) -> bool:
        """Whether it has used up its patience."""
        steps = int(self.training.iterations.max())
        return self.patience is not None and steps >= self.patience

    def fit(self) -> Fit:
        """What it has come to."""
        one = self.training
        return Fit(one.coef, one.mean, self.name, iterations=one.iterations)


Way = Callable[[Squares], Fit | Iteration]
"""Solves at once, or prepares the steps of a solver."""
