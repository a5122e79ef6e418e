"""A shelf whose blocks are made anew whenever they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from threading import Semaphore
from typing import Any

import numpy as np

from mlopt.cluster import Parcel, unpack
from mlopt.locking import cached_property
from mlopt.rows.block import Block, Narrow, widened

Beside = Mapping[str, np.ndarray | Narrow] | Parcel
"""Per-row arrays of one block by their names; in a parcel they wait compressed."""


class _Unmade(Block):
    """A block whose features are made when they are first read, as is what is beside."""

    def __init__(
        self, make: Callable[[], Any], beside: Sequence[Beside], index: int
    ) -> None:
        vars(self).update(make=make, beside=beside, index=index)

    @cached_property
    def X(self) -> Any:
        return vars(self)["make"]()

    @cached_property
    def extra(self) -> Mapping[str, np.ndarray]:
        found: dict[str, np.ndarray | Narrow] = {}
        for one in vars(self)["beside"]:
            found.update(unpack(one) if isinstance(one, Parcel) else one)
        return {name: widened(array) for name, array in found.items()}


@dataclass(frozen=True)
class LazyShelf:
    """Looks like a tuple of `Block`, and holds none.

    What is beside the rows is held: it was computed once, and is small.

    Attributes
    ----------
    makes : tuple of callable
        One a block: gives the features, ndarray or csr_array of shape (rows, d), of the
        data's dtype.
    index : int
        Number of the first block.
    extra : tuple of tuples of `Beside`
        For each block what was put beside it, the first first; () where nothing was.
    at_once : int or None
        How many such blocks a process works on at a time; None: as many as it has threads.
    """

    makes: tuple[Callable[[], Any], ...]
    index: int = 0
    extra: tuple[tuple[Beside, ...], ...] = ()
    at_once: int | None = None

    def __len__(self) -> int:
        return len(self.makes)

    def __iter__(self) -> Iterator[Block]:
        for number in range(len(self)):
            with self.turn():
                yield self[number]

    def __sizeof__(self) -> int:
        # Dask asks this when it decides what to spill.
        return 200 * len(self) + sum(map(_size, sum(self.extra, ())))

    def __getitem__(self, item: int | slice) -> Any:
        numbers = range(len(self))[item]
        if isinstance(numbers, range):
            return tuple(map(self.__getitem__, numbers))
        beside = self.extra[numbers] if self.extra else ()
        return _Unmade(self.makes[numbers], beside, self.index + numbers)

    def turn(self) -> AbstractContextManager[Any]:
        """Within it there is room to make one block."""
        return _turns(self.at_once) if self.at_once else nullcontext()

    def beside(self, extras: Sequence[Beside]) -> LazyShelf:
        """The same rows with further per-row arrays, one mapping or parcel a block."""
        before = self.extra or ((),) * len(self)
        both = zip(before, extras, strict=True)
        return replace(self, extra=tuple((*old, new) for old, new in both))


def _size(beside: Beside) -> int:
    if isinstance(beside, Parcel):
        return beside.nbytes
    return sum(one.nbytes for one in beside.values())


@cache
def _turns(at_once: int) -> Semaphore:
    """Of this process."""
    return Semaphore(at_once)
