"""Data as blocks of rows, with one verb for every iterative algorithm: `map_reduce`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlopt.cluster import Executor, Handle, Parcel, Threads, Tree, pack, unpack
from mlopt.cluster import executor as default_executor
from mlopt.errors import InputError
from mlopt.plan.units import format_bytes
from mlopt.resources.probe import memory_limit
from mlopt.rows import travel
from mlopt.rows.block import Block, check_finite, csr_of, narrowed, widened
from mlopt.rows.columnwise import Columnwise
from mlopt.rows.lazy import Beside, LazyShelf
from mlopt.rows.source import Shelf, Source, split, split_held

SHARE = 0.2
"""Of the memory limit, here and of a worker: a copy in one block may take no more."""


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
    shelves : tuple of handles
        Each holds some neighbouring blocks, which one task works on.
    sizes : tuple of int
        Blocks of each shelf.
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

    shelves: tuple[Handle, ...]
    sizes: tuple[int, ...]
    lengths: tuple[int, ...]
    d: int
    dtype: np.dtype
    sparse: bool
    nonzero: int
    executor: Executor
    names: tuple[str, ...] | None = None

    def __copy__(self) -> Rows:
        return self  # nothing of it changes

    def __deepcopy__(self, memo: object) -> Rows:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return travel.packed(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(travel.unpacked(state))

    @staticmethod
    def of(
        X: Any,
        *,
        executor: Executor | None = None,
        block_rows: int | None = None,
        dtype: Any = None,
        finite: bool = False,
    ) -> Rows:
        """Cut ``X`` into blocks; floats stay as they are, integers become float64.

        Parameters
        ----------
        X : array-like of shape (n, d)
            numpy, scipy.sparse, pandas, polars, Arrow; a dask array or data frame, whose
            chunks of rows become the blocks and whose empty chunks are left out; `Rows`
            are given back.
        executor : Executor, optional
            Default: `mlopt.cluster.executor()`.
        block_rows : int, optional
            Rows of a block at most. Default: chosen from the size of the data alone.
            Chunks of a dask array are cut anew; those of a data frame, or of unknown
            length, are left as they are.
        dtype : dtype, optional
            float32 or float64.
        finite : bool, default=False
            Whether a matrix is known to hold finite numbers: they are not looked at again.

        Raises
        ------
        InputError
            When X is not 2-D, is empty, is not made of real numbers, or is not finite.
        """
        if isinstance(X, Rows):
            return X
        where = executor or default_executor()
        return Rows.on_shelves(split(X, where, block_rows, dtype, finite), where)

    @staticmethod
    def held(matrix: Handle, *, executor: Executor) -> Rows:
        """Cut a matrix, dense or CSR, that ``executor`` holds; it stays where it is."""
        return Rows.on_shelves(split_held(matrix, executor), executor)

    @staticmethod
    def by_columns(X: Any, *, executor: Executor) -> Rows:
        """A CSC matrix as one block, for who reads its columns; see `Columnwise`."""
        block = Columnwise.of(X)
        source = Source((executor.put((block,)),), (1,), (block.found,), None)
        return Rows.on_shelves(source, executor)

    @staticmethod
    def on_shelves(source: Source, where: Executor) -> Rows:
        """Blocks that ``where`` holds on shelves; they must be finite."""
        check_finite(source.found, source.names)
        return Rows(
            shelves=source.shelves,
            sizes=source.sizes,
            lengths=tuple(one.rows for one in source.found),
            d=source.found[0].columns,
            dtype=source.found[0].dtype,
            sparse=source.found[0].sparse,
            nonzero=sum(one.nonzero for one in source.found),
            executor=where,
            names=source.names,
        )

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names as scikit-learn has them: none where columns were only numbered."""
        numbered = self.names is None or all(map(str.isdigit, self.names))
        return None if numbered else self.names

    @property
    def n(self) -> int:
        """How many rows there are."""
        return sum(self.lengths)

    @property
    def starts(self) -> tuple[int, ...]:
        """The first row of each block."""
        return tuple(int(start) for start in np.cumsum((0, *self.lengths))[:-1])

    @property
    def nbytes(self) -> int:
        """Bytes of the features, in all."""
        # CSR has a 4-byte column number with each value, and a pointer for each row.
        if self.sparse:
            return self.nonzero * (self.dtype.itemsize + 4) + 4 * self.n
        return self.n * self.d * self.dtype.itemsize

    def attach(self, **arrays: Any) -> Rows:
        """Place per-row arrays (n, ...) beside their rows, once, in ``Block.extra``."""
        # Views of columns are added up in another order than contiguous arrays.
        whole = {name: np.ascontiguousarray(a) for name, a in arrays.items()}
        slices: list[Beside] = [*self._slices(whole)]
        if not isinstance(self.executor, Threads):  # they travel, and wait beside lazy rows
            slices = [
                pack({name: narrowed(array) for name, array in one.items()})
                for one in self._slices(whole)
            ]
        ends = np.cumsum(self.sizes)
        shelves = [
            self.executor.derive(_beside, shelf, slices[end - size : end])
            for shelf, size, end in zip(self.shelves, self.sizes, ends, strict=True)
        ]
        return replace(self, shelves=tuple(shelves))

    def in_doubles(self) -> Rows:
        """The same rows with features of float64; what is beside them stays as it is."""
        if self.dtype == np.float64:
            return self
        submit = self.executor.submit
        shelves = tuple(submit(_in_doubles, shelf) for shelf in self.shelves)
        return replace(self, shelves=shelves, dtype=np.dtype(np.float64))

    def compute_beside(self, function: Callable[..., Any], *broadcast: Any) -> Rows:
        """Place ``function(block, *broadcast)``, per-row arrays by name, beside the rows.

        They are made where the rows are and never travel.
        """
        job, several = partial(_compute_beside, function), len(self.shelves) > 1
        submit = self.executor.submit if several else self.executor.derive
        shelves = tuple(submit(job, shelf, *broadcast) for shelf in self.shelves)
        return replace(self, shelves=shelves)

    def map(self, function: Callable[..., Any], *broadcast: Any) -> list[Any]:
        """``function(block, *broadcast)`` of every block, in their order."""
        parts = self.executor.map(partial(_map, function), self.shelves, *broadcast)
        return [value for part in parts for value in part]

    def first(self, function: Callable[..., Any], *broadcast: Any) -> Any:
        """``function(block, *broadcast)`` of the first block only."""
        job = partial(_first, function)
        return self.executor.result(self.executor.derive(job, self.shelves[0], *broadcast))

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
        job = OfBlocks(function, combine)
        return self.executor.reduce(job, combine, self.shelves, *broadcast)

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
        job = partial(_fold, function)
        return self.executor.fold(job, self.shelves, states, *broadcast)

    def take(self, indices: Any) -> Any:
        """Rows by number, in the order given, as one ndarray or `csr_array`."""
        wanted = np.asarray(indices, dtype=np.intp)
        if wanted.size and not (wanted.min() >= 0 and wanted.max() < self.n):
            raise InputError(f"`indices` must lie in 0 ... {self.n - 1}.")
        order = np.argsort(wanted, kind="stable")
        inside = wanted[order]
        parts = np.split(inside, np.searchsorted(inside, self.starts[1:]))
        picks = [part - start for part, start in zip(parts, self.starts, strict=True)]
        return self.pick(picks)[np.argsort(order)]

    def pick(self, picks: Sequence[np.ndarray]) -> Any:
        """Rows of each block by their numbers within it, block after block, as one matrix.

        Dense rows of this process are copied once, to their places.
        """
        if isinstance(self.executor, Threads) and not self.sparse:
            places = np.cumsum([0, *map(len, picks)])
            X = np.empty((int(places[-1]), self.d), self.dtype)
            # Blocks keep their numbers where shelves are visited in another order.
            order = self.map(_number)
            parts = [X[a:b] for a, b in pairwise(places)]
            self.map(_copy, *(dict(zip(order, one, strict=True)) for one in (picks, parts)))
            return X
        ends, found = np.cumsum(self.sizes), []
        for shelf, size, end in zip(self.shelves, self.sizes, ends, strict=True):
            if any(map(len, own := picks[end - size : end])):
                found.append(self.executor.submit(_picked, shelf, own))
        return self._stack(self.executor.results(found))

    def collect(self) -> Any:
        """All rows as one ndarray or `csr_array`, in this process.

        Raises
        ------
        InputError
            When they need more memory than this process may use.
        """
        self._check_room()
        return self._stack(self.map(_features))

    def in_one_block(self, *, must: bool = False) -> Rows:
        """The same rows, with what is beside them, in one block.

        Without a copy where they lie so in the memory of this process. They stay as they
        are where a copy takes too much of the memory, unless they ``must``.

        Raises
        ------
        InputError
            When they must, and need more memory than this process may use.
        """
        if len(self.lengths) == 1:
            return self
        here, limit = isinstance(self.executor, Threads), memory_limit()
        may = must or self.nbytes <= SHARE * min(limit, self.executor.memory or limit)
        if not (here or may):
            return self
        X = _together(self.map(_features)) if here else None
        if X is None:
            return self.moved(self.executor, self.n) if may else self
        return _cut(X, self.map(_whole), self.executor, self.n)

    def moved(self, executor: Executor, block_rows: int | None = None) -> Rows:
        """The same rows, with what is beside them, held by another executor.

        They come to this process in between, in one round trip.

        Raises
        ------
        InputError
            When they need more memory than this process may use.
        """
        self._check_room()
        parts = self.map(_whole)
        return _cut(self._stack([X for X, _ in parts]), parts, executor, block_rows)

    def in_order(self, order: Sequence[int]) -> Rows:
        """The same blocks, with the shelves that hold them visited in another order."""
        ends = np.cumsum(self.sizes)
        lengths = [self.lengths[e - s : e] for e, s in zip(ends, self.sizes, strict=True)]
        return replace(
            self,
            shelves=tuple(self.shelves[i] for i in order),
            sizes=tuple(self.sizes[i] for i in order),
            lengths=tuple(length for i in order for length in lengths[i]),
        )

    def _check_room(self) -> None:
        if self.nbytes > (limit := memory_limit()):
            raise InputError(
                f"All rows need {format_bytes(self.nbytes)} and this process may use "
                f"{format_bytes(limit)}: work on blocks with `map_reduce`, or `take` some."
            )

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


def _map(function: Callable[..., Any], shelf: Shelf, *broadcast: Any) -> list[Any]:
    return [function(block, *broadcast) for block in shelf]


def _first(function: Callable[..., Any], shelf: Shelf, *broadcast: Any) -> Any:
    return function(shelf[0], *broadcast)


@dataclass(frozen=True)
class OfBlocks:
    """Combines what a function gives of the blocks of a shelf, block after block."""

    function: Callable[..., Any]
    combine: Callable[[Any, Any], Any]

    @property
    def __name__(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def __call__(self, shelf: Any, *broadcast: Any) -> Any:
        steps = self.steps(shelf, *broadcast)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value

    def steps(self, shelf: Any, *broadcast: Any) -> Generator[None, None, Any]:
        """The same, with a pause after each block, in which none is held."""
        tree = Tree(self.combine, len(shelf))
        for number in range(len(shelf)):
            with shelf.turn() if isinstance(shelf, LazyShelf) else nullcontext():
                tree.add(number, self.function(shelf[number], *broadcast))
            yield
        return tree.root


def _fold(function: Callable[..., Any], shelf: Shelf, state: Any, *broadcast: Any) -> Any:
    for block in shelf:
        state = function(block, state, *broadcast)
    return state


def _beside(shelf: Any, extras: Sequence[Beside]) -> Any:
    if isinstance(shelf, LazyShelf):
        return shelf.beside(extras)
    given = [unpack(one) if isinstance(one, Parcel) else one for one in extras]
    return tuple(
        block.beside({name: widened(array) for name, array in extra.items()})
        for block, extra in zip(shelf, given, strict=True)
    )


def _in_doubles(shelf: Any) -> Any:
    if isinstance(shelf, LazyShelf):
        return replace(
            shelf, makes=tuple(partial(_made_in_doubles, m) for m in shelf.makes)
        )
    return tuple(
        Block(block.X.astype(np.float64), block.extra, block.index) for block in shelf
    )


def _made_in_doubles(make: Callable[[], Any]) -> Any:
    return make().astype(np.float64)


def _compute_beside(function: Callable[..., Any], shelf: Any, *broadcast: Any) -> Any:
    if isinstance(shelf, LazyShelf):
        return shelf.beside([function(block, *broadcast) for block in shelf])
    return tuple(block.beside(function(block, *broadcast)) for block in shelf)


def _features(block: Block) -> Any:
    return block.X


def _whole(block: Block) -> tuple[Any, dict[str, Any]]:
    return block.X, dict(block.extra)


def _cut(X: Any, parts: Sequence[Any], executor: Executor, rows: int | None) -> Rows:
    """One matrix, known to be finite, as rows with what was beside its parts."""
    joined = {k: np.concatenate([extra[k] for _, extra in parts]) for k in parts[0][1]}
    cut = Rows.of(X, executor=executor, block_rows=rows, finite=True)
    return cut.attach(**joined)


def _together(parts: Sequence[Any]) -> Any:
    """The matrix that ``parts`` are consecutive rows of, if it lies so in memory."""
    if not sp.issparse(parts[0]):
        return _adjacent(parts)
    data = _adjacent([part.data for part in parts])
    indices = _adjacent([part.indices for part in parts])
    if data is None or indices is None:
        return None
    ends = np.cumsum([0, *(part.nnz for part in parts)])
    starts = [part.indptr[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)]
    indptr = np.append(np.concatenate(starts), ends[-1]).astype(indices.dtype)
    return csr_of(data, indices, indptr, parts[0].shape[1])


def _adjacent(parts: Sequence[np.ndarray]) -> np.ndarray | None:
    """The array that ``parts`` are consecutive pieces of, if it lies so in memory."""
    base = parts[0].base
    place = parts[0].ctypes.data
    for part in parts:
        if base is None or part.base is not base or part.ctypes.data != place:
            return None
        place += part.nbytes
    shape = (sum(map(len, parts)), *parts[0].shape[1:])
    return np.lib.stride_tricks.as_strided(
        parts[0], shape, parts[0].strides, writeable=False
    )


def _number(block: Block) -> int:
    return block.index


def _copy(
    block: Block, picks: Mapping[int, np.ndarray], parts: Mapping[int, np.ndarray]
) -> None:
    i = block.index
    np.take(block.X, picks[i], axis=0, out=parts[i], mode="clip")


def _picked(shelf: Shelf, picks: Sequence[np.ndarray]) -> Any:
    taken = [block.X[own] for block, own in zip(shelf, picks, strict=True) if len(own)]
    sparse = sp.issparse(taken[0])
    return sp.vstack(taken, format="csr") if sparse else np.concatenate(taken)
