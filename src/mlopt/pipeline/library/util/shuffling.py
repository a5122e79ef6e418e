"""Rows in random order, targets along with them.

A step of a pipeline may not do this: targets do not go through its steps, and each row
would meet the target of another. So rows are shuffled before, all that belongs to them at
once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mlopt.errors import InputError
from mlopt.pipeline.blocks import tables
from mlopt.rows.source import is_dask


class Shuffler:
    """One random order for data and targets.

    Blocks of a data set that was written class by class then have about the same classes,
    which samples and stochastic solvers count on (KeystoneML's `Shuffler`).

    Parameters
    ----------
    random_state : int, RandomState or None, default=None
        The same seed gives the same order for as many rows, wherever they are.

    Examples
    --------
    >>> X, y = Shuffler(0).shuffle([[0], [1], [2]], [0, 1, 2])
    >>> [row[0] for row in X] == y
    True
    """

    def __init__(self, random_state: Any = None) -> None:
        self.random_state = random_state

    def shuffle(self, *data: Any) -> Any:
        """All of ``data`` in one order; one alone as it is, several as a tuple.

        Parameters
        ----------
        *data : array, sparse matrix, data frame, list or dask array, of n rows each
            Chunks of a dask array keep their sizes, and move lazily.

        Raises
        ------
        InputError
            When there is nothing, the numbers of rows differ, or are not known.
        """
        counts = {_count(one) for one in data}
        if len(counts) != 1:
            raise InputError(
                f"`data` must all have as many rows, got {sorted(counts)} for {len(data)}."
            )
        order = check_random_state(self.random_state).permutation(counts.pop())
        shuffled = tuple(_taken(one, order) for one in data)
        return shuffled if len(shuffled) > 1 else shuffled[0]


def _count(data: Any) -> int:
    if not is_dask(data):
        return tables.count_rows(data)
    if not hasattr(data, "chunks") or np.isnan(data.shape[0]):
        raise InputError(
            "Dask collections must be arrays with known chunks to be shuffled: call "
            "`.to_dask_array(lengths=True)` or `.compute_chunk_sizes()` before."
        )
    return int(data.shape[0])


def _taken(data: Any, order: np.ndarray) -> Any:
    if not is_dask(data):
        return tables.take_rows(data, order)
    edges = np.cumsum(data.chunks[0])[:-1]
    return data.shuffle([part.tolist() for part in np.split(order, edges)], axis=0)
