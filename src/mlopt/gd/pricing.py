"""The shape of a linear model's problem, and what a pass over its rows costs.

Constants are those of `benchmarks/prices.py`, which prints price beside measurement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

from mlopt.costs import Cost
from mlopt.gd.sizes import CACHE
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats

_EFFICIENCY, _PACKING = price("pass.products"), price("pass.packing")
_FUSED, _READ = price("pass.fused"), price("pass.read")
_SPARSE_EFFICIENCY = price("pass.sparse.products")
_SPARSE_PACKING, _SPARSE_ROW = price("pass.sparse.packing"), price("pass.sparse.row")
_BLOCK, _FEWEST_ROWS = price("pass.block"), price("pass.block.rows")
_ROW_READ, _LOSS = price("pass.row"), price("pass.loss")
_SCAN, _HANDED = price("pass.call"), price("pass.handed")
_FACTOR = price("factor.read")
_PAIR = price("gram.pair")
_NARROW = price("gram.narrow")
_ROW = price("gram.row")
PANEL = price("gram.panel")
SYMMETRIC_NARROW = price("gram.symmetric.narrow")


@dataclass(frozen=True)
class Shape:
    """The problem, as far as its cost depends on it.

    Parameters
    ----------
    n, d, columns : int
        Rows, features, columns of weights: 1, or one a class or target.
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
    def value_bytes(self) -> int:
        """Bytes of a stored value, with its index where sparse."""
        return self.itemsize + (4 if self.sparse else 0)

    @property
    def nbytes(self) -> int:
        """Bytes of all stored values."""
        return self.nonzero * self.value_bytes

    @property
    def multiplies_sparse(self) -> bool:
        """Whether values that are stored multiply faster with each other than all d do."""
        most = self.d * (self.d + SYMMETRIC_NARROW + PANEL)
        return self.sparse and sparse_gram_operations(1, self.nonzero / self.n) < most


def shape_of(rows: Rows, columns: int) -> Shape:
    """Of a problem with so many columns of weights on these rows."""
    return Shape(
        n=rows.n, d=rows.d, columns=columns, nonzero=rows.nonzero,
        itemsize=rows.dtype.itemsize, sparse=rows.sparse, blocks=len(rows.lengths),
    )  # fmt: skip


def shape_of_stats(stats: Stats, columns: int | None = None) -> Shape:
    """Of data of which nothing but the size is known, with a column for each output.

    Or with so many ``columns`` of weights: folds, classes and models share a pass.
    """
    sparse, values = stats.sparse, stats.rows * stats.columns
    return Shape(
        n=stats.rows, d=stats.columns, columns=columns or stats.outputs,
        nonzero=round(stats.nonzeros) if sparse else values,
        itemsize=stats.itemsize, sparse=sparse, blocks=stats.partitions,
    )  # fmt: skip


def handing(blocks: int, resources: Resources) -> float:
    """Seconds in Python of a call for each block: none for a single one, or on workers."""
    return _HANDED * blocks if blocks > 1 and not resources.remote else 0.0


def scan(shape: Shape, resources: Resources, reply: float, *, times: int = 1) -> Cost:
    """All rows read once, or ``times`` times, and ``reply`` bytes sent by each worker.

    Whoever looks at all rows pays this: it is one call, and one round trip, of all blocks.
    """
    remote = resources.remote
    return Cost(
        memory=times * shape.nbytes / resources.workers,
        network=reply * math.log2(2 * resources.workers) if remote else 0.0,
        tasks=float(shape.blocks) if remote else 0.0,
        round_trips=1.0 if remote else 0.0,
        python=_SCAN + handing(shape.blocks, resources),
    )


def asked(times: float, resources: Resources) -> Cost:
    """So many questions to workers whose answers take them next to nothing."""
    return Cost(round_trips=times) if resources.remote else Cost()


def gradient_pass(shape: Shape, resources: Resources) -> Cost:
    """Losses of all columns of weights, and their gradients: one pass over all rows.

    X is read once. For each block of rows that fits the cache it takes two products of
    ``2 n d B`` flops, and an element-wise step of ``n B`` losses and slopes, B columns.

    References
    ----------
    Sparks et al., "TuPAQ" (2015), section 3.3.1 (equation 2 and the roofline) and 3.3.2.
    """
    share, vectors = 1.0 / resources.workers, 8.0 * (shape.d + 1) * shape.columns
    read, work = scan(shape, resources, vectors), gradient_work(shape)
    memory = read.memory + share * (work.memory - shape.nbytes)
    flops, flops32 = share * work.flops, share * work.flops32
    return replace(read, memory=memory, flops=flops, flops32=flops32)


def gradient_work(shape: Shape) -> Cost:
    """Arithmetic and memory traffic of a pass, whoever calls for it, and where."""
    columns = shape.columns
    packing = _PACKING if columns > 1 else _FUSED
    if shape.sparse:
        products = 4.0 * shape.nonzero * (columns + _SPARSE_PACKING) / _SPARSE_EFFICIENCY
    else:
        products = 4.0 * shape.nonzero * (columns + packing) / _EFFICIENCY
    rows = _LOSS * columns + (_SPARSE_ROW if shape.sparse else _ROW_READ)
    work = arithmetic(shape, products + rows * shape.n)
    return replace(work, memory=_READ * shape.nbytes + _weights_traffic(shape))


def _weights_traffic(shape: Shape) -> float:
    """Bytes of W read, and of its gradient read and written, when they leave the cache."""
    row = shape.columns * shape.itemsize
    if 2 * shape.d * row <= CACHE:
        return 0.0
    if shape.sparse:  # a row of W and one of the gradient for every entry of X
        return 3.0 * shape.nonzero * row
    rows = max(_FEWEST_ROWS, _BLOCK / (shape.itemsize * (shape.d + shape.columns)))
    return 3.0 * shape.d * row * shape.n / rows


def solving(size: int, columns: int = 1) -> Cost:
    """A right-hand side for each of so many factors, of ``size`` rows: both triangles."""
    return Cost(memory=_FACTOR * 8.0 * columns * size**2)


class _Values(Protocol):
    """Rows, or images, whose values have so many bytes."""

    @property
    def itemsize(self) -> int: ...


def arithmetic(shape: _Values, operations: float) -> Cost:
    """So many operations in the precision of the rows."""
    if shape.itemsize == 4:
        return Cost(flops32=operations)
    return Cost(flops=operations)


def alone(operations: float, resources: Resources, busy: int = 1) -> Cost:
    """So many operations on ``busy`` threads: costs divide by all of them."""
    return Cost(flops=operations * resources.threads / busy)


def read_alone(nbytes: float, resources: Resources) -> Cost:
    """So many bytes that one thread goes through: costs divide by the rate of all."""
    return Cost(
        memory=nbytes * resources.memory_rate(resources.threads) / resources.memory_rate()
    )


def gram_operations(rows: float, d: int) -> float:
    """Of a product of few columns with themselves, weighted, at its speed."""
    return rows * d * (d + _NARROW)


def sparse_gram_operations(rows: float, stored: float) -> float:
    """Operations in whose time sparse rows of so many values are multiplied.

    A row of s values has s (s + 1) / 2 pairs; where s varies as Poisson's counts do, with
    the mean m, these are m (m + 2) / 2 in the mean.
    """
    return rows * (_PAIR * stored * (stored + 2) / 2 + _ROW)


def weighted_gram(shape: Shape, rows: float) -> float:
    """As `gram_operations`, of so many rows, sparse ones value by value."""
    if shape.sparse:
        return sparse_gram_operations(rows, shape.nonzero / shape.n)
    return gram_operations(rows, shape.d)
