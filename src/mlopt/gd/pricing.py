"""The shape of a linear model's problem, and what a pass over its rows costs.

Constants are those of `benchmarks/prices.py`, which prints price beside measurement.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlopt.costs import Cost
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats

_LOSS = price("pass.loss")
_SCATTERED = price("pass.scattered")
_READ = price("pass.read")
_HISTORY = price("pass.history")
_HANDED = price("pass.handed")
_PAIR = price("gram.pair")
_NARROW = price("gram.narrow")
_SPARSE_PRICE = price("gram.sparse-product")


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
        """Whether the rows' Gram matrix is a sparse product."""
        return self.sparse and sparse_product_pays(self.nonzero / self.n, self.d)


def shape_of(rows: Rows, columns: int) -> Shape:
    """Of a problem with so many columns of weights on these rows."""
    return Shape(
        n=rows.n, d=rows.d, columns=columns, nonzero=rows.nonzero,
        itemsize=rows.dtype.itemsize, sparse=rows.sparse, blocks=len(rows.lengths),
    )  # fmt: skip


def shape_of_stats(stats: Stats) -> Shape:
    """Of data of which nothing but the size is known, with a column for each output."""
    sparse, values = stats.sparse, stats.rows * stats.columns
    return Shape(
        n=stats.rows, d=stats.columns, columns=stats.outputs,
        nonzero=round(stats.nonzeros) if sparse else values,
        itemsize=stats.itemsize, sparse=sparse, blocks=stats.partitions,
    )  # fmt: skip


def sparse_product_pays(stored: float, d: int) -> bool:
    """Whether ``stored`` values of a row multiply faster with each other than all d do."""
    return _SPARSE_PRICE * stored**2 < d**2


def handing(blocks: int, resources: Resources) -> float:
    """Seconds in Python of a call for each block: none for a single one, or on workers."""
    return _HANDED * blocks if blocks > 1 and resources.workers == 1 else 0.0


def pass_cost(shape: Shape, resources: Resources, step: float) -> Cost:
    """One pass over all rows, objective and gradient, and what a step costs beside it.

    Parameters
    ----------
    shape : Shape
    resources : Resources
    step : float
        Seconds in Python that a method takes between two passes.
    """
    share, remote = 1.0 / resources.workers, resources.workers > 1
    vector = 8.0 * (shape.d + 1) * shape.columns
    scan = Cost(
        memory=share * _READ * shape.nbytes,
        network=vector if remote else 0.0,
        tasks=float(shape.blocks) if remote else 0.0,
        round_trips=1.0 if remote else 0.0,
    )
    price = _SCATTERED if shape.sparse else 4.0
    products = price * shape.nonzero * shape.columns + _LOSS * shape.n * shape.columns
    calls = step + handing(shape.blocks, resources)
    vectors = Cost(memory=_HISTORY * vector, python=calls)
    return (scan | arithmetic(shape, share * products)) + vectors


def arithmetic(shape: Shape, operations: float) -> Cost:
    """So many operations in the precision of the rows."""
    if shape.itemsize == 4:
        return Cost(flops32=operations)
    return Cost(flops=operations)


def alone(operations: float, resources: Resources, busy: int = 1) -> Cost:
    """So many operations on ``busy`` threads: costs divide by all of them."""
    return Cost(flops=operations * resources.threads / busy)


def gram_operations(rows: float, d: int) -> float:
    """Of a product of few columns with themselves, weighted, at its speed."""
    return (1.0 + _NARROW / d) * rows * d**2


def weighted_gram(shape: Shape, rows: float) -> float:
    """As `gram_operations`, of so many rows, sparse ones value by value."""
    dense = gram_operations(rows, shape.d)
    if not shape.sparse:
        return dense
    return min(dense, _PAIR * rows * (shape.nonzero / shape.n) ** 2 / 4)
