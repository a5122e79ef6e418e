"""Least squares by normal equations: one pass; a QR where they lose too many digits."""

from __future__ import annotations

from mlopt.costs import Cost
from mlopt.gd import normal_equations
from mlopt.gd.plans.closed import least_squares
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.squares import Fit, Squares
from mlopt.gd.plans.svd import instead
from mlopt.gd.plans.task import Problem
from mlopt.gd.row_products import bordered, gram_cost, no_room
from mlopt.prices import price
from mlopt.resources import Resources

_EIGENVALUES = price("eigenvalues.product")


def by_cholesky(squares: Squares) -> Fit:
    """Without a penalty, with rank and singular values."""
    found = normal_equations.moments(squares.rows, len(squares.alphas), squares.intercept)
    solution = normal_equations.solve(found, squares.alphas)
    if solution.error > squares.accuracy:
        return instead(squares, f"they may be off by {solution.error:.0e} of a coefficient")
    if squares.alphas.all():
        return Fit(solution.coef, found.mean, "cholesky")
    singular = normal_equations.singular_values(found, len(squares.alphas))
    if squares.cutoff is not None and singular[-1] <= 10 * squares.cutoff * singular[0]:
        return instead(squares, "the features are nearly dependent")
    return Fit(solution.coef, found.mean, "cholesky", len(singular), singular)


def _cost(outline: Outline, resources: Resources, passes: float) -> Cost | str:
    del passes
    shape = outline.shape
    if why := no_room(bordered(shape), shape, resources):
        return why
    d = shape.d
    spectrum = 0.0 if outline.l2 else _EIGENVALUES * 4 / 3 * d**3
    beside = Cost(flops=spectrum + 2.0 * d**2 * shape.columns)
    return gram_cost(shape, resources) + normal_equations.factor_cost(d) + beside


def _small(problem: Problem) -> bool:
    """Dense, and taller than wide: there is one pass, and a factor that is cheaper."""
    return not problem.rows.sparse and problem.rows.n > problem.rows.d


CHOLESKY = least_squares("cholesky", _cost, by_cholesky, small=_small)
