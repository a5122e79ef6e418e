"""A shelf whose one block is made anew whenever it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from threading import Semaphore
from typing import Any

import numpy as np

from mlopt.rows.block import Block, Narrow, widened


class _Unmade(Block):
    """A block whose features are made when they are first read; many look beside them."""

    def __init__(self, shelf: LazyShelf) -> None:
        extra = {name: widened(array) for name, array in shelf.extra.items()}
        vars(self).update(
            make=shelf.make, extra=extra, index=shelf.index, start=shelf.start
        )

    @cached_property
    def X(self) -> Any:
        return vars(self)["make"]()


@dataclass(frozen=True)
class LazyShelf:
    """Looks like a tuple of one `Block`, and holds none.

    What is beside the rows is held: it was computed once, and is small.

    Attributes
    ----------
    make : callable
        Gives the features, ndarray or csr_array of shape (rows, d), of the data's dtype.
    index, start : int
        As of the `Block`.
    extra : mapping of name to ndarray or Narrow
    at_once : int or None
        How many such blocks a process works on at a time; None: as many as it has threads.
    """

    make: Callable[[], Any]
    index: int
    start: int
    extra: Mapping[str, np.ndarray | Narrow] = field(default_factory=dict)
    at_once: int | None = None

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[Block]:
        with _turns(self.at_once) if self.at_once else nullcontext():
            yield _Unmade(self)

    def __sizeof__(self) -> int:
        # Dask asks this when it decides what to spill.
        return 200 + sum(one.nbytes for one in self.extra.values())

    def __getitem__(self, item: int | slice) -> Any:
        if isinstance(item, slice):
            return tuple(self) if 0 in range(*item.indices(1)) else ()
        return next(iter(self))

    def beside(self, extras: Sequence[Mapping[str, np.ndarray | Narrow]]) -> LazyShelf:
        """The same rows with further per-row arrays."""
        return replace(self, extra={**self.extra, **extras[0]})


@cache
def _turns(at_once: int) -> Semaphore:
    """Of this process."""
    return Semaphore(at_once)
