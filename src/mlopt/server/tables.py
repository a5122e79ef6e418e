"""A model as tables: which blocks hold which rows of which of its arrays.

A model is arrays by name, or groups of them: arrays of a group have as many rows each, and
a block has the same rows of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlopt.errors import InputError
from mlopt.server.blocks import LARGEST, Array, Keys

Model = Mapping[str, Any]
"""Of arrays, or of groups."""


@dataclass(frozen=True)
class Table:
    """One array of a model, or a group of them.

    Parameters
    ----------
    name : str
    first : int
        Its first block; the others follow.
    keys : Keys
        Its rows. An array without dimensions has one. Those of an array whose rows are
        larger than a block are its numbers, one by one.
    kinds : mapping of str to (shape, dtype)
        Of its arrays; of a single one the name is empty.
    """

    name: str
    first: int
    keys: Keys
    kinds: Mapping[str, tuple[tuple[int, ...], np.dtype]]

    @property
    def blocks(self) -> range:
        """The numbers of its blocks."""
        return range(self.first, self.first + self.keys.blocks)

    def rows(self, block: int) -> Any:
        """Which rows of the arrays a block has: what indexes them."""
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
        for at, mine in zip(found.tolist(), np.split(order, starts)[1:], strict=True):
            yield self.first + at, mine, rows[mine]

    def empty(self) -> Any:
        """Room for it."""
        # By name: a type that came in a message is another object than NumPy's own, and
        # `np.add.at` then takes five times as long.
        arrays = {
            name: np.empty(shape, dtype.str) for name, (shape, dtype) in self.kinds.items()
        }
        return arrays.get("", arrays)

    def in_rows(self, value: Any) -> list[Array]:
        """The arrays of what is like it, each with a dimension of rows; without a copy."""
        group = value if isinstance(value, Mapping) else {"": value}
        if self.flat:
            return [group[name].reshape(-1) for name in self.kinds]
        return [np.atleast_1d(group[name]) for name in self.kinds]

    @property
    def flat(self) -> bool:
        """Whether blocks cut its rows, each of which is larger than one."""
        return any(_count(shape) != self.keys.count for shape, _ in self.kinds.values())

    def check_rows(self) -> None:
        """Raise unless rows can be asked for: each is in one block.

        Raises
        ------
        InputError
        """
        if self.flat:
            raise InputError(
                f"Rows of `{self.name}` are larger than a block, {LARGEST >> 20} MB, and "
                "can be had by `pull` only: make each several rows."
            )

    def check(self, delta: Any) -> None:
        """Raise unless a delta is like it.

        Raises
        ------
        InputError
        """
        group = delta if isinstance(delta, Mapping) else {"": delta}
        _check_names(group, self.kinds)
        for name, (shape, dtype) in self.kinds.items():
            array, what = np.asarray(group[name]), f"{self.name} {name}".strip()
            if array.shape != shape:
                raise InputError(
                    f"A delta must have the shapes of the model; `{what}` has {shape}, got "
                    f"{array.shape}."
                )
            if not np.can_cast(array.dtype, dtype, "same_kind"):
                raise InputError(
                    f"A delta of `{what}` must be of a kind that can be added to {dtype}, "
                    f"got {array.dtype}."
                )


@dataclass(frozen=True)
class Tables:
    """All arrays of a model."""

    tables: Mapping[str, Table]

    @staticmethod
    def of(model: Model, least: int = 1, hashed: bool = False) -> Tables:
        """Cut a model into blocks.

        Parameters
        ----------
        model : mapping of str to ndarray, or to mappings of str to ndarray
            Numbers of any kind.
        least : int
            Blocks of a table at least, if it has so many rows: so many members can have
            one each.
        hashed : bool
            See `Keys`.

        Raises
        ------
        InputError
            An array is empty or holds no numbers, arrays of a group differ in their rows,
            or a row is too large.
        """
        tables: dict[str, Table] = {}
        first = 0
        for name, value in model.items():
            group = value if isinstance(value, Mapping) else {"": value}
            arrays = {one: np.asarray(array) for one, array in group.items()}
            for one, array in arrays.items():
                if array.dtype.kind not in "biufc" or not array.size:
                    raise InputError(
                        "Arrays of a model must hold numbers, and some; "
                        f"`{f'{name} {one}'.strip()}` has the shape {array.shape} and the "
                        f"type {array.dtype}."
                    )
            counts = {len(array) if array.ndim else 1 for array in arrays.values()}
            if len(counts) != 1:
                raise InputError(
                    f"Arrays of a group must have as many rows each; those of `{name}` "
                    f"have {sorted(counts)}."
                )
            (count,) = counts
            nbytes = sum(array.nbytes for array in arrays.values())
            if len(arrays) == 1 and is_wide(*arrays.values()):
                count = nbytes // next(iter(arrays.values())).itemsize
            keys = Keys.of(count, nbytes // count, least, hashed)
            kinds = {one: (array.shape, array.dtype) for one, array in arrays.items()}
            tables[name] = Table(name, first, keys, kinds)
            first += keys.blocks
        if not tables:
            raise InputError("A model must have an array.")
        return Tables(tables)

    @property
    def blocks(self) -> range:
        """The numbers of all blocks."""
        return range(sum(table.keys.blocks for table in self.tables.values()))

    def cut(self, model: Model) -> Iterator[tuple[int, list[Array]]]:
        """The blocks of a model, or of some of its tables, and what is in them, copied."""
        for name, part in model.items():
            table = self.tables[name]
            arrays = table.in_rows(part)
            for block in table.blocks:
                yield block, [np.array(array[table.rows(block)]) for array in arrays]

    def empty(self) -> dict[str, Any]:
        """Room for a model."""
        return {name: table.empty() for name, table in self.tables.items()}

    def table_of(self, block: int) -> Table:
        """The table that has a block."""
        return next(one for one in self.tables.values() if block in one.blocks)

    def put(self, model: Model, block: int, found: Sequence[Array]) -> None:
        """Put what is in a block to its place in a model."""
        table = self.table_of(block)
        for array, rows in zip(table.in_rows(model[table.name]), found, strict=True):
            array[table.rows(block)] = rows

    def check(self, delta: Model) -> None:
        """Raise unless a delta is like the model, or some of its tables.

        Raises
        ------
        InputError
        """
        if not isinstance(delta, Mapping):
            raise InputError(
                f"A delta must have the arrays of the model, {sorted(self.tables)}; got a "
                f"{type(delta).__name__}."
            )
        if not delta.keys() <= self.tables.keys():
            _check_names(delta, self.tables)
        for name, part in delta.items():
            self.tables[name].check(part)


def is_wide(*arrays: Array) -> bool:
    """Whether a row of an array, or of some together, is larger than a block."""
    return sum(array.nbytes // _count(array.shape) for array in arrays) > LARGEST


def _count(shape: tuple[int, ...]) -> int:
    return shape[0] if shape else 1


def _check_names(delta: Model, wanted: Mapping[str, Any]) -> None:
    if delta.keys() != wanted.keys():
        raise InputError(
            f"A delta must have the arrays of the model, {sorted(wanted)}; got "
            f"{sorted(delta)}."
        )
