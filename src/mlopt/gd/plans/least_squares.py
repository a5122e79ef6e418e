"""Least squares in closed form and by conjugate gradients, as methods: one a solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mlopt.costs import Cost
from mlopt.gd import least_squares_plan
from mlopt.gd.normal_equations import sparse_product_pays
from mlopt.gd.plans import wide
from mlopt.gd.plans.closed import LeastSquares
from mlopt.gd.plans.method import Method, Price, Solver, Start, at_least
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import RelativeGap
from mlopt.gd.plans.task import Problem
from mlopt.gd.pricing import Shape
from mlopt.prices import price
from mlopt.resources import Resources

_FLAT = 1e-3
"""Gradient, relative to the tolerance, at which least squares are solved for certain."""
_SQUARED = frozenset({"squared"})
_STEPS = price("conjugate-gradients.steps")
_SWEEPS = price("block.sweeps")


def _shape(outline: Outline) -> least_squares_plan.Shape:
    shape = outline.shape
    pays = sparse_product_pays(shape.nonzero / shape.n, shape.d)
    return least_squares_plan.Shape(
        n=shape.n, d=shape.d, outputs=1, nonzero=shape.nonzero, itemsize=shape.itemsize,
        sparse=shape.sparse, multiplies_sparse=shape.sparse and pays, blocks=shape.blocks,
        tol=1e-8, ranked=outline.l2 == 0,
    )  # fmt: skip


def _price(solver: str) -> Callable[[Outline, Resources], Price | str]:
    def price(outline: Outline, resources: Resources) -> Price | str:
        shape, rank = _shape(outline), None
        steps = solver in ("sparse_cg", "sketched_cg")
        if steps:
            rank = wide.sketch_rank(outline)

        def cost(passes: float) -> Cost | str:
            asked = shape
            if steps:
                asked = replace(shape, steps=max(1, round(passes)), rank=rank)
            return least_squares_plan.solver_cost(solver, asked, resources)

        once = cost(1.0)
        return once if isinstance(once, str) else cost  # type: ignore[return-value]

    return price


def _begin(solver: str) -> Callable[[Problem, RelativeGap, int, Start], Solver]:
    def begin(problem: Problem, stop: RelativeGap, max_passes: int, start: Start) -> Solver:
        del start
        gtol = _FLAT * stop.tolerance
        return LeastSquares(problem, solver, stop.tolerance, gtol, max_passes)

    return begin


def _expected(count: float) -> Callable[[Shape], float]:
    def passes(shape: Shape) -> float:
        del shape
        return count

    return passes


def _method(
    solver: str,
    least: float = 0.0,
    passes: float = 1.0,
    foreseen: Callable[[Outline, float], float | None] | None = None,
) -> Method:
    one = Method(
        solver, _SQUARED, _expected(passes), _price(solver), _begin(solver),
        iterates=solver == "sparse_cg", least=at_least(least),
    )  # fmt: skip
    return one if foreseen is None else replace(one, foreseen=foreseen)


LEAST_SQUARES = (
    _method("cholesky"),
    _method("svd"),
    _method("sparse_cg", 16, _STEPS, wide.steps),
    _method("sketched_cg", 8, foreseen=wide.preconditioned_steps),
    _method("mixed_cholesky", 4, _SWEEPS),
    _method("block", 4, _SWEEPS),
    _method("dual_cholesky", 1, _SWEEPS),
)
