"""Newton's method as a method: few passes over all rows, and Hessians of all columns."""

from __future__ import annotations

import math
from typing import cast

from mlopt.costs import Cost
from mlopt.gd.newton import LARGEST, Newton, hessian_rows, start_rows
from mlopt.gd.plans.method import Method, Price, Solver, Start, at_least, priced
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import GradientNorm, RelativeGap, Stop
from mlopt.gd.plans.task import Problem
from mlopt.gd.pricing import Shape, alone, gram_operations, pass_cost, weighted_gram
from mlopt.prices import count, price
from mlopt.resources import Resources

_PASSES = price("newton.passes")
_PASSES_WITH_START = price("newton.passes.start")
_PASSES_OF_SAMPLED = price("newton.passes.sampled")
LOSSES = frozenset({"logistic", "multinomial", "squared_hinge"})
"""What it can minimise."""
_CHOLESKY = price("newton.cholesky")
_STEP = price("newton.step")
_BESIDE = price("newton.beside")
_START_PASSES = price("newton.start")
_FEW_WEIGHTS = count("small.weights")


def rows_of_hessian(shape: Shape) -> int:
    """Rows from which it makes a Hessian."""
    stored = shape.nonzero / shape.n if shape.sparse else None
    return hessian_rows(shape.n, shape.d, shape.columns, stored)


def rows_of_start(shape: Shape) -> int:
    """Rows on which it starts, where Hessians are exact."""
    exact = rows_of_hessian(shape) >= shape.n
    return start_rows(shape.n, shape.d, shape.columns) if exact else 0


def passes(shape: Shape) -> float:
    """To expect, where nothing is known of the data but their shape."""
    if rows_of_hessian(shape) < shape.n:
        return _PASSES_OF_SAMPLED
    return _PASSES_WITH_START if rows_of_start(shape) else _PASSES


def cost(shape: Shape, resources: Resources, passes: float) -> Cost | str:
    """So many passes, or why it cannot be used."""
    size = shape.columns * (shape.d + 1)
    if size > LARGEST:
        return f"a Hessian of {size} x {size} is beyond {LARGEST}"
    rows = rows_of_hessian(shape)
    # Drawn rows are held twice while they are joined; all rows are where they are.
    needed = 2.0 * rows * shape.d * shape.itemsize if rows < shape.n else 0.0
    most = resources.memory / resources.workers / 4
    if needed > most:
        return f"needs {needed / 2**30:.3g} of {most / 2**30:.3g} GiB for a sample"
    renewals = passes if rows == shape.n else math.ceil(math.log2(max(passes, 2)))
    products = 2 * gram_operations(rows, size)
    if shape.columns == 1:
        products = min(products, 2 * weighted_gram(shape, rows))
    hessian = Cost(flops=products / resources.workers) + Cost(python=_BESIDE)
    factor = alone(_CHOLESKY * size**3 / 3, resources)
    each = pass_cost(shape, resources, _STEP)
    share = rows_of_start(shape) / shape.n
    # The rows of a start are few, its calls are not.
    calls = Cost(python=(1.0 - share) * (_STEP + _BESIDE)) if share else Cost()
    start = _START_PASSES * (share * (each + hessian) + calls)
    return start + passes * each + renewals * (hessian + factor)


def _price(outline: Outline, resources: Resources) -> Price | str:
    if outline.shape.columns > 1 and outline.loss != "multinomial":
        return "its Hessian is that of one column of weights, or of a softmax"
    return priced(cost)(outline, resources)


def _begin(problem: Problem, stop: Stop, max_passes: int, start: Start) -> Solver:
    near = isinstance(stop, GradientNorm)
    return Newton(
        problem.rows, problem.model,
        gtol=cast(GradientNorm, stop).tol if near else 0.0,
        tol=0.0 if near else cast(RelativeGap, stop).tolerance,
        max_passes=max_passes, start=start, certain=not near,
    )  # fmt: skip


def _small(problem: Problem) -> bool:
    """Few weights: a Hessian and its factor take little beside the calls of a pass."""
    one = problem.outputs == 1 or problem.task.loss == "multinomial"
    return one and problem.outputs * (problem.rows.d + 1) <= _FEW_WEIGHTS


NEWTON_CHOLESKY = Method(
    "newton-cholesky", LOSSES, passes, _price, _begin,
    stops=(RelativeGap, GradientNorm), continues=True, small=_small, least=at_least(3),
    free=1,
)  # fmt: skip
