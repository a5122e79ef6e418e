"""Least squares of many models, each solved rather than descended to.

::

    models (penalty, row set)       row set 0: alphas .1 1 10   ->  one Gram matrix
                                    row set 1: alphas .1 1 10   ->  one Gram matrix

Models that share rows, target and intercept are one problem with a penalty for each output,
as `mlopt.Ridge` solves them: by the same solvers, chosen by the same costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.columns import Indices, Model
from mlopt.gd.estimator_base import resources_of
from mlopt.gd.least_squares_plan import choose_solver
from mlopt.gd.least_squares_solvers import SOLVERS, Task, shape_of
from mlopt.gd.linear_training import LinearTraining
from mlopt.rows import Block, Rows

_ACCURACY = 1e-10
"""Relative rounding error of coefficients: half the digits of float64 and two more."""
_STEPS = 10_000
"""Steps of conjugate gradients, where nothing else can be used, that count as failure."""


class DirectLeastSquares(LinearTraining):
    """Exact solutions in the first pass; for models with the squared loss.

    Parameters
    ----------
    rows, models, max_passes
        See `LinearTraining`.
    """

    def __init__(self, rows: Rows, models: Sequence[Model], *, max_passes: int) -> None:
        super().__init__(rows, models, max_passes)
        self._solved = np.zeros(len(models), bool)
        self._converged = np.zeros(len(models), bool)

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Which models are solved to the accuracy that was asked of their solver, (M,)."""
        return self._converged.copy()

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Which models are solved, (M,)."""
        return self._solved.copy()

    def advance(self, passes: int) -> None:
        """Solve what is not solved yet."""
        if self.done or passes < 1:
            return
        together: dict[tuple[int, int, bool], list[int]] = {}
        for number in np.flatnonzero(~self._solved).tolist():
            model = self.models[number]
            key = (model.rowset, model.target, model.fit_intercept)
            together.setdefault(key, []).append(number)
        for (rowset, target, intercept), numbers in together.items():
            self._solve(numbers, rowset, target, intercept)
        self._solved[:], self._stale[:] = True, True
        self.passes += 1

    def _solve(
        self, numbers: Sequence[int], rowset: int, target: int, intercept: bool
    ) -> None:
        penalties = np.array([self.models[number].l2 for number in numbers])
        rows = self.rows.compute_beside(_as_outputs, rowset, target, len(numbers))
        eps = float(np.finfo(np.float64).eps)
        task = Task(
            rows=rows,
            alphas=penalties * self._sums.weights[rowset],
            intercept=intercept,
            tol=eps**0.5,
            max_iter=_STEPS,
            accuracy=_ACCURACY,
            cutoff=max(rows.n, rows.d) * eps,
        )
        here = resources_of(rows.executor)
        solver = choose_solver("least squares", "auto", shape_of(task), here).chosen
        fit = SOLVERS[solver](task)
        self._converged[list(numbers)] = fit.converged
        for output, number in enumerate(numbers):
            columns = self._layout.columns(number)
            self._weights[:-1, columns] = fit.coef[:, [output]]
            self._weights[-1, columns] = fit.intercept[output] if intercept else 0.0

    def _keep(self, numbers: Indices, taken: Indices) -> None:
        del taken
        self._solved, self._converged = self._solved[numbers], self._converged[numbers]

    def _add(self, source: Indices, models: Sequence[Model], **options: Any) -> None:
        del source, options
        more = np.zeros(len(models), bool)
        self._solved = np.append(self._solved, more)
        self._converged = np.append(self._converged, more)

    def state(self) -> dict[str, Any]:
        """A checkpoint: plain arrays and numbers."""
        return super().state() | {
            "solved": self._solved.copy(),
            "converged": self._converged.copy(),
        }

    def restore(self, state: Any) -> None:
        """Go on from a checkpoint of a training of the same models on the same rows."""
        super().restore(state)
        self._solved = np.array(state["solved"])
        self._converged = np.array(state["converged"])


def _as_outputs(
    block: Block, rowset: int, target: int, outputs: int
) -> dict[str, NDArray[Any]]:
    """One target for each penalty, and the weights of the row set."""
    one = block.extra["targets"][:, [target]]
    return {
        "targets": np.repeat(one, outputs, axis=1),
        "weights": np.ascontiguousarray(block.extra["weights"][:, [rowset]]),
    }
