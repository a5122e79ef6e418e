"""What block least squares costs, by what is kept: pure functions of shapes.

KeystoneML, Table I, "Block solve": ``i n d (b + k)`` operations and ``n b + d k`` values of
memory; here with the price of generating features, and of doing that twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mlopt.costs import Cost
from mlopt.gd.pricing import Shape, arithmetic, scan
from mlopt.pipeline.library.choosing import choose
from mlopt.pipeline.library.learning.block_descent import Keeping
from mlopt.pipeline.library.learning.feature_blocks import PANEL_BYTES
from mlopt.plan import Choice, format_bytes
from mlopt.prices import count, price
from mlopt.resources import Resources

WAYS: dict[str, Keeping] = {
    "keep features and factors": Keeping(features=True, factors=True),
    "keep factors": Keeping(features=False, factors=True),
    "keep features": Keeping(features=True, factors=False),
    "keep nothing": Keeping(features=False, factors=False),
}

_SYMMETRIC = price("block.symmetric")
_NARROW = price("block.narrow")
_CHOLESKY = price("block.cholesky")
_TRAVELS = count("block.travels")


@dataclass(frozen=True)
class Work:
    """The problem, as far as its cost depends on it.

    Parameters
    ----------
    rows : Shape
        X, with k outputs.
    features, size : int
        Features D, and columns b of a block.
    per_value : float
        Operations that take as long as one feature of one row.
    passes : int
        Sweeps.
    """

    rows: Shape
    features: int
    size: int
    per_value: float
    passes: int

    @property
    def blocks(self) -> int:
        """Blocks of columns."""
        return math.ceil(self.features / self.size)


def choose_keeping(
    operator: str, work: Work, resources: Resources, budget: int
) -> tuple[Keeping, Choice]:
    """The cheapest of what fits the budget; nothing is kept where nothing fits.

    Parameters
    ----------
    operator : str
        As plans show it.
    work : Work
    resources : Resources
    budget : int
        Bytes, in all workers together.
    """
    options = costs(work, resources, budget)
    choice = choose(operator, "auto", options, resources)
    return WAYS[choice.chosen], choice


def costs(work: Work, resources: Resources, budget: int) -> dict[str, Cost | str]:
    """Of each way to keep things, or why there is no room for it."""
    options: dict[str, Cost | str] = {}
    for name, keeping in WAYS.items():
        needed = kept_bytes(work, keeping)
        if keeping.factors and work.passes == 1:
            options[name] = "one sweep needs every factor once"
        elif needed > budget:
            options[name] = f"needs {format_bytes(needed)} of {format_bytes(budget)}"
        else:
            options[name] = cost(work, keeping, resources)
    return options


def kept_bytes(work: Work, keeping: Keeping) -> int:
    """Bytes that are kept beside X, its residual and the sums of one block."""
    item, size = work.rows.itemsize, min(work.size, work.features)
    features = work.rows.n * size * item if keeping.features else 0
    factors = work.features * size * item if keeping.factors else 0
    return features + factors


def working_bytes(work: Work, resources: Resources) -> int:
    """Bytes of partial sums and panels at the same time, in one process."""
    item, size = work.rows.itemsize, min(work.size, work.features)
    # One sum and one product a thread, two on their way up the tree, one being factored.
    matrices = 2 * resources.threads + 3
    return item * size**2 * matrices + 2 * resources.threads * PANEL_BYTES


def cost(work: Work, keeping: Keeping, resources: Resources) -> Cost:
    """All sweeps."""
    first = _sweep(work, keeping, resources, grams=True)
    later = _sweep(work, keeping, resources, grams=not keeping.factors)
    return first + (work.passes - 1) * later


def _sweep(work: Work, keeping: Keeping, resources: Resources, *, grams: bool) -> Cost:
    rows, share = work.rows, 1.0 / resources.workers
    size, D = min(work.size, work.features), work.features
    values = share * rows.n * D
    made = arithmetic(rows, values * work.per_value)
    products = arithmetic(rows, 2 * values * 2.0 * rows.columns * _NARROW)
    moved = Cost(memory=_TRAVELS * values * rows.itemsize)
    reading = work.blocks * 2 * scan(rows, resources, rows.itemsize * float(size**2))
    total = made + products + moved + reading
    if not keeping.features:
        total = total + made
    return total + _factoring(work, resources, size) if grams else total


def _factoring(work: Work, resources: Resources, size: int) -> Cost:
    rows, D, share = work.rows, work.features, 1.0 / resources.workers
    product = arithmetic(rows, _SYMMETRIC * share * rows.n * float(D) * size)
    sums = Cost(memory=4.0 * rows.itemsize * share * rows.blocks * float(D) * size)
    # Factors are made here, on one thread: a cost is what all threads share.
    alone = _CHOLESKY * resources.threads
    factor = arithmetic(rows, alone * D * float(size) ** 2 / 3)
    scaled = Cost(memory=8.0 * rows.itemsize * D * size)
    return product + sums + factor + scaled
