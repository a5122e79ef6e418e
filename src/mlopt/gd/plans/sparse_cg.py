"""Least squares by conjugate gradients: sparse rows stay sparse."""

from __future__ import annotations

import math

from mlopt.costs import Cost
from mlopt.gd.conjugate_gradients import ConjugateGradients
from mlopt.gd.plans.closed import least_squares
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.squares import Iteration, Squares
from mlopt.gd.plans.stop import CoefficientError
from mlopt.gd.row_products import normal_pass
from mlopt.prices import price
from mlopt.resources import Resources

_STEPS = price("sparse_cg.steps")
_DIGIT = price("sparse_cg.digit")
_LOOSE = "for dense rows by name only: it stops at a gradient, short of full accuracy"


def begin(squares: Squares) -> Iteration:
    """Up to the tolerance, from zero."""
    training = ConjugateGradients(
        squares.rows, squares.alphas, squares.intercept, squares.tol, gap=squares.gap
    )
    return Iteration("sparse_cg", training)


def left_out(sparse: bool) -> dict[str, str]:
    """Where coefficients are to be exact, and why."""
    return {} if sparse else {"sparse_cg": _LOOSE}


def _steps(outline: Outline, stop: CoefficientError) -> float:
    """To a relative gradient, at most the rank.

    With columns of one scale and no correlation, singular values lie within ``sqrt(n) +-
    sqrt(d)`` (Marchenko, Pastur, 1967), so that each step gains a factor ``sqrt(n / d)``:
    sparse columns are close to that, and their correlations cost half as many steps more.
    """
    if (seen := outline.spectrum) is not None:
        return float(seen.steps(outline.l2, stop.gradient**2))  # a gap goes by the square
    shape, each = outline.shape, _DIGIT
    digits = -math.log10(min(max(stop.gradient, 1e-16), 0.1))
    if shape.sparse and shape.n > shape.d:
        each = min(each, 1.5 * 2.0 / math.log10(shape.n / shape.d))
    return float(max(1, min(math.ceil(each * digits), shape.n, shape.d)))


def _foreseen(outline: Outline, tolerance: float) -> float | None:
    if (seen := outline.spectrum) is None:
        return None
    l2 = outline.l2
    return float(seen.steps(l2, tolerance / seen.looseness(l2)))


def _cost(outline: Outline, resources: Resources, passes: float) -> Cost:
    return (passes + 1) * normal_pass(outline.shape, resources)


SPARSE_CG = least_squares(
    "sparse_cg", _cost, begin, _steps, passes=lambda shape: _STEPS, least=16,
    iterates=True, factors=False, foreseen=_foreseen, free=1,
)  # fmt: skip
