"""The shape of a least-squares problem, and what one look at all of its rows costs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mlopt.costs import Cost
from mlopt.gd.pricing import handing
from mlopt.resources import Resources

# Operations that would take as long as preparing a value of a panel: 0.9 ns.
PANEL = 45.0
# How much slower a symmetric product of m columns is than a large matrix product:
# 1.18 of the time at m = 200 and 1.55 at m = 50; in float32 1.34 and 1.75.
_SYMMETRIC, _SYMMETRIC32, _NARROW = 1.03, 1.1, 30.0
_PASS, _TARGET = 12.0, 8.0
"""Operations in whose time a value goes through the fused pass: by itself, and with each
target."""
_SCAN = 4e-4
"""Seconds in Python of a look at all rows."""
_CALL = 2e-5
"""Seconds of a call of the fused pass on a block."""


@dataclass(frozen=True)
class Shape:
    """The least-squares problem, as far as its cost depends on it.

    Parameters
    ----------
    n, d, outputs : int
        Rows, features, targets.
    nonzero : int
        Stored values; ``n * d`` when dense.
    itemsize : int
        Bytes of a value.
    sparse, multiplies_sparse : bool
        Whether rows are CSR, and whether their Gram matrix is a sparse product.
    blocks : int
        Blocks of rows.
    tol : float
        Relative gradient at which an iterative solver stops.
    ranked : bool
        Whether singular values are wanted too.
    accuracy : float, default=1e-8
        Relative error of the coefficients that is acceptable.
    gap : float, default=0.0
        Of the objective, relative to its minimum, at which iterative solvers stop, too.
    rank : int, optional
        Of a sketch, where it is known what rows ask for.
    steps : int, optional
        Steps of an iterative solver, where they are known: of a run that has ended.
    """

    n: int
    d: int
    outputs: int
    nonzero: int
    itemsize: int
    sparse: bool
    multiplies_sparse: bool
    blocks: int
    tol: float
    ranked: bool
    accuracy: float = 1e-8
    gap: float = 0.0
    rank: int | None = None
    steps: int | None = None

    @property
    def columns(self) -> int:
        """Columns of ``[1 | X | y]``."""
        return 1 + self.d + self.outputs

    @property
    def iterations(self) -> int:
        """Conjugate-gradient steps to expect, at most the rank.

        Eight a digit were seen with the correlated columns of dense data. With columns of
        one scale and no correlation, singular values lie within ``sqrt(n) +- sqrt(d)``
        (Marchenko, Pastur, 1967), so that each step gains a factor ``sqrt(n / d)``: sparse
        columns are close to that, and their correlations cost half as many steps more.
        """
        digits, each = -math.log10(min(max(self.tol, 1e-16), 0.1)), 8.0
        if self.sparse and self.n > self.d:
            each = min(each, 1.5 * 2.0 / math.log10(self.n / self.d))
        return self.known(max(1, min(math.ceil(each * digits), self.n, self.d)))

    def known(self, expected: int) -> int:
        """The steps, where they are known; else as many as are expected."""
        return expected if self.steps is None else self.steps


def scan(shape: Shape, resources: Resources, reply: float, *, times: int = 1) -> Cost:
    """Reading all rows ``times`` times, and sending ``reply`` bytes for each worker."""
    width = shape.itemsize + (4 if shape.sparse else 0)
    share = 1.0 / resources.workers
    remote = resources.workers > 1
    return Cost(
        memory=times * share * shape.nonzero * width,
        network=reply * math.log2(2 * resources.workers) if remote else 0.0,
        tasks=float(shape.blocks) if remote else 0.0,
        round_trips=1.0 if remote else 0.0,
        python=_SCAN + handing(shape.blocks, resources),
    )


def fused_pass(shape: Shape, resources: Resources) -> Cost:
    """``X' (X w)`` of dense rows for each target, each row read once."""
    reply, share = 8.0 * (shape.d + 1) * shape.outputs, 1.0 / resources.workers
    product = Cost(flops=(_PASS + _TARGET * shape.outputs) * share * shape.nonzero)
    calls = Cost(memory=10 * reply, python=_CALL * share * shape.blocks)
    # The old rows' gradient is added while new ones come, but waits for cache as well.
    return scan(shape, resources, reply) + product + calls


def gram(shape: Shape, resources: Resources, columns: int, *, single: bool = False) -> Cost:
    """Checking all rows, and Gram matrices of ``columns`` of them, panel by panel."""
    share = 1.0 / resources.workers
    width = 4.0 if single else 8.0
    price = (_SYMMETRIC32 if single else _SYMMETRIC) + _NARROW / columns
    products = price * share * shape.n * float(columns) * shape.columns
    reading = scan(shape, resources, width * columns**2)
    values = share * shape.n * shape.columns
    prepared = Cost(memory=reading.memory, flops=PANEL * values)
    # Every block makes a matrix, which is read and added to another one.
    sums = Cost(memory=3 * width * share * shape.blocks * columns * shape.columns)
    product = Cost(flops32=products) if single else Cost(flops=products)
    return reading + prepared + product + sums
