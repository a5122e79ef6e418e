"""The ways of solving a task, one row of `METHODS` each; the optimizer knows no others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from mlopt.costs import Cost
from mlopt.gd import classifier_plan, least_squares_plan
from mlopt.gd.newton import Newton
from mlopt.gd.normal_equations import multiplies_sparse
from mlopt.gd.operators.plans import MORE_PLANS, PLANS
from mlopt.gd.plans import dual_logistic, primal_coordinate, variance_reduced, wide
from mlopt.gd.plans.closed import LeastSquares
from mlopt.gd.plans.descents import descent
from mlopt.gd.plans.dual_gap import DualDescent, without_dual
from mlopt.gd.plans.method import Method, Price, Shape, Solver, Start, problem_shape
from mlopt.gd.plans.task import Problem
from mlopt.gd.quasi_newton import QuasiNewton
from mlopt.gd.sample import WIDEST
from mlopt.resources import Resources

_SMOOTH = frozenset({"logistic", "multinomial", "squared", "squared_hinge", "huber"})
_DUAL_EPOCHS = 80
_CALL = 1.5e-3
"""Seconds of a pass over rows that take none."""
_FLAT = 1e-3
"""Gradient, relative to the tolerance, at which least squares are solved for certain."""
_DOUBT = 20.0
"""Methods that take one row or column at a time may need twenty times the usual passes,
where columns are many and correlated."""


def _of(
    cost: Callable[[Problem, Resources, float], Cost | str],
) -> Callable[[Problem, Resources], Price | str]:
    """A price from a cost of so many passes that may refuse the problem."""

    def price(problem: Problem, resources: Resources) -> Price | str:
        once = cost(problem, resources, 1.0)
        if isinstance(once, str):
            return once
        return lambda passes: cast(Cost, cost(problem, resources, passes))

    return price


def _quasi_newton(problem: Problem, resources: Resources) -> Price | str:
    shape = problem_shape(problem)
    if problem.task.loss == "squared" and shape.d >= WIDEST:
        return (
            f"without a Hessian, as with {WIDEST} columns and more, conjugate gradients "
            "take fewer passes to least squares, and tell better when to stop"
        )
    return lambda passes: classifier_plan.quasi_newton_cost(shape, resources, passes)


def _newton(problem: Problem, resources: Resources, passes: float) -> Cost | str:
    return classifier_plan.newton_cost(problem_shape(problem), resources, passes)


def _dual(problem: Problem, resources: Resources) -> Price | str:
    if (why := without_dual(problem)) is not None:
        return why
    shape = problem_shape(problem)
    return lambda passes: classifier_plan.dual_cost(shape, resources, passes)


def _least_squares(solver: str) -> Callable[[Problem, Resources], Price | str]:
    def cost(problem: Problem, resources: Resources, passes: float) -> Cost | str:
        shape = _least_squares_shape(problem)
        if solver in ("sparse_cg", "sketched_cg"):
            steps, rank = max(1, round(passes)), wide.sketch_rank(problem)
            shape = replace(shape, steps=steps, rank=rank)
        return least_squares_plan.solver_cost(solver, shape, resources)

    return _of(cost)


def _by_shape(
    passes: Callable[[Shape, float, float], float | None],
) -> Callable[[Problem, float], float | None]:
    return lambda problem, tolerance: passes(
        problem_shape(problem), tolerance, problem.task.l2
    )


def _of_sparse(problem: Problem, tolerance: float) -> float | None:
    if problem.task.loss != "logistic":
        return None
    shape, l2 = problem_shape(problem), problem.task.l2
    return classifier_plan.passes_of_sparse(shape, l2, tolerance)


def _least_squares_shape(problem: Problem) -> least_squares_plan.Shape:
    rows = problem.rows
    return least_squares_plan.Shape(
        n=rows.n, d=rows.d, outputs=1, nonzero=rows.nonzero,
        itemsize=rows.dtype.itemsize, sparse=rows.sparse,
        multiplies_sparse=multiplies_sparse(rows), blocks=len(rows.lengths),
        tol=1e-8, ranked=problem.task.l2 == 0,
    )  # fmt: skip


def _begin_quasi_newton(
    problem: Problem, tolerance: float, max_passes: int, start: Start
) -> Solver:
    return QuasiNewton(
        problem.rows,
        [problem.model],
        tol=tolerance,
        max_passes=max_passes,
        start=None if start is None else [start],
        certain=True,
    )


def _begin_newton(
    problem: Problem, tolerance: float, max_passes: int, start: Start
) -> Solver:
    return Newton(
        problem.rows, problem.model, tol=tolerance, max_passes=max_passes, start=start,
        certain=True,
    )  # fmt: skip


def _begin_dual(
    problem: Problem, tolerance: float, max_passes: int, start: Start
) -> Solver:
    del start  # weights alone do not tell the dual variables
    return DualDescent(problem, tolerance, max_passes)


def _closed(solver: str) -> Callable[[Problem, float, int, Start], Solver]:
    def begin(problem: Problem, tolerance: float, max_passes: int, start: Start) -> Solver:
        del start
        return LeastSquares(problem, solver, tolerance, _FLAT * tolerance, max_passes)

    return begin


def _once(shape: Shape) -> float:
    del shape
    return 1.0


def _least(passes: float) -> Callable[[Problem, Resources], float]:
    """So many passes, and each no faster than memory."""

    def seconds(problem: Problem, resources: Resources) -> float:
        each = Cost(memory=problem.rows.nbytes / resources.workers, python=_CALL)
        return passes * each.seconds(resources, resources.threads)

    return seconds


METHODS: tuple[Method, ...] = (
    Method(
        "lbfgs", _SMOOTH, lambda shape: shape.passes, _quasi_newton,
        _begin_quasi_newton, continues=True, least=_least(6),
        foreseen=_by_shape(classifier_plan.passes_after_sample), usual=_of_sparse,
    ),
    Method(
        "newton-cholesky", frozenset({"logistic", "multinomial"}),
        lambda shape: shape.newton_passes, _of(_newton),
        _begin_newton, continues=True, least=_least(3),
        foreseen=_by_shape(classifier_plan.newton_passes_after_sample),
    ),
    Method(
        "dual-coordinate-descent", frozenset({"hinge", "squared_hinge"}),
        lambda shape: _DUAL_EPOCHS, _dual, _begin_dual, least=_least(6),
    ),
    Method(
        "dual-coordinate-descent-logistic", dual_logistic.LOSSES, dual_logistic.passes,
        _of(dual_logistic.cost), dual_logistic.begin, least=_least(6),
    ),
    Method(
        "primal-coordinate-descent", primal_coordinate.LOSSES, primal_coordinate.passes,
        _of(primal_coordinate.cost), primal_coordinate.begin, continues=True,
        least=_least(16), doubt=_DOUBT, foreseen=wide.epochs,
    ),
    Method(
        "svrg", variance_reduced.LOSSES, variance_reduced.passes,
        _of(variance_reduced.cost), variance_reduced.begin, continues=True,
        least=_least(16), believed=1.0, doubt=_DOUBT, foreseen=wide.epochs,
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
        "conjugate-gradients", frozenset({"squared"}), lambda shape: 64.0,
        _least_squares("sparse_cg"), _closed("sparse_cg"), least=_least(16),
        foreseen=wide.steps,
    ),
    Method(
        "preconditioned-conjugate-gradients", frozenset({"squared"}), _once,
        _least_squares("sketched_cg"), _closed("sketched_cg"), iterates=False,
        least=_least(8),
        foreseen=wide.preconditioned_steps,
    ),
    *(
        Method(
            name, frozenset({"squared"}), lambda shape: 20.0, _least_squares(solver),
            _closed(solver), iterates=False, least=_least(least),
        )
        for name, solver, least in (
            ("mixed-precision-normal-equations", "mixed_cholesky", 4),
            ("block-coordinate-descent", "block", 4),
            ("dual-normal-equations", "dual_cholesky", 1),
        )
    ),
    *map(descent, (*PLANS, *MORE_PLANS)),
)  # fmt: skip
"""The table: a new method is a row here and nothing else."""
