"""The three ways of solving least squares, behind one signature.

    minimise  sum_i weight_i (y_i - x_i.w - b)^2 + alpha ||w||^2     for each target

Shapes: ``X`` (n, d), targets (n, T), coefficients (d, T).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd import normal_equations, tsqr
from mlopt.gd.conjugate_gradients import ConjugateGradients
from mlopt.rows import Rows
from mlopt.training import Limits, run

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """A least-squares problem.

    Parameters
    ----------
    rows : Rows
        With "targets" (n, T) and "weights" (n, 1) beside them.
    alphas : ndarray of shape (T,)
    intercept : bool
    tol : float
        Relative gradient at which conjugate gradients stop.
    max_iter : int
        Steps of conjugate gradients.
    accuracy : float
        Relative rounding error of the coefficients that is acceptable.
    cutoff : float
        Singular values below this fraction of the largest count as zero.
    """

    rows: Rows
    alphas: Array
    intercept: bool
    tol: float
    max_iter: int
    accuracy: float
    cutoff: float


@dataclass(frozen=True)
class Fit:
    """A solution and how it was found."""

    coef: Array
    mean: Array
    solver: str
    rank: int | None = None
    singular: Array | None = None
    iterations: NDArray[Any] | None = None
    converged: bool = True
    notes: tuple[str, ...] = ()

    @property
    def intercept(self) -> Array:
        """The intercepts (T,): the plane goes through the means."""
        d = len(self.coef)
        return np.asarray(self.mean[d:] - self.mean[:d] @ self.coef)


def by_cholesky(task: Task) -> Fit:
    """Normal equations, or `by_svd` where they lose too many digits."""
    found = normal_equations.moments(task.rows, len(task.alphas), task.intercept)
    solution = normal_equations.solve(found, task.alphas)
    if solution.error > task.accuracy:
        return _instead(task, f"they may be off by {solution.error:.0e} of a coefficient")
    if task.alphas.all():
        return Fit(solution.coef, found.mean, "cholesky")
    singular = normal_equations.singular_values(found, len(task.alphas))
    if singular[-1] <= 10 * task.cutoff * singular[0]:
        return _instead(task, "the features are nearly dependent")
    return Fit(solution.coef, found.mean, "cholesky", len(singular), singular)


def _instead(task: Task, why: str) -> Fit:
    note = f"normal equations were tried first: {why}, so rows were read again for a QR"
    return replace(by_svd(task), notes=(note,))


def by_svd(task: Task) -> Fit:
    """A tall-skinny QR, then the singular values of its factor."""
    found = tsqr.factor(task.rows, len(task.alphas), task.intercept)
    solution = tsqr.solve(found, task.alphas, task.cutoff)
    return Fit(solution.coef, found.mean, "svd", solution.rank, solution.singular)


def by_conjugate_gradients(task: Task) -> Fit:
    """Conjugate gradients up to the tolerance or the limit of steps."""
    training = ConjugateGradients(task.rows, task.alphas, task.intercept, task.tol)
    reason = run(training, Limits(passes=training.passes + task.max_iter))
    return Fit(
        training.coef,
        training.mean,
        "sparse_cg",
        iterations=training.iterations,
        converged=reason == "done",
    )


SOLVERS: dict[str, Callable[[Task], Fit]] = {
    "cholesky": by_cholesky,
    "svd": by_svd,
    "sparse_cg": by_conjugate_gradients,
}
