"""A hash table of numbers: open addressing in an array of shape (slots, 2), int64.

A slot holds a key and its number side by side, which is one line of cache; the number is
`FREE` where the slot is empty. There are a power of 2 slots, never all in use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import config
from numpy.typing import NDArray

from mlopt.kernels.compiled import allocating, inlined

Array = NDArray[Any]

FREE = -1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


def power_of_two(least: int) -> int:
    """The next power of 2, at least 1024."""
    return 1 << max(10, (max(least, 1) - 1).bit_length())


def _wrapped(a: Any, b: Any) -> Any:
    """What `_product` does without compilation, where NumPy warns of an overflow."""
    return np.uint64(int(a) * int(b) & 0xFFFFFFFFFFFFFFFF)


@inlined
def _product(a: Any, b: Any) -> Any:
    return a * b


times = _wrapped if config.DISABLE_JIT else _product
"""The low 64 bits of a product of unsigned numbers."""


@inlined
def slot_of(key: Any, mask: Any) -> Any:
    """Where to look for a key first; ``mask`` is one less than there are slots."""
    # Knuth, TAOCP 3, 6.4: the high bits of a product depend on all bits of the key.
    stirred = times(np.uint64(key), _GOLDEN)
    return np.int64((stirred >> _HALF) & np.uint64(mask))


@inlined
def slot_for(table: Array, key: Any) -> Any:
    """The slot that has a key, or the free one that it would go to."""
    mask = len(table) - 1
    slot = slot_of(key, mask)
    while table[slot, 0] != key and table[slot, 1] != FREE:
        slot = (slot + 1) & mask
    return slot


@allocating
def twice(table: Array) -> Array:
    """A table with twice the slots and the same keys."""
    mask = 2 * len(table) - 1
    larger = np.full((mask + 1, 2), FREE, np.int64)
    for old in range(len(table)):
        if table[old, 1] != FREE:
            slot = slot_of(table[old, 0], mask)
            while larger[slot, 1] != FREE:
                slot = (slot + 1) & mask
            larger[slot, 0], larger[slot, 1] = table[old, 0], table[old, 1]
    return larger
