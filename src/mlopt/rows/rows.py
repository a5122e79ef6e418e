"""Data as blocks of rows, with one verb for every iterative algorithm: `map_reduce`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlopt.cluster import Executor, Handle
from mlopt.cluster import executor as default_executor
from mlopt.errors import InputError
from mlopt.rows.arrays import as_matrix
from mlopt.rows.block import Block, array_bytes, beside, boundaries, row_slice
from mlopt.rows.check import Found, check_finite, inspect


@dataclass(frozen=True)
class Rows:
    """A matrix (n, d) cut into blocks of rows, held in process or on Dask workers.

    Where blocks begin depends on the data alone, and partial results are combined in the
    order of one fixed tree. So every sum is the same to the last bit, whatever the number
    of threads or workers.

    Attributes
    ----------
    n, d : int
        Rows and columns.
    dtype : dtype
        float32 or float64.
    sparse : bool
        Whether blocks hold CSR.
    nonzero : int
        Stored values; ``n * d`` when dense.
    lengths : tuple of int
        Rows of each block.
    names : tuple of str or None
        Column names, when the source had them.
    executor : Executor
    """

    blocks: tuple[Handle, ...]
    lengths: tuple[int, ...]
    d: int
    dtype: np.dtype
    sparse: bool
    nonzero: int
    executor: Executor
    names: tuple[str, ...] | None = None

    @staticmethod
    def of(
        X: Any,
        *,
        executor: Executor | None = None,
        block_rows: int | None = None,
        dtype: Any = None,
    ) -> Rows:
        """Cut ``X`` into blocks; floats stay as they are, integers become float64.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        executor : Executor, optional
            Default: `mlopt.cluster.executor()`.
        block_rows : int, optional
            Rows of a block at most. Default: chosen from the size of the data alone.
        dtype : dtype, optional
            float32 or float64.

        Raises
        ------
        InputError
            When X is not 2-D, is empty, is not made of real numbers, or is not finite.
        """
        where = executor or default_executor()
        matrix = as_matrix(X, dtype)
        edges = boundaries(matrix.shape[0], array_bytes(matrix), block_rows)
        blocks = [
            Block(row_slice(matrix, start, stop), index=index, start=start)
            for index, (start, stop) in enumerate(pairwise(edges))
        ]
        return _checked(where, [where.put(block) for block in blocks], None)

    @property
    def n(self) -> int:
        """How many rows there are."""
        return sum(self.lengths)

    @property
    def starts(self) -> tuple[int, ...]:
        """The first row of each block."""
        return tuple(int(start) for start in np.cumsum((0, *self.lengths))[:-1])

    def attach(self, **arrays: Any) -> Rows:
        """Place per-row arrays (n, ...) beside their rows, once, in ``Block.extra``."""
        # Views of columns are added up in another order than contiguous arrays.
        slices = self._slices({name: np.ascontiguousarray(a) for name, a in arrays.items()})
        blocks = [
            self.executor.submit(beside, block, self.executor.put(part))
            for block, part in zip(self.blocks, slices, strict=True)
        ]
        return replace(self, blocks=tuple(blocks))

    def map(self, function: Callable[..., Any], *broadcast: Any) -> list[Any]:
        """``function(block, *broadcast)`` of every block, in their order."""
        return self.executor.map(function, self.blocks, *broadcast)

    def map_reduce(
        self,
        function: Callable[..., Any],
        combine: Callable[[Any, Any], Any],
        *broadcast: Any,
    ) -> Any:
        """Combine ``function(block, *broadcast)`` of all blocks in a fixed order.

        Parameters
        ----------
        function : callable
            From a block to a partial result; must not change its arguments.
        combine : callable
            From two partial results to one, such as a sum; must not change them.
        *broadcast
            Given to every call; values of `Executor.put` travel only once.
        """
        return self.executor.reduce(function, combine, self.blocks, *broadcast)

    def fold(
        self, function: Callable[..., Any], states: Sequence[Any], *broadcast: Any
    ) -> list[Any]:
        """Take every state through all blocks in their order; states go in parallel.

        Parameters
        ----------
        function : callable
            ``function(block, state, *broadcast)`` returns the next state and must not
            change the one it was given.
        states : sequence

        Returns
        -------
        list
            The states after the last block.
        """
        return self.executor.fold(function, self.blocks, states, *broadcast)

    def take(self, indices: Any) -> Any:
        """Rows by number, in the order given, as one ndarray or `csr_array`."""
        wanted = np.asarray(indices, dtype=np.intp)
        if wanted.size and not (wanted.min() >= 0 and wanted.max() < self.n):
            raise InputError(f"`indices` must lie in 0 ... {self.n - 1}.")
        order = np.argsort(wanted, kind="stable")
        edges = np.searchsorted(wanted[order], (*self.starts, self.n))
        parts = [
            self.executor.submit(_take, block, wanted[order[a:b]])
            for block, a, b in zip(self.blocks, edges, edges[1:], strict=False)
            if b > a
        ]
        stacked = self._stack([self.executor.result(part) for part in parts])
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        return stacked[place]

    def collect(self) -> Any:
        """All rows as one ndarray or `csr_array`."""
        return self._stack(self.map(_features))

    def _stack(self, parts: list[Any]) -> Any:
        if not parts:
            empty = np.empty((0, self.d), self.dtype)
            return sp.csr_array(empty) if self.sparse else empty
        return sp.vstack(parts, format="csr") if self.sparse else np.concatenate(parts)

    def _slices(self, arrays: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
        for name, array in arrays.items():
            if array.ndim == 0 or len(array) != self.n:
                raise InputError(
                    f"`{name}` must have one entry for each of the {self.n} rows of X, got "
                    f"shape {array.shape}."
                )
        return [
            {name: array[start : start + length] for name, array in arrays.items()}
            for start, length in zip(self.starts, self.lengths, strict=True)
        ]


def _features(block: Block) -> Any:
    return block.X


def _take(block: Block, rows: np.ndarray) -> Any:
    return block.X[rows - block.start]


def _inspect(block: Block) -> Found:
    return inspect(block.X)


def _checked(
    executor: Executor, blocks: Sequence[Handle], names: tuple[str, ...] | None
) -> Rows:
    found = executor.map(_inspect, blocks)
    check_finite(found, names)
    return Rows(
        blocks=tuple(blocks),
        lengths=tuple(one.rows for one in found),
        d=found[0].columns,
        dtype=found[0].dtype,
        sparse=found[0].sparse,
        nonzero=sum(one.nonzero for one in found),
        executor=executor,
        names=names,
    )
