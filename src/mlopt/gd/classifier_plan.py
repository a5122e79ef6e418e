"""What training a linear classifier would cost: pure functions of shapes.

How many passes it takes is not known beforehand. The numbers here are what was seen on the
real data of the benchmarks, rounded up; plans say which number they assumed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from mlopt.costs import Cost
from mlopt.gd.newton import LARGEST, hessian_rows, start_rows
from mlopt.gd.sample import WIDEST, left_by_step, sample_size, start_gap
from mlopt.resources import Resources

_PASSES_WITH_HESSIAN, _PASSES_WITH_DIAGONAL, _PASSES_OF_SOFTMAX = 15, 80, 150
_PASSES_OF_NEWTON, _PASSES_WITH_START, _PASSES_OF_SAMPLED_NEWTON = 12, 6, 40
_EPOCHS_WIDE, _EPOCHS_TALL = 200, 1000
# Passes over wide sparse rows to a gap of 1e-3 by a weak penalty; the least that matters.
_PASSES_OF_SPARSE, _WEAK, _NEGLIGIBLE = 85.0, 1e-6, 1e-8
# Second derivative of a logistic loss at the minimum, where classes are not clear at once.
_CURVATURE = 0.1

# Operations of one coordinate step against those of a matrix product.
_STEP_DENSE, _STEP_SPARSE = 20.0, 80.0
# Exponentials and the like, in operations, for a row and a column of weights.
_LOSS = 40.0
_CHOLESKY = 3.0
# A product of two stored values of a sparse row, in operations; and seconds in Python
# beside Hessians or a sample.
_PAIR, _BESIDE = 130.0, 2e-3
# Reading rows for one column of weights, against adding them up; a stored value of a sparse
# row, in operations; vectors of d that a step goes through; and its seconds in Python.
_READ, _SCATTERED, _HISTORY, _STEP = 1.6, 190.0, 150.0, 1.8e-3
# Passes from the solution of a sample at least; and over the sample before Newton's method.
_FIRST_PASSES, _START_PASSES = 2.0, 7.0
# A start: passes over a sample and its Hessians, where it starts on a sample of its own and
# where it does not; passes over all wide rows; how much longer a drawn row takes than one
# that is read in order, and how much slower the products of narrow rows are.
_NESTED, _INNERMOST = (2.5, 2.0), (8.0, 3.5)
_WIDE_START, _DRAW, _NARROW = 2.0, 40.0, 150.0


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
    def hessian_rows(self) -> int:
        """Rows from which Newton's method makes a Hessian."""
        stored = self.nonzero / self.n if self.sparse else None
        return hessian_rows(self.n, self.d, self.columns, stored)

    @property
    def newton_passes(self) -> int:
        """Passes of Newton's method to expect."""
        if self.hessian_rows < self.n:
            return _PASSES_OF_SAMPLED_NEWTON
        return _PASSES_WITH_START if self.newton_start else _PASSES_OF_NEWTON

    @property
    def newton_start(self) -> int:
        """Rows on which Newton's method with exact Hessians starts."""
        exact = self.hessian_rows >= self.n
        return start_rows(self.n, self.d, self.columns) if exact else 0

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
    """A start on a sample, with Hessians where d is moderate; passes over all rows."""
    passes = shape.passes if passes is None else passes
    return _start(shape, resources) + passes * pass_cost(shape, resources)


def newton_cost(
    shape: Shape, resources: Resources, passes: float | None = None
) -> Cost | str:
    """Few passes over all rows, and Hessians of all columns together."""
    size = shape.columns * (shape.d + 1)
    if size > LARGEST:
        return f"a Hessian of {size} x {size} is beyond {LARGEST}"
    rows = shape.hessian_rows
    # Drawn rows are held twice while they are joined; all rows are where they are.
    needed = 2.0 * rows * shape.d * shape.itemsize if rows < shape.n else 0.0
    most = resources.memory / resources.workers / 4
    if needed > most:
        return f"needs {needed / 2**30:.3g} of {most / 2**30:.3g} GiB for a sample"
    passes = shape.newton_passes if passes is None else passes
    renewals = passes if rows == shape.n else math.ceil(math.log2(max(passes, 2)))
    products = 2 * _gram(rows, size)
    if shape.sparse and shape.columns == 1:
        products = _PAIR * rows * (shape.nonzero / shape.n) ** 2 / 2
    hessian = Cost(flops=products / resources.workers) + Cost(python=_BESIDE)
    factor = Cost(flops=_CHOLESKY * resources.threads * size**3 / 3)
    each = pass_cost(shape, resources)
    share = shape.newton_start / shape.n
    # The rows of a start are few, its calls are not.
    calls = Cost(python=(1.0 - share) * (_STEP + _BESIDE)) if share else Cost()
    start = _START_PASSES * (share * (each + hessian) + calls)
    return start + passes * each + renewals * (hessian + factor)


def pass_cost(shape: Shape, resources: Resources) -> Cost:
    """One pass over all rows, objective and gradient, and what a step costs beside it."""
    share, remote = 1.0 / resources.workers, resources.workers > 1
    vector = 8.0 * (shape.d + 1) * shape.columns
    scan = Cost(
        memory=share * _READ * shape.nonzero * shape.value_bytes,
        network=vector if remote else 0.0,
        tasks=float(shape.blocks) if remote else 0.0,
        round_trips=1.0 if remote else 0.0,
    )
    price = _SCATTERED if shape.sparse else 4.0
    products = price * shape.nonzero * shape.columns + _LOSS * shape.n * shape.columns
    vectors = Cost(memory=_HISTORY * vector, python=_STEP)
    return (scan | _arithmetic(shape, share * products)) + vectors


def _start(shape: Shape, resources: Resources) -> Cost:
    if shape.d >= WIDEST:
        return _WIDE_START * pass_cost(shape, resources)
    rows = sample_size(shape.n, shape.d, shape.columns)
    squares = pass_cost(shape, resources)  # of all columns
    hessian = _gram(rows, shape.d) + 2.0 * shape.d**3 / 3
    if rows == shape.n:
        return squares + _arithmetic(shape, _INNERMOST[1] * hessian)
    share = rows / shape.n
    sample = replace(shape, n=rows, nonzero=math.ceil(share * shape.nonzero), blocks=1)
    drawn = Cost(memory=_DRAW * sample.nonzero * shape.value_bytes, python=_BESIDE)
    nested = sample_size(rows, shape.d, shape.columns) < rows
    passes, renewals = _NESTED if nested else _INNERMOST
    here = replace(resources, workers=1)  # where a sample is held
    trained = passes * pass_cost(sample, here) + _arithmetic(shape, renewals * hessian)
    before = _start(sample, here) if nested else Cost()
    return squares + drawn + before + trained


def looseness(shape: Shape, l2: float) -> float:
    """How many times the gap its bound is, ``||g||^2 / (2 l2)``, a sample's noise away.

    The mean eigenvalue of the Hessian over the penalty: about `_CURVATURE` times the mean
    square of a value. 1 without a penalty, where there is no bound.
    """
    density = shape.nonzero / (shape.n * shape.d)
    return max(_CURVATURE * density / l2, 1.0) if l2 > 0 else 1.0


def passes_after_sample(shape: Shape, tolerance: float, l2: float = 0.0) -> float | None:
    """Passes of a quasi-Newton method that has the solution and the Hessian of a sample.

    Parameters
    ----------
    shape : Shape
    tolerance : float
        Of the gap, relative to the minimum.
    l2 : float, default=0.0
        The penalty that bounds the gap; 0 where the gap is estimated.

    Returns
    -------
    float or None
        None where there is no such start, or the sample has all rows.
    """
    rows = sample_size(shape.n, shape.d, shape.columns)
    if shape.d >= WIDEST or rows >= shape.n:
        return None
    parameters = (shape.d + 1) * shape.columns
    digits = math.log(start_gap(parameters, rows) * looseness(shape, l2) / tolerance)
    share = left_by_step(parameters, rows, shape.sparse)
    return _FIRST_PASSES + max(0.0, digits / -math.log(share))


def passes_of_sparse(shape: Shape, l2: float, tolerance: float) -> float | None:
    """Passes of L-BFGS for logistic losses: the fewer, the larger the penalty.

    Columns that few rows have are held by the penalty alone, and need no passes. As seen
    on words, penalties from 1e-6 to 1e-4 and two to six digits.

    Returns
    -------
    float or None
        None where rows are not sparse and wide.
    """
    if not shape.sparse or shape.d < WIDEST or shape.columns > 1:
        return None
    held = (_WEAK / max(l2, _NEGLIGIBLE)) ** 0.3
    return float(_PASSES_OF_SPARSE * held * (0.16 - 0.28 * math.log10(tolerance)))


def newton_passes_after_sample(
    shape: Shape, tolerance: float, l2: float = 0.0
) -> float | None:
    """Passes of Newton's method with exact Hessians from the solution of a sample.

    The start is as near as in `passes_after_sample`; each step squares the gap.
    """
    if not shape.newton_start:
        return None
    parameters = (shape.d + 1) * shape.columns
    gap = min(start_gap(parameters, shape.newton_start), 0.5)
    wanted = tolerance / looseness(shape, l2)
    steps = math.log2(max(math.log(wanted) / math.log(gap), 1.0))
    return 1.0 + math.ceil(steps)


def _gram(rows: int, d: int) -> float:
    """Operations of a product of few columns with themselves, weighted, at its speed."""
    return (1.0 + _NARROW / d) * rows * d**2


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
