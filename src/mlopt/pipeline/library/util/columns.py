"""Columns in blocks of a given width, and blocks put together again.

Neither is a step of a pipeline, where one row must come out for each that goes in. There,
`VectorSplitter.slices` are columns for a `ColumnTransformer`, and `mlopt.gather` combines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlopt.errors import InputError
from mlopt.pipeline.blocks import tables


class VectorSplitter:
    """Blocks of neighbouring columns, as block solvers read them.

    Law: ``VectorCombiner().combine(VectorSplitter(b).split(X))`` is ``X``.

    Parameters
    ----------
    block_size : int
        Columns of a block; the last may have fewer.
    """

    def __init__(self, block_size: int) -> None:
        if block_size < 1:
            raise InputError(f"`block_size` must be at least 1, got {block_size}.")
        self.block_size = block_size

    def slices(self, n_columns: int) -> list[slice]:
        """The columns of each block."""
        edges = range(0, n_columns, self.block_size)
        return [slice(at, min(at + self.block_size, n_columns)) for at in edges]

    def split(self, X: Any) -> list[Any]:
        """Blocks (n, b) of an array, sparse matrix or data frame (n, d)."""
        if sp.issparse(X):
            X = X.tocsc()
            return [X[:, columns].tocsr() for columns in self.slices(X.shape[1])]
        table = X if hasattr(X, "iloc") else np.asarray(X)
        if table.ndim != 2:
            raise InputError(f"X must have shape (n, d), got {table.shape}.")
        slices = self.slices(table.shape[1])
        return [tables.take_columns(table, columns) for columns in slices]


class VectorCombiner:
    """Blocks of columns side by side: the inverse of `VectorSplitter`."""

    def combine(self, blocks: Sequence[Any]) -> Any:
        """All columns, (n, d): sparse if a block is, else an array, or a frame of frames.

        Raises
        ------
        InputError
            When there is no block, or they differ in their rows.
        """
        rows = {tables.count_rows(block) for block in blocks}
        if len(rows) != 1:
            raise InputError(
                f"`blocks` must be one or more of as many rows, got {sorted(rows)} rows."
            )
        if any(sp.issparse(block) for block in blocks):
            return sp.hstack([sp.csr_array(block) for block in blocks], format="csr")
        if all(hasattr(block, "iloc") for block in blocks):
            import pandas as pd

            index = blocks[0].index  # rows go together by their places, as in arrays
            return pd.concat([block.set_axis(index) for block in blocks], axis=1)
        return np.hstack([np.asarray(block) for block in blocks])
