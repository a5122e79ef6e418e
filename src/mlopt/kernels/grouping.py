"""Entries side by side with those of the same key, in time that grows with their number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import kernel, read_only

Array = NDArray[Any]


@kernel
def _place(keys: Array, starts: Array, order: Array) -> None:
    """``starts`` begins as zeros, one more than there are keys."""
    count = starts.shape[0] - 1
    for key in keys:
        starts[np.uint64(key) + np.uint64(1)] += 1
    for key in range(count):
        starts[key + 1] += starts[key]
    for i in range(keys.shape[0]):
        key = np.uint64(keys[i])
        order[starts[key]] = i
        starts[key] += 1
    for key in range(count, 0, -1):
        starts[key] = starts[key - 1]
    starts[0] = 0


@kernel
def _repeat(starts: Array, values: Array, seen: Array) -> int:
    for key in range(starts.shape[0] - 1):
        for at in range(starts[key], starts[key + 1]):
            value = np.uint64(values[at])
            if seen[value] == key:
                return at
            seen[value] = key
    return -1


def grouped(keys: Array, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A stable counting sort.

    Parameters
    ----------
    keys : int32 or int64 (n,)
        In 0 ... count-1.
    count : int

    Returns
    -------
    order : int64 (n,)
        Numbers of the entries by key; of one key, as they were.
    starts : int64 (count + 1,)
        Where each key begins in ``order``.
    """
    starts, order = np.zeros(count + 1, np.int64), np.empty(len(keys), np.int64)
    kind = np.int32 if count <= np.iinfo(np.int32).max else np.int64
    _place(read_only(keys.astype(kind, copy=False)), starts, order)
    return order, starts


def first_repeat(starts: Array, values: Array, count: int) -> int:
    """The place of the first value that its group has already, or -1.

    Parameters
    ----------
    starts : int64 (groups + 1,)
    values : int32 (n,)
        In 0 ... count-1, group by group.
    count : int
    """
    seen = np.full(count, -1, np.int64)
    return int(_repeat(read_only(starts), read_only(values), seen))
