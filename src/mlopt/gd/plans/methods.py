"""The ways of solving a task, one row of `METHODS` each; the optimizer knows no others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from mlopt.costs import Cost
from mlopt.gd import classifier_plan, least_squares_plan
from mlopt.gd.classifier_fit import shape_of
from mlopt.gd.classifier_plan import Shape
from mlopt.gd.newton import Newton
from mlopt.gd.normal_equations import multiplies_sparse
from mlopt.gd.plans.closed import LeastSquares
from mlopt.gd.plans.dual_gap import DualDescent
from mlopt.gd.plans.task import Problem
from mlopt.gd.quasi_newton import QuasiNewton
from mlopt.resources import Resources
from mlopt.training import Training

_SMOOTH = frozenset({"logistic", "multinomial", "squared", "squared_hinge", "huber"})
_DUAL_EPOCHS = 30

Start = tuple[NDArray[Any], NDArray[Any]] | None
"""Weights (outputs, d) and intercepts (outputs,); None for the method's own start."""


class Solver(Training, Protocol):
    """A training whose result are the weights of one model."""

    @property
    def converged(self) -> Any:
        """Whether it is at the tolerance."""
        ...

    def coefficients(self, number: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Weights (outputs, d) and intercepts (outputs,)."""
        ...


@dataclass(frozen=True)
class Method:
    """One way of solving.

    Parameters
    ----------
    name : str
    losses : frozenset of str
        What it can minimise.
    passes : callable
        Passes to expect where nothing is known of the data but their shape.
    cost : callable
        Of so many passes on a problem, or why it cannot be used there.
    begin : callable
        The training, from a problem, a tolerance (relative to the minimum of the
        objective), the most passes it may take, and weights to start from; methods that
        cannot start anywhere ignore these.
    iterates : bool, default=True
        Whether its passes depend on the data, so that a sample tells something.
    continues : bool, default=False
        Whether it can start from the weights of another.
    """

    name: str
    losses: frozenset[str]
    passes: Callable[[Shape], float]
    cost: Callable[[Problem, Resources, float], Cost | str]
    begin: Callable[[Problem, float, int, Start], Solver]
    iterates: bool = True
    continues: bool = False


def problem_shape(problem: Problem) -> Shape:
    """What costs depend on."""
    return shape_of(problem.rows, problem.model.outputs)


def _quasi_newton(problem: Problem, resources: Resources, passes: float) -> Cost | str:
    return classifier_plan.quasi_newton_cost(problem_shape(problem), resources, passes)


def _newton(problem: Problem, resources: Resources, passes: float) -> Cost | str:
    return classifier_plan.newton_cost(problem_shape(problem), resources, passes)


def _dual(problem: Problem, resources: Resources, passes: float) -> Cost | str:
    if problem.task.fit_intercept:
        return "it would penalise the intercept: `fit_intercept` must be False"
    if problem.task.l2 == 0:
        return "there is no dual without a penalty: `l2` must be positive"
    return classifier_plan.dual_cost(problem_shape(problem), resources, passes)


def _least_squares(solver: str) -> Callable[[Problem, Resources, float], Cost | str]:
    def cost(problem: Problem, resources: Resources, passes: float) -> Cost | str:
        rows = problem.rows
        shape = least_squares_plan.Shape(
            n=rows.n, d=rows.d, outputs=1, nonzero=rows.nonzero,
            itemsize=rows.dtype.itemsize, sparse=rows.sparse,
            multiplies_sparse=multiplies_sparse(rows), blocks=len(rows.lengths),
            tol=10.0 ** -min(passes / 8, 16), ranked=problem.task.l2 == 0,
        )  # fmt: skip
        return least_squares_plan.solver_costs(shape, resources)[solver]

    return cost


def _begin_quasi_newton(
    problem: Problem, tolerance: float, max_passes: int, start: Start
) -> Solver:
    return QuasiNewton(
        problem.rows,
        [problem.model],
        tol=tolerance,
        max_passes=max_passes,
        start=None if start is None else [start],
    )


def _begin_newton(
    problem: Problem, tolerance: float, max_passes: int, start: Start
) -> Solver:
    return Newton(
        problem.rows, problem.model, tol=tolerance, max_passes=max_passes, start=start
    )


def _begin_dual(
    problem: Problem, tolerance: float, max_passes: int, start: Start
) -> Solver:
    del start  # weights alone do not tell the dual variables
    return DualDescent(problem, tolerance, max_passes)


def _closed(solver: str) -> Callable[[Problem, float, int, Start], Solver]:
    def begin(problem: Problem, tolerance: float, max_passes: int, start: Start) -> Solver:
        del start
        # A relative gradient, from which nobody knows the gap: rather too small.
        return LeastSquares(problem, solver, tolerance / 10, max_passes)

    return begin


def _once(shape: Shape) -> float:
    del shape
    return 1.0


METHODS: tuple[Method, ...] = (
    Method(
        "lbfgs", _SMOOTH, lambda shape: shape.passes, _quasi_newton,
        _begin_quasi_newton, continues=True,
    ),
    Method(
        "newton-cholesky", frozenset({"logistic", "multinomial"}),
        lambda shape: shape.newton_passes, _newton,
        _begin_newton, continues=True,
    ),
    Method(
        "dual-coordinate-descent", frozenset({"hinge", "squared_hinge"}),
        lambda shape: _DUAL_EPOCHS, _dual, _begin_dual,
    ),
    Method(
        "normal-equations", frozenset({"squared"}), _once, _least_squares("cholesky"),
        _closed("cholesky"), iterates=False,
    ),
    Method(
        "qr", frozenset({"squared"}), _once, _least_squares("svd"), _closed("svd"),
        iterates=False,
    ),
    Method(
        "conjugate-gradients", frozenset({"squared"}), lambda shape: 24.0,
        _least_squares("sparse_cg"), _closed("sparse_cg"),
    ),
)  # fmt: skip
"""The table: a new method is a row here and nothing else."""
