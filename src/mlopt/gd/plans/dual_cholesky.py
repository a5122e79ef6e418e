"""Least squares by the system of the rows, where they are fewer than columns."""

from __future__ import annotations

from mlopt.costs import Cost
from mlopt.gd import dual_squares
from mlopt.gd.plans.cholesky import CHOLESKY_FLOPS
from mlopt.gd.plans.closed import least_squares, penalised
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.squares import Fit, Squares
from mlopt.gd.plans.svd import instead
from mlopt.gd.pricing import Shape, scan
from mlopt.gd.row_products import PANELS, SPARSE_PRODUCT, beyond
from mlopt.resources import Resources


def by_rows(squares: Squares) -> Fit:
    """Gathered in one process; by a QR where the system loses too many digits."""
    found = dual_squares.solve_dual(squares.rows, squares.alphas, squares.intercept)
    if found.error > squares.accuracy:
        return instead(squares, f"they may be off by {found.error:.0e}")
    return Fit(found.coef, found.mean, "dual_cholesky")


def _why_not(outline: Outline, resources: Resources) -> str | None:
    shape = outline.shape
    if why := penalised(outline):
        return why
    if shape.n >= shape.d:
        return f"has more equations, {shape.n}, than there are columns, {shape.d}"
    needed = 4 * 8.0 * shape.n**2 + 2.0 * shape.nonzero * shape.itemsize
    return beyond(needed, resources, "all rows")


def _cost(outline: Outline, resources: Resources, passes: float) -> Cost | str:
    del passes
    return _why_not(outline, resources) or _price(outline.shape, resources)


def _price(shape: Shape, resources: Resources) -> Cost:
    n, remote = shape.n, resources.workers > 1
    products = float(n) ** 2 * shape.d
    if shape.sparse:
        products = SPARSE_PRODUCT * shape.nonzero**2 / shape.d
    last = CHOLESKY_FLOPS * n**3 / 3 + 4.0 * shape.nonzero * shape.columns
    gathered = Cost(network=float(shape.nonzero * shape.itemsize) if remote else 0.0)
    reading = scan(shape, resources, 0.0, times=PANELS)
    return (reading | Cost(flops=products)) + Cost(flops=last) + gathered


DUAL_CHOLESKY = least_squares("dual_cholesky", _cost, by_rows, least=1)
