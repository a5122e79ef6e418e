"""The ways of solving least squares, behind one signature.

    minimise  sum_i weight_i (y_i - x_i.w - b)^2 + alpha ||w||^2     for each target

Shapes: ``X`` (n, d), targets (n, T), coefficients (d, T).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError
from mlopt.gd import (
    dual_squares,
    gram_inverse,
    normal_equations,
    nystrom,
    preconditioned_plan,
    tsqr,
)
from mlopt.gd.block_solve import BlockSolve
from mlopt.gd.column_sums import ColumnSums
from mlopt.gd.conjugate_gradients import ConjugateGradients, Inverse
from mlopt.gd.least_squares_shape import Shape
from mlopt.gd.spectrum import Spectrum
from mlopt.rows import Rows
from mlopt.training import Limits, run

Array = NDArray[np.float64]

_PATIENCE, _ROUNDED_PATIENCE = 60, 20
"""Steps after which a preconditioner has proved to be a bad one."""
_FACTORED = 8192
"""So many columns are factored after all when a preconditioner has failed."""
_CLOSE = 0.25
"""Eigenvalues of all rows' system by a sample's, one with 16 rows a column, are above 0.64
where rows are much alike (Marchenko, Pastur, 1967); the rest is for those that are not."""
_FINEST = 1e-12
"""Rounding of the rows' products keeps errors from being estimated below this."""


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
    gap : float, default=0.0
        Conjugate gradients stop, too, where the objective is estimated to be within so much
        of its minimum, relative to it.
    rank : int, optional
        Of a sketch, where it is known what rows ask for.
    certain : bool, default=False
        Whether ``gap`` must be a bound, not an estimate, for targets with a penalty.
    """

    rows: Rows
    alphas: Array
    intercept: bool
    tol: float
    max_iter: int
    accuracy: float
    cutoff: float
    gap: float = 0.0
    rank: int | None = None
    certain: bool = False


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


Steps = ConjugateGradients | BlockSolve


@dataclass(frozen=True)
class Iteration:
    """A solver that goes step by step, before its first one.

    Attributes
    ----------
    name : str
    training : ConjugateGradients or BlockSolve
    most : int
        Steps after which it ends.
    gives_up : bool
        Whether the normal equations are solved then.
    """

    name: str
    training: Steps
    most: int
    gives_up: bool = False

    @property
    def steps(self) -> NDArray[np.int64]:
        """Steps of each target so far, (T,)."""
        if isinstance(self.training, ConjugateGradients):
            return self.training.iterations
        return np.full(self.training.coef.shape[1], self.training.passes)

    def fit(self) -> Fit:
        """What it has come to."""
        one = self.training
        return Fit(one.coef, one.mean, self.name, iterations=self.steps, converged=one.done)

    def instead(self, task: Task) -> Fit:
        """What is solved where it has not converged in all its steps."""
        found = by_cholesky(task)
        why = f"`{self.name}` had not converged in {self.most} steps"
        note = f"{why}, so the normal equations were solved instead"
        return replace(found, notes=(note, *found.notes))


def _solved(start: Callable[[Task], Iteration]) -> Callable[[Task], Fit]:
    def solve(task: Task) -> Fit:
        one = start(task)
        training = one.training
        reason = run(training, Limits(passes=training.passes + one.most))
        return one.instead(task) if reason != "done" and one.gives_up else one.fit()

    return solve


def conjugate_gradients(task: Task) -> Iteration:
    """Conjugate gradients up to the tolerance or the limit of steps."""
    training = ConjugateGradients(
        task.rows, task.alphas, task.intercept, task.tol, gap=task.gap, certain=task.certain
    )
    return Iteration("sparse_cg", training, task.max_iter)


def sketched_cg(task: Task) -> Iteration:
    """Conjugate gradients preconditioned by a sample's Gram matrix, or by a sketch."""
    _check("sketched_cg", task)
    n, d = task.rows.n, task.rows.d
    sums = ColumnSums.of(task.rows, task.intercept)
    inverse: Inverse
    if preconditioned_plan.samples(n, d):
        size = preconditioned_plan.sample_rows(n, d, task.accuracy, task.gap)
        inverse = gram_inverse.of_sample(task.rows, size, sums, task.alphas)
        accuracy = task.accuracy / 10
        return _refine(
            task, "sketched_cg", sums, inverse, _PATIENCE, accuracy, least=_CLOSE
        )
    inverse = nystrom.sketch(task.rows, _rank(task, sums.weight), sums, task.alphas)
    # Outside the sketch it is the inverse up to a factor only.
    return _refine(task, "sketched_cg", sums, inverse, 2 * _PATIENCE, task.accuracy / 100)


def _rank(task: Task, weight: float) -> int:
    """Of a sketch: as the spectrum asks for, where some rows tell it."""
    if task.rank is None and (seen := Spectrum.of(task.rows)):
        return seen.rank(float(task.alphas.min()) / weight)
    return task.rank or preconditioned_plan.sketch_rank(task.rows.n, task.rows.d)


def mixed_cholesky(task: Task) -> Iteration:
    """A Gram matrix in float32 as preconditioner, refined in float64."""
    _check("mixed_cholesky", task)
    sums = ColumnSums.of(task.rows, task.intercept)
    inverse = gram_inverse.of_float32(task.rows, sums, task.alphas)
    # Each coefficient is to be that good, not only all of them together.
    accuracy = task.accuracy / 100
    return _refine(
        task, "mixed_cholesky", sums, inverse, _ROUNDED_PATIENCE, accuracy, least=_CLOSE
    )


def _refine(
    task: Task,
    name: str,
    sums: ColumnSums,
    inverse: Inverse,
    patience: int,
    tol: float,
    least: float | None = None,
) -> Iteration:
    """Steps until the error is ``tol``; `by_cholesky` where they are too many.

    With a gap to reach, and ``least`` to judge it by, it alone counts.
    """
    tol = _FINEST if task.gap and least is not None else max(tol, _FINEST)
    training = ConjugateGradients(
        task.rows, task.alphas, task.intercept, tol, sums, inverse, task.gap, least,
        task.certain,
    )  # fmt: skip
    gives_up = patience < task.max_iter and task.rows.d <= _FACTORED
    return Iteration(name, training, patience if gives_up else task.max_iter, gives_up)


def blocks(task: Task) -> Iteration:
    """Gauss-Seidel over blocks of columns, up to the accuracy or the limit of sweeps."""
    _check("block", task)
    tol, columns = max(task.accuracy / 10, _FINEST), preconditioned_plan.BLOCK_COLUMNS
    training = BlockSolve(task.rows, task.alphas, task.intercept, tol, columns)
    return Iteration("block", training, task.max_iter)


def by_rows(task: Task) -> Fit:
    """The system of the rows, or `by_svd` where it loses too many digits."""
    _check("dual_cholesky", task)
    found = dual_squares.solve_dual(task.rows, task.alphas, task.intercept)
    if found.error > task.accuracy:
        return _instead(task, f"they may be off by {found.error:.0e}")
    return Fit(found.coef, found.mean, "dual_cholesky")


def _check(solver: str, task: Task) -> None:
    """Refuse what the costs refuse, whoever asks."""
    why = preconditioned_plan.why_not(solver, shape_of(task))
    if why:
        raise InputError(f"`{solver}` {why}. Let 'auto' choose another solver.")


def shape_of(task: Task) -> Shape:
    """What the costs need to know of a task."""
    rows = task.rows
    return Shape(
        n=rows.n,
        d=rows.d,
        outputs=len(task.alphas),
        nonzero=rows.nonzero,
        itemsize=rows.dtype.itemsize,
        sparse=rows.sparse,
        multiplies_sparse=normal_equations.multiplies_sparse(rows),
        blocks=len(rows.lengths),
        tol=task.tol,
        ranked=not task.alphas.all(),
        accuracy=task.accuracy,
        gap=task.gap,
    )


ITERATIONS: dict[str, Callable[[Task], Iteration]] = {
    "sparse_cg": conjugate_gradients,
    "sketched_cg": sketched_cg,
    "mixed_cholesky": mixed_cholesky,
    "block": blocks,
}
"""The solvers that go step by step."""
SOLVERS: dict[str, Callable[[Task], Fit]] = {
    "cholesky": by_cholesky,
    "svd": by_svd,
    "dual_cholesky": by_rows,
    **{name: _solved(start) for name, start in ITERATIONS.items()},
}
