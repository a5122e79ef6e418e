"""From an estimator's arguments to its fitted attributes, for `Ridge` and its kin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mlopt.cluster import executor
from mlopt.errors import InputError
from mlopt.gd.columns import Model
from mlopt.gd.estimator_base import Sample
from mlopt.gd.linear_model import LinearRegressor
from mlopt.gd.passes import Sums, weighted
from mlopt.gd.plans.fitting import Chosen
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.running import Outcome
from mlopt.gd.plans.sparse_cg import left_out
from mlopt.gd.plans.stop import CoefficientError, GradientNorm, Stop
from mlopt.gd.plans.task import Problem, Task
from mlopt.gd.row_products import block_rows
from mlopt.gd.working_set import WAY
from mlopt.rows import Rows

SOLVERS = (
    "cholesky", "svd", "sparse_cg", "sketched_cg", "mixed_cholesky", "dual_cholesky",
)  # fmt: skip
"""Of least squares whose coefficients may have any sign."""
_NEAR = 0.2
"""Of `tol`, where there are fewer rows than columns: directions that the rows do not have
are as near the optimum as scikit-learn's conjugate gradients leave them."""


@dataclass(frozen=True)
class Settings:
    """What the estimators ask of their fit; see `CoefficientError`."""

    alpha: Any
    accuracy: float
    cutoff: float | None = None


class Regressor(LinearRegressor):
    """Reads the data, chooses a solver, runs it and sets the attributes that it learns."""

    solver: str
    tol: float
    max_iter: int | None
    positive: bool
    plan_: Any

    def _settings(self) -> Settings:
        raise NotImplementedError

    def _block_rows(self) -> Any:
        return block_rows

    def _asks(self, problem: Problem) -> tuple[str, Stop, Mapping[str, str]]:
        asked, rows = self._settings(), problem.rows
        if self.positive:
            return "auto", GradientNorm(asked.accuracy), {}
        exact = exactly(rows.n, rows.d, asked.accuracy, self.tol, asked.cutoff)
        return self.solver, exact, left_out(rows.sparse)

    def _methods(self) -> tuple[str, ...]:
        return (WAY,) if self.positive else SOLVERS

    def _problem(self, sample: Sample) -> Problem:
        targets = sample.y.reshape(sample.rows.n, -1)
        alphas = _check_alphas(self._settings().alpha, targets.shape[1])
        rows = weighted(sample.rows, targets, sample.weights[:, None])
        sums = Sums.of(rows)
        penalties = alphas / float(sums.weights[0])
        problem = squares_problem(rows, penalties, self.fit_intercept, self.positive)
        return replace(problem, known=sums)

    def _learn(self, given: Sample, outcome: Outcome) -> tuple[str, ...]:
        steps = [found["n_iter_"] for found in outcome.learnt]
        self.n_iter_ = np.array(steps, np.int64)
        self.solver_ = outcome.learnt[0].get("solver_", outcome.methods[-1])
        return super()._learn(given, outcome)

    def _what_lacks(self, outcome: Outcome, limit: int) -> str:
        return (
            f"`{self.solver_}` stopped at {limit} steps above the accuracy that "
            f"`tol`={self.tol} asks for: increase `max_iter`, scale the features, or "
            "choose another `solver`."
        )


def accuracy_of(tol: float) -> float:
    """To which `Ridge` solves with a ``tol``, but for conjugate gradients."""
    return float(np.clip(tol, 1e-12, 1e-6))


def exactly(
    n: int, d: int, accuracy: float, tol: float, cutoff: float | None = None
) -> CoefficientError:
    """Coefficients of n rows and d columns, as near as scikit-learn's with a ``tol``."""
    near = _NEAR if d >= n else 1.0
    return CoefficientError(accuracy, near * tol, cutoff)


def squares_problem(
    rows: Rows,
    penalties: Sequence[float] | NDArray[Any],
    intercept: bool,
    positive: bool,
    l1: float = 0.0,
) -> Problem:
    """Least squares of the targets beside rows, each with penalties of the mean loss."""
    first = Model("squared", 0.0, fit_intercept=intercept, l1=l1, positive=positive)
    models = tuple(replace(first, l2=float(l2), target=k) for k, l2 in enumerate(penalties))
    return Problem(Task.of(models[0]), rows, models)


def outline_of_fit(estimator: Any, X: Any, y: Any) -> Outline:
    """What the prices of ``estimator.fit(X, y)`` depend on; fits nothing."""
    with closing(executor(n_jobs=None)) as where:
        chosen: Chosen = clone(estimator)._prepare(X, y, None, where)[1]
    first = chosen.ranked[0]
    return replace(first.problem.outline, stop=first.stop)


def _check_alphas(alpha: Any, outputs: int) -> NDArray[np.float64]:
    alphas = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
    if alphas.shape not in ((1,), (outputs,)):
        raise InputError(
            "Number of targets and number of penalties do not correspond: "
            f"{alphas.size} != {outputs}. `alpha` must be a number or have one entry for "
            f"each target, got shape {alphas.shape}."
        )
    if not (np.isfinite(alphas).all() and alphas.min() >= 0):
        raise InputError(f"`alpha` must be finite and at least 0, got {alpha!r}.")
    return np.broadcast_to(alphas, (outputs,))
