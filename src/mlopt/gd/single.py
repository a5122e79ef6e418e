"""Rows as one block, where memory allows: one shuffle then reaches all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mlopt.cluster import Threads
from mlopt.gd.passes import Floats
from mlopt.resources.probe import memory_limit
from mlopt.rows import Block, Rows

_SHARE = 0.2
"""Of the memory limit, here and of a worker: a copy of the rows may take no more."""


def one_block(rows: Rows) -> Rows:
    """The same rows, with what is beside them, in one block; or ``rows`` as they are."""
    if len(rows.lengths) == 1:
        return rows
    here = isinstance(rows.executor, Threads)
    fits = rows.nbytes <= _SHARE * min(
        memory_limit(), rows.executor.memory or memory_limit()
    )
    if not (here or fits):
        return rows
    blocks = rows.map(_itself)
    X = _adjacent([block.X for block in blocks]) if here and not rows.sparse else None
    if X is None:
        if not fits:
            return rows
        X = rows.collect()
    names = blocks[0].extra
    beside = {name: np.concatenate([b.extra[name] for b in blocks]) for name in names}
    return Rows.of(X, executor=rows.executor, block_rows=rows.n).attach(**beside)


def _itself(block: Block) -> Block:
    return block


def _adjacent(parts: Sequence[Floats]) -> Floats | None:
    """The array that ``parts`` are consecutive rows of, if it lies so in memory."""
    base = parts[0].base
    place = parts[0].ctypes.data
    for part in parts:
        if base is None or part.base is not base or part.ctypes.data != place:
            return None
        place += part.nbytes
    shape = (sum(len(part) for part in parts), parts[0].shape[1])
    return np.lib.stride_tricks.as_strided(
        parts[0], shape, parts[0].strides, writeable=False
    )


def blocks_in_order(rows: Rows, order: Sequence[int]) -> Rows:
    """The same blocks, with what holds them visited in another order."""
    ends = np.cumsum(rows.sizes)
    lengths = [rows.lengths[e - s : e] for e, s in zip(ends, rows.sizes, strict=True)]
    return replace(
        rows,
        shelves=tuple(rows.shelves[i] for i in order),
        sizes=tuple(rows.sizes[i] for i in order),
        lengths=tuple(length for i in order for length in lengths[i]),
    )
