"""What training a linear classifier would cost: pure functions of shapes.

How many passes it takes is not known beforehand. The numbers here are what was seen on the
real data of the benchmarks, rounded up; plans say which number they assumed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mlopt.costs import Cost
from mlopt.gd.newton import LARGEST, hessian_rows
from mlopt.gd.sample import WIDEST, sample_size
from mlopt.resources import Resources

_PASSES_WITH_HESSIAN, _PASSES_WITH_DIAGONAL, _PASSES_OF_SOFTMAX = 15, 80, 150
_PASSES_OF_NEWTON, _PASSES_OF_SAMPLED_NEWTON = 12, 40
_EPOCHS_WIDE, _EPOCHS_TALL = 200, 1000

# Operations of one coordinate step against those of a matrix product.
_STEP_DENSE, _STEP_SPARSE = 20.0, 80.0
# Exponentials and the like, in operations, for a row and a column of weights.
_LOSS = 40.0
_CHOLESKY = 3.0


@dataclass(frozen=True)
class Shape:
    """The problem, as far as its cost depends on it.

    Parameters
    ----------
    n, d, columns : int
        Rows, features, columns of weights: 1, or one a class.
    nonzero : int
        Stored values; ``n * d`` when dense.
    itemsize : int
        Bytes of a value.
    sparse : bool
    blocks : int
        Blocks of rows.
    """

    n: int
    d: int
    columns: int
    nonzero: int
    itemsize: int
    sparse: bool
    blocks: int

    @property
    def passes(self) -> int:
        """Passes of a quasi-Newton method to expect."""
        if self.columns > 1:
            return _PASSES_OF_SOFTMAX
        return _PASSES_WITH_HESSIAN if self.d < WIDEST else _PASSES_WITH_DIAGONAL

    @property
    def newton_passes(self) -> int:
        """Passes of Newton's method to expect."""
        sampled = hessian_rows(self.n, self.d, self.columns) < self.n
        return _PASSES_OF_SAMPLED_NEWTON if sampled else _PASSES_OF_NEWTON

    @property
    def epochs(self) -> int:
        """Epochs of dual coordinate descent: it suits rows that have little in common."""
        return _EPOCHS_WIDE if self.d >= self.n else _EPOCHS_TALL

    @property
    def value_bytes(self) -> int:
        """Bytes of a stored value, with its index where sparse."""
        return self.itemsize + (4 if self.sparse else 0)


def quasi_newton_cost(
    shape: Shape, resources: Resources, passes: float | None = None
) -> Cost:
    """Passes over all rows, and Hessians of a sample where d is moderate."""
    passes = shape.passes if passes is None else passes
    return passes * pass_cost(shape, resources) + _hessians(shape)


def newton_cost(
    shape: Shape, resources: Resources, passes: float | None = None
) -> Cost | str:
    """Few passes over all rows, and Hessians of all columns together."""
    size = shape.columns * (shape.d + 1)
    if size > LARGEST:
        return f"a Hessian of {size} x {size} is beyond {LARGEST}"
    rows = hessian_rows(shape.n, shape.d, shape.columns)
    passes = shape.newton_passes if passes is None else passes
    renewals = passes if rows == shape.n else math.ceil(math.log2(max(passes, 2)))
    hessian = Cost(flops=2.0 * rows * size**2 / resources.workers)
    factor = Cost(flops=_CHOLESKY * resources.threads * size**3 / 3)
    return passes * pass_cost(shape, resources) + renewals * (hessian + factor)


def pass_cost(shape: Shape, resources: Resources) -> Cost:
    """One pass over all rows: objective and gradient."""
    share, remote = 1.0 / resources.workers, resources.workers > 1
    scan = Cost(
        memory=share * shape.nonzero * shape.value_bytes,
        network=8.0 * (shape.d + 1) * shape.columns if remote else 0.0,
        tasks=float(shape.blocks) if remote else 0.0,
        round_trips=1.0 if remote else 0.0,
        fixed=1e-3,
    )
    products = 4.0 * shape.nonzero * shape.columns + _LOSS * shape.n * shape.columns
    return scan | _arithmetic(shape, share * products)


def _hessians(shape: Shape) -> Cost:
    if shape.d >= WIDEST:
        return Cost()
    rows = sample_size(shape.n, shape.d, shape.columns)
    made = 2 * (1.0 * rows * shape.d**2 + 2.0 * shape.d**3 / 3)
    return _arithmetic(shape, made)


def _arithmetic(shape: Shape, operations: float) -> Cost:
    if shape.itemsize == 4:
        return Cost(flops32=operations)
    return Cost(flops=operations)


def dual_cost(shape: Shape, resources: Resources, epochs: float | None = None) -> Cost:
    """Epochs of single steps: each problem on one thread, problems in parallel."""
    busy = min(resources.threads, shape.columns)
    price = _STEP_SPARSE if shape.sparse else _STEP_DENSE
    steps = price * (epochs or shape.epochs) * 4.0 * shape.nonzero * shape.columns
    gathered = shape.nonzero * shape.value_bytes if resources.workers > 1 else 0.0
    # Costs divide by all threads; these steps use only the busy ones.
    return Cost(flops=steps * resources.threads / busy) + Cost(network=float(gathered))
