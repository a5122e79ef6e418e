"""Least squares block by block of columns: Gauss-Seidel sweeps."""

from __future__ import annotations

import math

from mlopt.costs import Cost
from mlopt.gd.block_solve import BlockSolve
from mlopt.gd.plans.closed import least_squares, penalised
from mlopt.gd.plans.mixed_cholesky import DENSE
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.refined import sums_cost
from mlopt.gd.plans.squares import Iteration, Squares
from mlopt.gd.plans.stop import CoefficientError
from mlopt.gd.pricing import Shape, scan
from mlopt.gd.row_products import beyond, normal_pass
from mlopt.gd.sizes import HALF, ROUNDED
from mlopt.prices import count, price
from mlopt.resources import Resources

COLUMNS = count("block.columns")
_DIGIT, _RESIDUAL = price("block.digit"), price("block.residual")


def begin(squares: Squares) -> Iteration:
    """Up to the accuracy."""
    tol = max(squares.accuracy / 10, ROUNDED)
    training = BlockSolve(squares.rows, squares.alphas, squares.intercept, tol, COLUMNS)
    return Iteration("block", training)


def sweeps(shape: Shape, accuracy: float) -> float:
    """To a tenth of ``accuracy``; one block is solved at once."""
    if shape.d <= COLUMNS:
        return 2.0
    return math.ceil(_DIGIT * math.log10(10.0 / accuracy))


def _steps(outline: Outline, stop: CoefficientError) -> float:
    return sweeps(outline.shape, stop.accuracy)


def _why_not(outline: Outline, resources: Resources) -> str | None:
    d = outline.shape.d
    if why := penalised(outline) or (DENSE if outline.shape.sparse else None):
        return why
    return beyond(8.0 * d * min(d, COLUMNS), resources, "its factors")


def _cost(outline: Outline, resources: Resources, passes: float) -> Cost | str:
    return _why_not(outline, resources) or _price(outline.shape, resources, passes)


def _price(shape: Shape, resources: Resources, passes: float) -> Cost:
    b, share = min(shape.d, COLUMNS), 1.0 / resources.workers
    blocks = math.ceil(shape.d / b)
    reading = scan(shape, resources, 8.0 * shape.d * b, times=4)
    grams = reading + Cost(flops=share * shape.n * float(shape.d) * b)
    factors = Cost(flops=2.0 * shape.d * b**2 / 3)
    # Rows are read for the gradient of a block, and again for what its change makes of it.
    sweep = scan(shape, resources, 0.0) + normal_pass(shape, resources)
    # Every block of columns asks the workers twice.
    ask = scan(shape, resources, 8.0 * b * shape.columns)
    waits = Cost(
        tasks=ask.tasks, round_trips=ask.round_trips, python=ask.python, fixed=ask.fixed
    )
    # Residuals are kept: made once, read and made anew by each block of columns.
    values = share * shape.n * shape.columns
    residuals = Cost(memory=_RESIDUAL * 8.0 * values * (1 + passes * blocks))
    before = sums_cost(shape, resources) + grams + factors
    return before + residuals + passes * (2 * blocks * waits + sweep)


BLOCK = least_squares(
    "block", _cost, begin, _steps, passes=lambda shape: sweeps(shape, HALF), least=4,
    free=1,
)  # fmt: skip
