"""Arrays whose blocks are read when they are needed: a dask array."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from mlopt.errors import InputError


def in_blocks(
    read: Callable[[int, int], np.ndarray],
    shape: tuple[int, ...],
    dtype: Any,
    block_rows: int | None,
) -> Any:
    """A dask array of ``shape``; ``read(start, stop)`` gives the rows of a block.

    All rows at once where ``block_rows`` is None.
    """
    if block_rows is None:
        return read(0, shape[0])
    import dask
    import dask.array as da

    one = dask.delayed(read, pure=False)
    parts = [
        da.from_delayed(one(start, stop), (stop - start, *shape[1:]), dtype)
        for start, stop in pairwise(block_edges(shape[0], block_rows))
    ]
    return da.concatenate(parts)


def block_edges(n: int, block_rows: int) -> list[int]:
    """Where blocks begin, and ``n`` at the end.

    Raises
    ------
    InputError
        When a block would have no row.
    """
    if block_rows < 1:
        raise InputError(f"`block_rows` must be at least 1, got {block_rows}.")
    return [*range(0, n, block_rows), n]
