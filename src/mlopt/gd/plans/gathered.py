"""All rows in one piece in this process, for methods that step from row to row."""

from __future__ import annotations

from typing import Any

from mlopt.cluster import Threads
from mlopt.costs import Cost
from mlopt.prices import price
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


def _features(block: Block) -> Any:
    return block.X
