"""Bytes that values take in memory, whoever asks, without a draw from any generator."""

from __future__ import annotations

from itertools import islice
from sys import getsizeof
from typing import Any

import numpy as np

_SOME = 256
"""Items, at even distances, that tell how large all are: a fraction of a millisecond."""
_FEW = 10
"""Items of an item: as many as Dask asks."""


def memory_of(value: Any, most: int = _SOME) -> int:
    """Bytes of a value with what is in it; about, where it has more than ``most`` items.

    Dask's own `sizeof`, by which people register their classes, says the rest: of many
    items it draws some from the generators of the process, which are the user's.
    """
    if isinstance(value, dict):
        items = _items(value.keys(), most) + _items(value.values(), most)
        return getsizeof(value) + items
    if isinstance(value, list | tuple | set | frozenset):
        return getsizeof(value) + _items(value, most)
    if isinstance(value, np.ndarray):
        return value.nbytes + (_items(value.flat, most) if value.dtype == object else 0)
    if hasattr(value, "tocsr"):
        return memory_of(vars(value))
    if hasattr(value, "memory_usage"):
        some = getattr(value, "iloc", value)[:: max(1, len(value) // most)]
        nbytes = float(np.sum(some.memory_usage(deep=True)))
        return int(nbytes * len(value) / max(1, len(some)))
    from dask.sizeof import sizeof

    return int(sizeof(value))


def _items(values: Any, most: int) -> int:
    """Bytes of all, where some take so many."""
    step = max(1, len(values) // most)
    ordered = hasattr(values, "__getitem__")
    some = [*(values[::step] if ordered else islice(values, 0, None, step))]
    return sum(memory_of(one, _FEW) for one in some) * len(values) // max(1, len(some))
