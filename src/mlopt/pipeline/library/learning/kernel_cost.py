"""What kernel ridge regression by blocks costs: a pure function of shapes."""

from __future__ import annotations

from mlopt.costs import Cost
from mlopt.gd.pricing import Shape
from mlopt.prices import price
from mlopt.resources import Resources

KEPT, MADE = "keep the kernel", "make columns anew"

_EXPONENTIAL = price("kernel.exponential")


def kernel_costs(
    rows: Shape, size: int, passes: int, resources: Resources
) -> dict[str, Cost]:
    """Of all sweeps, with the kernel kept and with its columns made anew.

    Parameters
    ----------
    rows : Shape
        X, with k outputs.
    size : int
        Columns of a block.
    passes : int
        Sweeps.
    resources : Resources
    """
    n, share = float(rows.n), 1.0 / resources.workers
    size = min(size, rows.n)
    stored = rows.nonzero / n

    def flops(count: float) -> Cost:
        return Cost(flops32=count) if rows.itemsize == 4 else Cost(flops=count)

    made = flops(share * n * n * (2.0 * stored + _EXPONENTIAL))
    # Factors are made here, on one thread: a cost is what all threads share.
    factors = Cost(flops=resources.threads * 2.0 * n * float(size) ** 2 / 3)
    used = flops(share * 12.0 * n * n * rows.columns)
    used += Cost(memory=3.0 * share * n * n * rows.itemsize)
    return {
        KEPT: made + factors + passes * used,
        MADE: passes * (made + factors + used),
    }
