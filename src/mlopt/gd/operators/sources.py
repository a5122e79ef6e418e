"""Where rows come from: partitions that can be read, and what was touched."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlopt.cluster import Executor, Threads, Tree
from mlopt.errors import InputError
from mlopt.gd.operators.interfaces import (
    Batch,
    Context,
    Floats,
    Indices,
    Units,
    below,
    stacked,
)
from mlopt.rows import Block, Rows
from mlopt.rows.block import check_unmasked


@dataclass
class Counts:
    """What was touched so far.

    Attributes
    ----------
    bytes_read : int
        Bytes asked of files. A disk delivers whole pages, so random access to short rows
        moves more than this.
    rows_parsed : int
        Rows that went through Transform.
    """

    bytes_read: int = 0
    rows_parsed: int = 0


class Source(ABC):
    """Rows in partitions. Subclasses say how to read a partition, and single rows."""

    def __init__(self) -> None:
        self.counts = Counts()

    @property
    @abstractmethod
    def partitions(self) -> int:
        """How many partitions there are."""

    @property
    @abstractmethod
    def columns(self) -> int:
        """d: the columns of what `parser` returns."""

    @property
    @abstractmethod
    def n(self) -> int:
        """The number of rows; a source that does not know it reads everything once."""

    @property
    def about(self) -> int:
        """The number of rows, or an estimate that costs nothing."""
        return self.n

    @abstractmethod
    def partition(self, number: int) -> Units:
        """All rows of a partition, in order."""

    @abstractmethod
    def random(self, generator: np.random.Generator, size: int) -> Units:
        """``size`` rows, each from a random partition, with replacement."""

    @abstractmethod
    def take(self, indices: Indices) -> Units:
        """Rows by number, in the order given."""

    @property
    def parser(self) -> Callable[[Units, Context], Batch]:
        """`parse` as an operator; what runs on workers must not hold the source."""
        return _already_parsed

    def scan(self) -> Iterator[Units]:
        """Every partition that has rows, in order."""
        for number in range(self.partitions):
            if len(units := self.partition(number)):
                yield units

    def total(
        self,
        transform: Callable[[Units], Batch],
        function: Callable[..., Any],
        combine: Callable[[Any, Any], Any],
        shared: Any,
    ) -> tuple[int, Any]:
        """Rows, and ``combine`` of ``function(batch, shared)``, of all partitions."""
        rows, found = 0, []
        for units in self.scan():
            batch = transform(units)
            rows += len(batch)
            found.append(function(batch, shared))
        tree = Tree(combine, len(found))
        for number, value in enumerate(found):
            tree.add(number, value)
        return rows, tree.root


class MatrixSource(Source):
    """Rows that are parsed already: in this process, or on Dask workers.

    Partitions are the blocks of a `Rows`. A pass over all rows is its ``map_reduce``.

    Parameters
    ----------
    X : array-like of shape (n, d), or Rows
        As `mlopt.rows.Rows.of` takes it.
    y : array-like of shape (n,)
    executor : Executor, optional
    """

    def __init__(self, X: Any, y: Any, executor: Executor | None = None) -> None:
        super().__init__()
        check_unmasked(y, "y")
        self.y: Floats = np.ascontiguousarray(y, np.float64)
        rows = Rows.of(X, executor=executor)
        if self.y.shape != (rows.n,):
            raise InputError(
                f"`y` must have one number for each of the {rows.n} rows of X, got shape "
                f"{self.y.shape}."
            )
        self.rows = rows.attach(labels=self.y)
        self._starts = np.append(self.rows.starts, self.rows.n)
        here = isinstance(self.rows.executor, Threads)
        # Single rows are asked for so often that a task for each would be most of the time.
        self._blocks: list[Block] | None = self.rows.map(_itself) if here else None

    @classmethod
    def of_batches(cls, batches: list[Batch], executor: Executor | None) -> MatrixSource:
        """Keep what an eager Transform returned, in blocks that suit memory."""
        whole = stacked(batches)
        return cls(whole.X, whole.y, executor)

    @property
    def partitions(self) -> int:
        """The blocks."""
        return len(self.rows.lengths)

    @property
    def columns(self) -> int:
        """d."""
        return self.rows.d

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.rows.n

    def partition(self, number: int) -> Batch:
        """A block; a view where it is in this process."""
        start, stop = self._starts[number], self._starts[number + 1]
        if self._blocks is None:
            return self.take(np.arange(start, stop))
        return Batch(self._blocks[number].X, self.y[start:stop])

    def random(self, generator: np.random.Generator, size: int) -> Batch:
        """Partitions by their number of rows, then rows: every row is equally likely."""
        return self.take(generator.integers(self.n, size=size))

    def take(self, indices: Indices) -> Batch:
        """Rows by number, in the order given."""
        if self._blocks is None:
            return Batch(self.rows.take(indices), self.y[indices])
        blocks = self._blocks
        X = gathered(self._starts, indices, lambda number, own: blocks[number].X[own])
        return Batch(X, self.y[indices])

    def total(
        self,
        transform: Callable[[Units], Batch],
        function: Callable[..., Any],
        combine: Callable[[Any, Any], Any],
        shared: Any,
    ) -> tuple[int, Any]:
        """A pass: blocks in parallel, where they are."""
        job = _OnBlock(transform, function)
        return self.n, self.rows.map_reduce(job, combine, shared)


def gathered(starts: Indices, indices: Indices, take: Callable[[int, Indices], Any]) -> Any:
    """Rows by number from several matrices, in the order given.

    Parameters
    ----------
    starts : ndarray of shape (parts + 1,)
        The first row of each matrix, and the number of all rows.
    indices : ndarray
    take : callable
        From the number of a matrix, and row numbers within it, to these rows.
    """
    owners = np.searchsorted(starts, indices, side="right") - 1
    if (owners == owners[0]).all():
        return take(int(owners[0]), indices - starts[owners[0]])
    order = np.argsort(owners, kind="stable")
    parts = []
    for owner in np.unique(owners):
        own = indices[order[owners[order] == owner]]
        parts.append(take(int(owner), own - starts[owner]))
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return below(parts)[back]


def _already_parsed(units: Units, context: Context) -> Batch:
    """The reference Transform of rows that are no text."""
    del context
    if not isinstance(units, Batch):
        raise InputError("These rows are text: give a `transform` that parses them.")
    return units


def _itself(block: Block) -> Block:
    return block


@dataclass(frozen=True)
class _OnBlock:
    transform: Callable[[Units], Batch]
    function: Callable[..., Any]

    def __call__(self, block: Block, shared: Any) -> Any:
        batch = self.transform(Batch(block.X, block.extra["labels"]))
        return self.function(batch, shared)
