"""Least squares by a Gram matrix in float32, refined in float64."""

from __future__ import annotations

from functools import partial

import numpy as np

from mlopt.costs import Cost
from mlopt.gd import gram_inverse
from mlopt.gd.column_sums import ColumnSums
from mlopt.gd.plans.closed import least_squares, penalised
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.refined import refine, steps_cost
from mlopt.gd.plans.squares import Fit, Iteration, Squares
from mlopt.gd.row_products import at_once, beyond, panels_cost
from mlopt.prices import count, price
from mlopt.resources import Resources

_STEPS = price("mixed_cholesky.steps")
_PATIENCE = count("mixed_cholesky.patience")
_ROUNDED = float(np.finfo(np.float32).eps)
DENSE = "needs dense rows: sparse ones stay sparse under `sparse_cg`"


def begin(squares: Squares) -> Fit | Iteration:
    """The factor in float32, before the first step."""
    sums = ColumnSums.of(squares.rows, squares.intercept)
    made = partial(gram_inverse.of_float32, squares.rows, sums, squares.alphas)
    # Each coefficient is to be that good, not only all of them together.
    tol = squares.accuracy / 100
    return refine(squares, "mixed_cholesky", sums, made, _PATIENCE, tol)


def _cost(outline: Outline, resources: Resources, passes: float) -> Cost | str:
    shape, d = outline.shape, outline.shape.d
    if why := penalised(outline) or (DENSE if shape.sparse else None):
        return why
    if _is_rounding(outline):
        return (
            "the penalty, which alone holds what rows do not, is below float32's rounding"
        )
    needed = 4.0 * d**2 * (at_once(shape, resources) + 1)
    if why := beyond(needed, resources, "its factors"):
        return why
    product = panels_cost(shape, resources, d, single=True)
    return product + factor_cost(d) + steps_cost(shape, resources, passes)


def factor_cost(d: int) -> Cost:
    """A factor in float32, of one penalty."""
    return Cost(flops32=2.0 * d**3 / 3, memory=6 * 4.0 * d**2)


def _is_rounding(outline: Outline) -> bool:
    """Whether the least curvature is the penalty, and less than the largest is off by."""
    shape = outline.shape
    if shape.n >= shape.d or outline.look is None:
        return False
    return outline.l2 < _ROUNDED * outline.look().length


MIXED_CHOLESKY = least_squares(
    "mixed_cholesky", _cost, begin, lambda outline, stop: _STEPS,
    passes=lambda shape: _STEPS, least=4, free=1,
)  # fmt: skip
