"""L-BFGS as a method: a start on a sample, with Hessians where d is moderate; passes.

The numbers of passes are what was seen on the real data of the benchmarks, rounded up.
"""

from __future__ import annotations

import math
from dataclasses import replace

from mlopt.costs import Cost
from mlopt.gd.plans.method import Method, Price, Solver, Start, at_least
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import GradientNorm, Minimum, RelativeGap
from mlopt.gd.plans.task import Problem
from mlopt.gd.pricing import (
    Shape,
    arithmetic,
    asked,
    gradient_pass,
    read_alone,
    solving,
    weighted_gram,
)
from mlopt.gd.quasi_newton import QuasiNewton
from mlopt.gd.sample import sample_size
from mlopt.gd.sizes import WIDEST
from mlopt.prices import price
from mlopt.resources import Resources

LOSSES = frozenset({"logistic", "multinomial", "squared", "squared_hinge", "huber"})
"""What it can minimise."""

_PASSES_WITH_HESSIAN = price("lbfgs.passes.hessian")
_PASSES_WITH_DIAGONAL = price("lbfgs.passes.diagonal")
_PASSES_OF_SOFTMAX = price("lbfgs.passes.softmax")
_NESTED = (price("lbfgs.start.passes"), price("lbfgs.start.hessians"))
_INNERMOST = (price("lbfgs.innermost.passes"), price("lbfgs.innermost.hessians"))
_WIDE_START = price("lbfgs.wide-start")
_DRAW = price("lbfgs.draw")
_BESIDE = price("lbfgs.beside")
_STEP, _VECTORS = price("lbfgs.step"), price("lbfgs.vectors")
_NEAR = 0.3
"""Of the gradient asked for, where columns are many: as near the optimum as scikit-learn's
lbfgs ends by the rule itself, since its steps are shorter."""


def passes(shape: Shape) -> float:
    """To expect, where nothing is known of the data but their shape."""
    if shape.columns > 1:
        return _PASSES_OF_SOFTMAX
    return _PASSES_WITH_HESSIAN if shape.d < WIDEST else _PASSES_WITH_DIAGONAL


def cost(shape: Shape, resources: Resources, passes: float) -> Cost:
    """A start, and so many passes over all rows."""
    return _start(shape, resources) + passes * each(shape, resources)


def each(shape: Shape, resources: Resources) -> Cost:
    """A pass and a step."""
    factors = solving(shape.d + 1, shape.columns) if shape.d < WIDEST else Cost()
    step = Cost(python=_STEP) + factors
    return gradient_pass(shape, resources) + beside_pass(shape, resources) + step


def beside_pass(shape: Shape, resources: Resources) -> Cost:
    """Two loops over pairs of vectors, of all columns of weights."""
    vectors = 8.0 * (shape.d + 1) * shape.columns
    return read_alone(_VECTORS * vectors, resources)


def _start(shape: Shape, resources: Resources) -> Cost:
    if shape.d >= WIDEST:
        return _WIDE_START * each(shape, resources)
    rows = sample_size(shape.n, shape.d, shape.columns)
    squares = each(shape, resources)  # of all columns
    hessian = weighted_gram(shape, rows) + 2.0 * shape.d**3 / 3
    if rows == shape.n:
        return squares + arithmetic(shape, _INNERMOST[1] * hessian)
    share = rows / shape.n
    sample = replace(shape, n=rows, nonzero=math.ceil(share * shape.nonzero), blocks=1)
    # The sample, what is beside it, a first row, moments about that.
    drawn = Cost(memory=_DRAW * sample.nbytes, python=_BESIDE) + asked(4, resources)
    nested = sample_size(rows, shape.d, shape.columns) < rows
    over, renewals = _NESTED if nested else _INNERMOST
    here = resources.one_process  # where a sample is held
    trained = over * each(sample, here) + arithmetic(shape, renewals * hessian)
    before = _start(sample, here) if nested else Cost()
    return squares + drawn + before + trained


def _price(outline: Outline, resources: Resources) -> Price | str:
    shape = outline.shape
    if outline.loss == "squared" and shape.d >= WIDEST:
        return (
            f"without a Hessian, as with {WIDEST} columns and more, conjugate gradients "
            "take fewer passes to least squares, and tell better when to stop"
        )
    return lambda passes: cost(shape, resources, passes)


def _begin(problem: Problem, stop: Minimum, max_passes: int, start: Start) -> Solver:
    rows, first = problem.rows, problem.split(start)
    if isinstance(stop, RelativeGap):
        return QuasiNewton(
            rows, problem.models, tol=stop.tolerance, max_passes=max_passes, start=first,
            certain=True,
        )  # fmt: skip
    # A gradient says little of flat directions, and there is no Hessian to look ahead.
    near = _NEAR if rows.d >= WIDEST or rows.d >= rows.n else 1.0
    return QuasiNewton(
        rows, problem.models, gtol=near * stop.tol, max_passes=max_passes, start=first
    )


def _small(problem: Problem) -> bool:
    """More rows than columns, no softmax: its Hessian of a sample serves to the end."""
    return problem.rows.n > problem.rows.d and problem.task.loss != "multinomial"


LBFGS = Method(
    "lbfgs", LOSSES, passes, _price, _begin, stops=(RelativeGap, GradientNorm),
    continues=True, small=_small, least=at_least(6), free=1,
)  # fmt: skip
