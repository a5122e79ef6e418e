"""A model as tables: which blocks hold which rows of which of its arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlopt.errors import InputError
from mlopt.server.blocks import Array, Keys

Model = Mapping[str, Array]


@dataclass(frozen=True)
class Table:
    """One array of a model.

    Parameters
    ----------
    name : str
    first : int
        Its first block; the others follow.
    keys : Keys
        Its rows. An array without dimensions has one.
    shape : tuple of int
        Of the whole array.
    dtype : dtype
    """

    name: str
    first: int
    keys: Keys
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def blocks(self) -> range:
        """The numbers of its blocks."""
        return range(self.first, self.first + self.keys.blocks)

    def rows(self, block: int) -> Any:
        """Which rows of the array a block has: what indexes them."""
        at = block - self.first
        if self.keys.hashed:
            return self.keys.keys(at)
        low = at * self.keys.rows
        return slice(low, min(low + self.keys.rows, self.keys.count))

    def spread(self, keys: Array) -> Iterator[tuple[int, Array, Array]]:
        """The blocks that have these rows: which of ``keys``, and their rows within."""
        blocks, rows = self.keys.places(keys)
        order = np.argsort(blocks, kind="stable")
        found, starts = np.unique(blocks[order], return_index=True)
        for at, mine in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
            yield self.first + at, mine, rows[mine]


@dataclass(frozen=True)
class Tables:
    """All arrays of a model."""

    tables: Mapping[str, Table]

    @staticmethod
    def of(model: Model, least: int = 1, hashed: bool = False) -> Tables:
        """Cut a model into blocks.

        Parameters
        ----------
        model : mapping of str to ndarray
            Numbers of any kind.
        least : int
            Blocks of an array at least, if it has so many rows: of as many members can
            each have one.
        hashed : bool
            See `Keys`.

        Raises
        ------
        InputError
            An array is empty or holds no numbers, or a row is too large.
        """
        tables: dict[str, Table] = {}
        first = 0
        for name, value in model.items():
            array = np.asarray(value)
            if array.dtype.kind not in "biufc" or not array.size:
                raise InputError(
                    f"Arrays of a model must hold numbers, and some; `{name}` has the "
                    f"shape {array.shape} and the type {array.dtype}."
                )
            count = len(array) if array.ndim else 1
            keys = Keys.of(count, array.nbytes // count, least, hashed)
            tables[name] = Table(name, first, keys, array.shape, array.dtype)
            first += keys.blocks
        if not tables:
            raise InputError("A model must have an array.")
        return Tables(tables)

    @property
    def blocks(self) -> range:
        """The numbers of all blocks."""
        return range(sum(table.keys.blocks for table in self.tables.values()))

    def cut(self, model: Model) -> Iterator[tuple[int, Array]]:
        """Blocks and what is in them, copied."""
        for table in self.tables.values():
            array = np.asarray(model[table.name]).reshape(table.keys.count, -1)
            for block in table.blocks:
                rows = array[table.rows(block)]
                yield block, rows.reshape(len(rows), *table.shape[1:]).copy()

    def empty(self) -> dict[str, Array]:
        """Room for a model."""
        return {name: np.empty(one.shape, one.dtype) for name, one in self.tables.items()}

    def places(self, model: Model) -> Iterator[tuple[int, Array | None]]:
        """Where in ``model`` the rows of blocks are; nothing where they are scattered."""
        for table in self.tables.values():
            array = model[table.name]
            array = array if array.ndim else array.reshape(1)
            for block in table.blocks:
                yield block, None if table.keys.hashed else array[table.rows(block)]

    def table_of(self, block: int) -> Table:
        """The table that has a block."""
        return next(one for one in self.tables.values() if block in one.blocks)

    def check(self, delta: Model) -> None:
        """Raise unless a delta is like the model.

        Raises
        ------
        InputError
        """
        if not isinstance(delta, Mapping) or delta.keys() != self.tables.keys():
            got = sorted(delta) if isinstance(delta, Mapping) else type(delta).__name__
            raise InputError(
                f"A delta must have the arrays of the model, {sorted(self.tables)}; got "
                f"{got}."
            )
        for name, table in self.tables.items():
            array = np.asarray(delta[name])
            if array.shape != table.shape:
                raise InputError(
                    f"A delta must have the shapes of the model; `{name}` has "
                    f"{table.shape}, got {array.shape}."
                )
            if not np.can_cast(array.dtype, table.dtype, "same_kind"):
                raise InputError(
                    f"A delta of `{name}` must be of a kind that can be added to "
                    f"{table.dtype}, got {array.dtype}."
                )
