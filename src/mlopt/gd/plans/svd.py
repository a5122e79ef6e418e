"""Least squares by a tall-skinny QR, and the singular values of its factor: one pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mlopt.costs import Cost
from mlopt.gd import tsqr
from mlopt.gd.plans.closed import least_squares
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.squares import Fit, Squares
from mlopt.gd.row_products import bordered, no_room, triangle_cost
from mlopt.prices import price
from mlopt.resources import Resources

_SVD = price("svd.product")


def by_svd(squares: Squares) -> Fit:
    """Of least norm where several coefficients are as good."""
    found = tsqr.factor(squares.rows, len(squares.alphas), squares.intercept)
    solution = tsqr.solve(found, squares.alphas, squares.cutoff)
    # An intercept takes a row away, and where these are few a singular value.
    lacking = min(squares.rows.n, squares.rows.d) - len(solution.singular)
    singular = np.pad(solution.singular, (0, lacking))
    return Fit(solution.coef, found.mean, "svd", solution.rank, singular)


def instead(squares: Squares, why: str) -> Fit:
    """Where normal equations lose too many digits."""
    note = f"normal equations were tried first: {why}, so rows were read again for a QR"
    return replace(by_svd(squares), notes=(note,))


def _cost(outline: Outline, resources: Resources, passes: float) -> Cost | str:
    del passes
    shape = outline.shape
    if shape.n >= shape.d and (why := no_room(bordered(shape), shape, resources)):
        return why
    m = bordered(shape)
    last = Cost(flops=_SVD * 4.0 * min(shape.n, m) ** 2 * m)
    return triangle_cost(shape, resources) + last


SVD = least_squares("svd", _cost, by_svd)
