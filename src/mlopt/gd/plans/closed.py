"""Least squares in closed form and by conjugate gradients, as a training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd import least_squares_solvers as solvers
from mlopt.gd.conjugate_gradients import ConjugateGradients
from mlopt.gd.plans.task import Problem
from mlopt.gd.plans.wide import sketch_rank
from mlopt.gd.sizes import HALF, ROUNDED

_COARSEST = 1e-3
"""Relative error of coefficients that is asked for at least, whatever the tolerance."""
_MARGIN = 30.0
"""By which an error is smaller than the root of the tolerance: for an R^2 up to 0.999."""

Array = NDArray[Any]


def accuracy_for(tolerance: float) -> float:
    """The relative error of coefficients at which the objective is within the tolerance.

    The objective grows with the square of the error, ``R^2 / (1 - R^2)`` times of its
    minimum. The margin is for an R^2 up to 0.999.
    """
    return min(max(float(np.sqrt(tolerance)) / _MARGIN, HALF), _COARSEST)


class LeastSquares:
    """A `mlopt.training.Training` by one of `mlopt.gd.least_squares_solvers`.

    What goes step by step takes one a pass; what is solved at once takes one pass in all.

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

    Attributes
    ----------
    passes : int
    converged : bool
        Whether it is solved by the solver's own rule.
    direct : bool
        Whether that was at once, to rounding.
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
            cutoff=ROUNDED,
            gap=tolerance,
            rank=sketch_rank(problem.outline) if solver == "sketched_cg" else None,
            certain=True,
        )
        self._solver = solver
        self._steps: solvers.Iteration | None = None
        self._weights = np.zeros((problem.rows.d + 1, 1))
        self._max_passes, self._ended = max_passes, False
        self.passes, self.converged, self.direct = 0, False, False

    @property
    def done(self) -> bool:
        """Whether it was solved, or all passes are used up."""
        return self._ended or self.passes >= self._max_passes

    def ask(self, tolerance: float) -> None:
        """Go on to another tolerance, where it goes step by step."""
        if self._steps is None:
            return
        training, accuracy = self._steps.training, accuracy_for(tolerance)
        if isinstance(training, ConjugateGradients):
            training.ask(tolerance)
        else:
            training.ask(accuracy / 10)
        self._judge(training)

    def advance(self, passes: int) -> None:
        """Up to ``passes`` steps; or all at once."""
        for _ in range(passes):
            if self.done:
                return
            self._advance()

    def _advance(self) -> None:
        if self._solver not in solvers.ITERATIONS:
            self._take(solvers.SOLVERS[self._solver](self._task))
            return
        if self._steps is None:
            # Sums of all columns, and what a preconditioner needs.
            self._steps = solvers.ITERATIONS[self._solver](self._task)
        elif self._steps.gives_up and self._steps.steps.max() >= self._steps.most:
            self._take(self._steps.instead(self._task))
            return
        else:
            self._steps.training.advance(1)
            found = self._steps.fit()
            self._weights = np.vstack([found.coef, found.intercept[None]])
        self.passes += 1
        self._judge(self._steps.training)

    def _judge(self, training: solvers.Steps) -> None:
        self._ended = training.done
        self.converged = bool(np.all(training.converged))

    def _take(self, found: solvers.Fit) -> None:
        """What was solved at once; the normal equations may have led to a QR."""
        self._weights = np.vstack([found.coef, found.intercept[None]])
        self.passes += 2 if found.solver == "svd" != self._solver else 1
        self._steps, self._ended = None, True
        self.converged = self.direct = found.converged

    @property
    def gap(self) -> float:
        """A bound where there is a penalty; 0 once it is solved at once."""
        if self.direct:
            return 0.0
        training = None if self._steps is None else self._steps.training
        if isinstance(training, ConjugateGradients):
            return float(training.gap.max())
        return np.inf

    def quality(self) -> float:
        """1 once it is solved."""
        return float(self._ended)

    def coefficients(self, number: int = 0) -> tuple[Array, Array]:
        """Weights (1, d) and intercept (1,)."""
        del number
        return self._weights[:-1].T.copy(), self._weights[-1].copy()

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return {
            "weights": self._weights.copy(),
            "steps": None if self._steps is None else self._steps.training.state(),
            **{name: getattr(self, name) for name in _STATE},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self._weights = np.array(state["weights"])
        for name in _STATE:
            setattr(self, name, state[name])
        if state["steps"] is not None:
            self._steps = solvers.ITERATIONS[self._solver](self._task)
            self._steps.training.restore(state["steps"])


_STATE = ("passes", "converged", "direct", "_ended")
