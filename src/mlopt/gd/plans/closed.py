"""Least squares in closed form, as a training of a single pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd import least_squares_solvers as solvers
from mlopt.gd.plans.task import Problem
from mlopt.gd.plans.wide import sketch_rank

_FINEST, _COARSEST, _MARGIN, _CUTOFF = 1e-8, 1e-3, 30.0, 1e-12

Array = NDArray[Any]


def accuracy_for(tolerance: float) -> float:
    """The relative error of coefficients at which the objective is within the tolerance.

    The objective grows with the square of the error, ``R^2 / (1 - R^2)`` times of its
    minimum. The margin is for an R^2 up to 0.999.
    """
    return min(max(float(np.sqrt(tolerance)) / _MARGIN, _FINEST), _COARSEST)


class LeastSquares:
    """A `mlopt.training.Training` by one of `mlopt.gd.least_squares_solvers`.

    Parameters
    ----------
    problem : Problem
        With the squared loss.
    solver : str
        A name in its ``SOLVERS``.
    tolerance : float
        Of the objective, relative to its minimum.
    gtol : float
        Conjugate gradients without a preconditioner stop at this relative gradient.
    max_passes : int
    """

    def __init__(
        self, problem: Problem, solver: str, tolerance: float, gtol: float, max_passes: int
    ) -> None:
        self._task = solvers.Task(
            rows=problem.rows,
            alphas=np.array([problem.task.l2 * problem.weight]),
            intercept=problem.task.fit_intercept,
            tol=gtol,
            max_iter=max_passes,
            accuracy=accuracy_for(tolerance),
            cutoff=_CUTOFF,
            gap=tolerance,
            rank=sketch_rank(problem) if solver == "sketched_cg" else None,
        )
        self._solve = solvers.SOLVERS[solver]
        self._weights = np.zeros((problem.rows.d + 1, 1))
        self.passes, self.converged = 0, False

    @property
    def done(self) -> bool:
        """Whether it was solved."""
        return self.passes > 0

    def advance(self, passes: int) -> None:
        """Solve, whatever ``passes``."""
        del passes
        if self.done:
            return
        found = self._solve(self._task)
        self._weights = np.vstack([found.coef, found.intercept[None]])
        self.passes = 1 if found.iterations is None else int(found.iterations.max()) + 1
        self.converged = found.converged

    @property
    def gap(self) -> float:
        """0 once it is solved."""
        return 0.0 if self.done and self.converged else np.inf

    def quality(self) -> float:
        """1 once it is solved."""
        return float(self.done)

    def coefficients(self, number: int = 0) -> tuple[Array, Array]:
        """Weights (1, d) and intercept (1,)."""
        del number
        return self._weights[:-1].T.copy(), self._weights[-1].copy()

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return {
            "weights": self._weights.copy(),
            "passes": self.passes,
            "converged": self.converged,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self._weights = np.array(state["weights"])
        self.passes, self.converged = int(state["passes"]), bool(state["converged"])
