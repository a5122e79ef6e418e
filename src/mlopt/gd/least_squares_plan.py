"""What each way of solving least squares would cost: pure functions of shapes.

KeystoneML, Table I, gives operations of the exact solver as n d (d + k) and of an iterative
one as i n s k; here with the prices of today's libraries, measured against BLAS.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import scipy.sparse as sp

from mlopt.costs import Cost
from mlopt.gd.choosing import calibrated, choose
from mlopt.gd.least_squares_shape import PANEL, Shape, fused_pass, gram, scan
from mlopt.gd.preconditioned_plan import (
    block_cost,
    mixed_cost,
    sketched_cost,
    why_not,
)
from mlopt.plan import Choice
from mlopt.resources import Resources

__all__ = ["Shape", "block_rows", "choose_solver", "solver_cost", "solver_costs"]

# How many times slower than a matrix product, operation for operation.
_SPARSE_PRODUCT, _SPARSE_STEP = 900.0, 16.0
_SPARSE_ROW = 1.5e4  # of a row, whatever it stores
_CHOLESKY, _EIGENVALUES, _SVD = 6.0, 5.0, 10.0
# Rows are checked for NaN, read, and written to a panel, which is read again.
_PANELS = 4


def _normal_equations(shape: Shape, resources: Resources) -> Cost:
    d = shape.d
    spectrum = _EIGENVALUES * 4 / 3 * d**3 if shape.ranked else 0.0
    last = Cost(flops=_CHOLESKY * d**3 / 3 + spectrum + 2.0 * d**2 * shape.outputs)
    return gram_cost(shape, resources) + last


def gram_cost(shape: Shape, resources: Resources) -> Cost:
    """The Gram matrix of ``[1 | X | y]``: one pass, and adding up those of blocks."""
    m, share = shape.columns, 1.0 / resources.workers
    if not shape.multiplies_sparse:
        return gram(shape, resources, m)
    pairs = _SPARSE_PRODUCT * shape.nonzero**2 / shape.n + _SPARSE_ROW * shape.n
    products = Cost(flops=share * pairs)
    sums = Cost(memory=3 * 8.0 * share * shape.blocks * m**2)
    reading = scan(shape, resources, 8.0 * m**2, times=_PANELS)
    return (reading | products) + sums


def _tall_skinny_qr(shape: Shape, resources: Resources) -> Cost:
    least = min(shape.n, shape.columns)
    last = Cost(flops=_SVD * 4.0 * least**2 * shape.columns)
    return triangle_cost(shape, resources) + last


def triangle_cost(shape: Shape, resources: Resources) -> Cost:
    """The triangle of a QR of ``[1 | X | y]``: one pass."""
    m, share = shape.columns, 1.0 / resources.workers
    reading = scan(shape, resources, 8.0 * min(shape.n, m) * m, times=_PANELS)
    panels = Cost(flops=PANEL * share * shape.n * m)
    return replace(reading, flops=share * qr_flops(shape.n, m)) + panels


def qr_flops(n: int, m: int) -> float:
    """Operations of a matrix product that take as long as the QR of a matrix (n, m)."""
    least = min(n, m)
    # The narrower the panel, the less of a QR is a matrix product.
    return (4.0 + 500.0 / least) * 2.0 * n * m * least


def _conjugate_gradients(shape: Shape, resources: Resources) -> Cost:
    steps = shape.iterations + 1
    if not shape.sparse:
        return steps * fused_pass(shape, resources)
    reply = 8.0 * (shape.d + 1) * shape.outputs
    share = 1.0 / resources.workers
    products = Cost(flops=_SPARSE_STEP * share * 4.0 * shape.nonzero * shape.outputs)
    step = scan(shape, resources, reply) | products
    # Each step also goes through a few vectors.
    return steps * (step + Cost(memory=10 * reply))


def _no_room(shape: Shape, resources: Resources) -> str | None:
    """Why matrices of d x d do not fit, if they do not."""
    most = resources.memory / resources.workers / 2
    # One partial result a thread, and two on their way up the tree.
    needed = 8.0 * shape.columns**2 * (resources.threads + 2)
    if needed <= most:
        return None
    return f"needs {needed / 2**30:.3g} of {most / 2**30:.3g} GiB for matrices of d x d"


def _cholesky(shape: Shape, resources: Resources) -> Cost | str:
    return _no_room(shape, resources) or _normal_equations(shape, resources)


def _svd(shape: Shape, resources: Resources) -> Cost | str:
    full = _no_room(shape, resources) if shape.n >= shape.d else None
    return full or _tall_skinny_qr(shape, resources)


def _rows(shape: Shape, resources: Resources) -> Cost | str:
    """The system of the rows, gathered in one process."""
    n, d = shape.n, shape.d
    if why := why_not("dual_cholesky", shape):
        return why
    most = resources.memory / resources.workers / 2
    needed = 4 * 8.0 * n**2 + 2.0 * shape.nonzero * shape.itemsize
    if needed > most:
        return f"needs {needed / 2**30:.3g} of {most / 2**30:.3g} GiB for all rows"
    products = float(n) ** 2 * d
    if shape.sparse:
        products = _SPARSE_PRODUCT * shape.nonzero**2 / d
    last = _CHOLESKY * n**3 / 3 + 4.0 * shape.nonzero * shape.outputs
    remote = resources.workers > 1
    gathered = Cost(network=float(shape.nonzero * shape.itemsize) if remote else 0.0)
    reading = scan(shape, resources, 0.0, times=_PANELS)
    return (reading | Cost(flops=products)) + Cost(flops=last) + gathered


_LOOSE = "for dense rows by name only: it stops at a gradient, short of full accuracy"

OPERATOR = "Ridge"
"""What calibrations call these solvers."""

_COSTS: dict[str, Callable[[Shape, Resources], Cost | str]] = {
    "cholesky": _cholesky,
    "svd": _svd,
    "sparse_cg": _conjugate_gradients,
    "sketched_cg": sketched_cost,
    "mixed_cholesky": mixed_cost,
    "block": block_cost,
    "dual_cholesky": _rows,
}


def solver_costs(shape: Shape, resources: Resources) -> dict[str, Cost | str]:
    """Cost of each solver by name, or why it cannot be used."""
    return {name: solver_cost(name, shape, resources) for name in _COSTS}


def solver_cost(name: str, shape: Shape, resources: Resources) -> Cost | str:
    """Cost of one solver, or why it cannot be used."""
    options = {name: _COSTS[name](shape, resources)}
    return calibrated(OPERATOR, options, resources)[name]


def choose_solver(operator: str, wanted: str, shape: Shape, resources: Resources) -> Choice:
    """The cheapest solver that is exact enough, or ``wanted`` unless that is "auto".

    Raises
    ------
    InputError
        When ``wanted`` cannot be used here, or nothing can.
    """
    options = solver_costs(shape, resources)
    others = [name for name, cost in options.items() if isinstance(cost, Cost)]
    if wanted == "auto" and not shape.sparse and others != ["sparse_cg"]:
        options["sparse_cg"] = _LOOSE
    return choose(operator, wanted, options, resources)


def block_rows(X: Any) -> int | None:
    """Rows of a block of dense data in memory with many columns; None for the default.

    Every block makes a matrix of d x d: with fewer than about 2 d rows, adding these up
    would take longer than making them. But eight blocks must be left to share.
    """
    if sp.issparse(X) or X.shape[1] < 512:
        return None
    n, d = X.shape
    return int(max(2**20 // d, min(2 * d, n // 8), math.ceil(n / 64)))
