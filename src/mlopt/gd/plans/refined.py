"""Conjugate gradients with a preconditioner that is near the inverse: few steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.column_sums import ColumnSums
from mlopt.gd.conjugate_gradients import ConjugateGradients, Inverse
from mlopt.gd.plans.cholesky import by_cholesky
from mlopt.gd.plans.squares import Fit, Iteration, Squares
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
    made: Callable[[], Inverse],
    patience: int,
    tol: float,
) -> Fit | Iteration:
    """Steps until the error is ``tol``; normal equations where they are too many.

    So, too, where float32 does not hold what the inverse is ``made`` of. Rounding of the
    rows' products keeps errors from being estimated far below ``tol``.
    """
    try:
        inverse = made()
    except InputError:
        if squares.rows.d > _FACTORED:
            raise
        why = f"`{name}` has no preconditioner: the rows' products overflow"
        note = f"{why}, so the normal equations were solved instead"
        found = by_cholesky(squares)
        return replace(found, notes=(note, *found.notes))
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
    sums, doubles = replace(reading, flops=_SUMS * values), replace(shape, itemsize=8)
    return reading + sums + steps * normal_pass(doubles, resources)
