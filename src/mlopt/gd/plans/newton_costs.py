"""What Newton's method takes: rows of its Hessians and of its start, passes, seconds."""

from __future__ import annotations

import math

from mlopt.costs import Cost
from mlopt.gd.pricing import (
    Shape,
    alone,
    asked,
    gradient_pass,
    gram_operations,
    solving,
    weighted_gram,
)
from mlopt.gd.row_products import beyond, no_room
from mlopt.gd.sample import KINKED, hessian_rows, start_rows
from mlopt.prices import price
from mlopt.resources import Resources

_PASSES = price("newton.passes")
_PASSES_WITH_START = price("newton.passes.start")
_PASSES_OF_SAMPLED = price("newton.passes.sampled")
_CHOLESKY = price("newton.cholesky")
_STEP = price("newton.step")
_BESIDE = price("newton.beside")
_ROW, _VALUE, _SUMS = price("newton.row"), price("newton.value"), price("newton.sums")
_CURVED = price("newton.curved")
_START_PASSES = price("newton.start")


def rows_of_hessian(shape: Shape, loss: str = "") -> int:
    """Rows from which it makes a Hessian."""
    stored = shape.nonzero / shape.n if shape.sparse else None
    return hessian_rows(shape.n, shape.d, shape.columns, stored, loss=loss)


def rows_of_start(shape: Shape, loss: str = "") -> int:
    """Rows on which it starts, where Hessians are exact."""
    exact = rows_of_hessian(shape, loss) >= shape.n
    return start_rows(shape.n, shape.d, shape.columns) if exact else 0


def passes(shape: Shape) -> float:
    """To expect, where nothing is known of the data but their shape."""
    if rows_of_hessian(shape) < shape.n:
        return _PASSES_OF_SAMPLED
    return _PASSES_WITH_START if rows_of_start(shape) else _PASSES


def renewals(shape: Shape, passes: float, loss: str) -> float:
    """Hessians in so many passes: one in each, or of a sample after 1, 2, 4, 8 of them.

    Of a squared hinge all rows count once few of them are curved: in each pass.
    """
    if rows_of_hessian(shape, loss) == shape.n or loss == KINKED:
        return passes
    return math.ceil(math.log2(max(passes, 2)))


def hessian_work(shape: Shape, resources: Resources, rows: int, loss: str) -> Cost:
    """Arithmetic and memory traffic of a Hessian of so many rows, whoever calls for it."""
    curved = math.ceil(_CURVED * rows) if loss == KINKED else rows
    size = shape.columns * (shape.d + 1)
    if shape.sparse and shape.columns == 1:
        products = weighted_gram(shape, curved)
    else:
        products = gram_operations(curved, size) + _VALUE * curved * size
        if shape.columns > 1:  # what each class adds to its own corner
            products += shape.columns * gram_operations(curved, shape.d + 1)
    products += _ROW * rows * shape.columns  # margins again, and their curvatures
    sums = _SUMS * 8.0 * size**2 * math.ceil(shape.blocks * rows / shape.n)
    made = Cost(flops=products / resources.workers)
    sent = 8.0 * size**2 * resources.workers if resources.remote else 0.0
    return made + Cost(memory=sums / resources.workers) + Cost(network=sent)


def factor_work(shape: Shape, resources: Resources) -> Cost:
    """Arithmetic of the factor of a Hessian, on one thread."""
    return alone(_CHOLESKY * (shape.columns * (shape.d + 1)) ** 3 / 3, resources)


def cost(shape: Shape, resources: Resources, passes: float, loss: str = "") -> Cost | str:
    """So many passes, or why it cannot be used."""
    size = shape.columns * (shape.d + 1)
    if why := no_room(size, shape, resources):
        return why
    rows = rows_of_hessian(shape, loss)
    # Drawn rows are held twice while they are joined, and may take half of what others
    # may; all rows are where they are.
    needed = 4.0 * rows * shape.d * shape.itemsize if rows < shape.n else 0.0
    if why := beyond(needed, resources, "a sample"):
        return why
    hessian = hessian_work(shape, resources, rows, loss) + Cost(python=_BESIDE)
    factor = factor_work(shape, resources)
    each = gradient_pass(shape, resources) + solving(size) + Cost(python=_STEP)
    share = rows_of_start(shape, loss) / shape.n
    # The rows of a start are few, its calls are not.
    calls = Cost(python=(1.0 - share) * (_STEP + _BESIDE)) if share else Cost()
    start = _START_PASSES * (share * (each + hessian) + calls)
    start += asked(2.0 * bool(share), resources)  # for the rows and what is beside them
    made = renewals(shape, passes, loss) * (hessian + factor)
    drawn = gradient_pass(shape, resources) if rows < shape.n else Cost()  # moments
    return drawn + start + passes * each + made
