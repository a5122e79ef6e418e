"""All rows in one piece in this process, for methods that step from row to row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlopt.cluster import Threads
from mlopt.costs import Cost
from mlopt.gd.plans.method import Price
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.task import Problem
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.resources.probe import memory_limit
from mlopt.rows import Block, Rows

EPOCH = Cost(python=price("sequential.epoch"))
"""Of an epoch over rows that take nothing."""


def gathered(rows: Rows) -> Any:
    """One ndarray or csr_array (n, d), a copy unless it lies so in this process.

    Raises
    ------
    InputError
        When it does not fit into the memory of this process.
    """
    here = isinstance(rows.executor, Threads)
    rows = rows.in_one_block() if here else rows
    one = here and len(rows.lengths) == 1
    return rows.first(_features) if one else rows.collect()


def brought(problem: Problem) -> Problem:
    """The problem on rows of this process.

    Who steps from row to row here, and looks at all rows after each epoch, would wait for
    workers at every look.
    """
    rows = problem.rows
    if isinstance(rows.executor, Threads):
        return problem
    here = Rows.of(gathered(rows), executor=Threads(1), block_rows=rows.n)
    return problem.on(here.attach(**problem.beside()))


def _features(block: Block) -> Any:
    return block.X


def gathering(
    cost: Callable[[Outline, Resources, float], Cost],
) -> Callable[[Outline, Resources], Price | str]:
    """From the cost of passes over gathered rows to a price, or a refusal.

    Parameters
    ----------
    cost : callable
        Of an outline, resources and a number of passes.
    """

    def of(outline: Outline, resources: Resources) -> Price | str:
        shape, half = outline.shape, memory_limit() // 2
        if outline.here:
            copied = Cost(memory=2.0 * shape.nbytes * (shape.blocks > 1))
            return lambda passes: cost(outline, resources, passes) + copied
        if shape.nbytes > half:
            return (
                "its steps follow each other, so it needs all rows in one process: "
                f"{shape.nbytes} bytes, and half of this one's memory is {half}"
            )
        sending = Cost(network=float(shape.nbytes))
        return lambda passes: cost(outline, resources, passes) + sending

    return of
