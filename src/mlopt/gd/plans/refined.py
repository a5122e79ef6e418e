"""Conjugate gradients with a preconditioner that is near the inverse: few steps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from mlopt.costs import Cost
from mlopt.gd.column_sums import ColumnSums
from mlopt.gd.conjugate_gradients import ConjugateGradients, Inverse
from mlopt.gd.plans.cholesky import by_cholesky
from mlopt.gd.plans.squares import Iteration, Squares
from mlopt.gd.pricing import Shape, scan
from mlopt.gd.row_products import normal_pass
from mlopt.gd.sizes import ROUNDED
from mlopt.prices import count, price
from mlopt.resources import Resources

_FACTORED = count("cholesky.columns")
_SUMS = price("sums.value")


def refine(
    squares: Squares,
    name: str,
    sums: ColumnSums,
    inverse: Inverse,
    patience: int,
    tol: float,
) -> Iteration:
    """Steps until the error is ``tol``; normal equations where they are too many.

    Rounding of the rows' products keeps errors from being estimated far below that.
    """
    training = ConjugateGradients(
        squares.rows, squares.alphas, squares.intercept, max(tol, ROUNDED), sums, inverse,
        squares.gap,
    )  # fmt: skip
    if squares.rows.d > _FACTORED:
        return Iteration(name, training)
    return Iteration(name, training, patience, partial(by_cholesky, squares))


def steps_cost(shape: Shape, resources: Resources, steps: float) -> Cost:
    """Checking the rows, the sums of columns, and so many passes in float64."""
    reading = scan(shape, resources, 8.0 * (shape.d + 1) * shape.columns)
    values = (shape.nonzero + shape.n * shape.columns) / resources.workers
    sums, doubles = reading | Cost(flops=_SUMS * values), replace(shape, itemsize=8)
    return reading + sums + steps * normal_pass(doubles, resources)
