"""Arrays in blocks: what is held, locked, moved and counted as one.

::

    keys      0 1 2 3 4 5 6 7 8 9      rows of a table
    places    0 1 2 3 | 4 5 6 7 | 8 9  in order, or scattered by a hash
    blocks       5         6       7   of at most 2 MB, numbered through all tables

A block has exactly one owner at a time; its version counts them. Which operation each
client has done to it last is a part of the block, and goes where it goes: so an operation
that is asked for again, of whoever has the block by then, is done once.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError

Array = NDArray[Any]
Change = Callable[[Sequence[Array], Sequence[Array]], None]
"""``change(arrays, deltas)`` changes a block's arrays in place, or raises before it does.

Changes come in any order and are added up before they are sent: they must commute.
"""

LARGEST = 2 << 20
"""Bytes of a block, at most: a copy of one takes less than a millisecond, and that long its
lock is held. Arrays that are sent without a lock arrive torn."""

_GOLDEN = (math.sqrt(5) - 1) / 2
"""The golden section: multiples of it are spread the most evenly (Knuth, volume 3, 6.4)."""


def add(arrays: Sequence[Array], deltas: Sequence[Array]) -> None:
    """Add deltas to arrays of the same shapes."""
    if [one.shape for one in arrays] != [one.shape for one in deltas]:
        raise InputError(
            f"A delta must have the shapes of its block, {[a.shape for a in arrays]}; got "
            f"{[d.shape for d in deltas]}."
        )
    _check_kinds(arrays, deltas)
    add_to(arrays, deltas)


def add_to(arrays: Sequence[Array], deltas: Sequence[Array]) -> None:
    """Add in place; whole numbers must fit.

    Raises
    ------
    InputError
        A sum is beyond what its array holds; all are as they were.
    """
    pairs = list(zip(arrays, deltas, strict=True))
    totals = [_total(*pair) if pair[0].dtype.kind in "iu" else None for pair in pairs]
    for (array, delta), total in zip(pairs, totals, strict=True):
        if total is None:
            np.add(array, delta, out=array, casting="same_kind")
        else:
            array[...] = total


def _total(array: Array, delta: Array) -> Array:
    """The sum of whole numbers, if it fits."""
    delta = np.asarray(delta).astype(array.dtype, casting="same_kind")
    total = np.asarray(array + delta)
    # Signs of both that are not the sum's; where there are none, less than before.
    wrong = total < array if array.dtype.kind == "u" else (array ^ total) & (delta ^ total)
    if bool(wrong.any() if array.dtype.kind == "u" else (wrong < 0).any()):
        raise InputError(
            f"Sums are beyond what {array.dtype} holds: begin with a model of a wider type."
        )
    return total


def add_rows(arrays: Sequence[Array], deltas: Sequence[Array]) -> None:
    """Add deltas to some rows: the first of ``deltas`` are the rows, maybe some twice."""
    rows, *values = deltas
    wanted = [(len(rows), *array.shape[1:]) for array in arrays]
    if rows.ndim != 1 or wanted != [value.shape for value in values]:
        raise InputError(
            f"Deltas of rows must have the shapes {wanted}, got "
            f"{[value.shape for value in values]}."
        )
    if len(rows) and not (rows.min() >= 0 and rows.max() < len(arrays[0])):
        raise InputError(
            f"Rows of a block must be in 0 ... {len(arrays[0]) - 1}, got "
            f"{rows.min()} ... {rows.max()}."
        )
    _check_kinds(arrays, values)
    for array, value in zip(arrays, values, strict=True):
        np.add.at(array, rows, value)


def raise_to(arrays: Sequence[Array], deltas: Sequence[Array]) -> None:
    """Have numbers be at least those that are given."""
    for array, least in zip(arrays, deltas, strict=True):
        np.maximum(array, least, out=array)


CHANGES: Mapping[str, Change] = {"add": add, "add_rows": add_rows, "raise": raise_to}


def _check_kinds(arrays: Sequence[Array], deltas: Sequence[Array]) -> None:
    for array, delta in zip(arrays, deltas, strict=True):
        if not np.can_cast(delta.dtype, array.dtype, "same_kind"):
            raise InputError(f"A delta of {delta.dtype} cannot be added to {array.dtype}.")


class Block:
    """Some arrays, and what was done to them. Hold the lock for all but `packed`.

    Parameters
    ----------
    arrays : sequence of ndarray
        The block's own.
    version : int
        Owners that it has had.
    done : dict of int to int
        By clients: the number of the last operation that was done for each.
    changes : int
        Operations that were done.

    Attributes
    ----------
    gone : bool
        Whether it has another owner by now; nobody may change it any more.
    leaving : bool
        Whether it is being handed over.
    used : float
        When its arrays were used last, of `time.monotonic`.
    """

    def __init__(
        self,
        arrays: Sequence[Array],
        version: int,
        done: Mapping[int, int] | None = None,
        changes: int = 0,
    ) -> None:
        self._arrays, self.version, self.changes = list(arrays), version, changes
        self._away: Callable[[], list[Array]] | None = None
        self.used = time.monotonic()
        self.done = dict(done or {})
        self.lock = threading.Lock()
        self.gone = self.leaving = False

    @property
    def arrays(self) -> list[Array]:
        """The block's own; they come back if they were put away."""
        self.used = time.monotonic()
        if self._away is not None:
            self._arrays, self._away = self._away(), None
        return self._arrays

    def put_away(self, keep: Callable[[list[Array]], Callable[[], list[Array]]]) -> int:
        """Let ``keep`` have the arrays, which says how they come back; gives their bytes.

        Nothing of a block that has left, or is leaving: it is read without its lock.
        """
        if self.gone or self.leaving or self._away is not None:
            return 0
        self._away = keep(self._arrays)
        arrays, self._arrays = self._arrays, []
        return sum(array.nbytes for array in arrays)

    def update(
        self, client: int, sequence: int, change: Change, deltas: Sequence[Array]
    ) -> bool:
        """Do an operation, unless it is done; gives whether it was not."""
        if self.done.get(client, 0) >= sequence:
            return False
        change(self.arrays, deltas)
        self.done[client] = sequence
        self.changes += 1
        return True

    def copies(self) -> list[Array]:
        """Of the arrays: they may be sent when the lock is free again."""
        return [array.copy() for array in self.arrays]

    def packed(self, arrays: Sequence[Array]) -> list[Array]:
        """All that the block is, with these for its arrays, to be sent."""
        ids = np.array([*self.done.items()], np.int64).reshape(-1, 2)
        return [np.array([self.changes]), ids, *arrays]

    @staticmethod
    def unpacked(version: int, packed: Sequence[Array]) -> Block:
        """The block that was `packed`."""
        changes, ids, *arrays = packed
        return Block(arrays, version, dict(ids.tolist()), int(changes[0]))


@dataclass(frozen=True)
class Keys:
    """Rows 0 ... count - 1 of a table, in blocks of as many rows each but the last.

    Parameters
    ----------
    count : int
        Below 2^31.
    rows : int
        Of a block.
    hashed : bool
        Whether neighbours go to different blocks, so that keys that are in use together
        are not all one owner's.
    """

    count: int
    rows: int
    hashed: bool = False

    @staticmethod
    def of(count: int, row_bytes: int, least: int = 1, hashed: bool = False) -> Keys:
        """As few blocks as may be, and as many as ``least`` if there are so many rows.

        Raises
        ------
        InputError
            One row is larger than a block may be; or there are too many.
        """
        if not 0 <= count < 2**31:
            raise InputError(f"A table must have fewer than 2^31 rows, got {count}.")
        if row_bytes > LARGEST:
            raise InputError(
                f"A row of a table may have {LARGEST >> 20} MB, got "
                f"{row_bytes / 2**20:.1f}: make it several rows."
            )
        fit = LARGEST // max(1, row_bytes)
        rows = max(1, min(fit, math.ceil(count / max(1, least))))
        return Keys(count, rows, hashed and rows < count)

    @property
    def blocks(self) -> int:
        """How many there are."""
        return math.ceil(self.count / self.rows)

    def places(self, keys: Array) -> tuple[Array, Array]:
        """Of each key: the block, from 0, and the row within.

        Raises
        ------
        InputError
            There is no such key.
        """
        keys = np.asarray(keys, np.int64)
        if len(keys) and not (keys.min() >= 0 and keys.max() < self.count):
            raise InputError(
                f"Keys must be in 0 ... {self.count - 1}, got {keys.min()} ... "
                f"{keys.max()}."
            )
        places = keys * self._stride % self.count if self.hashed else keys
        return places // self.rows, places % self.rows

    def keys(self, block: int) -> Array:
        """Those of a block, row by row."""
        low = block * self.rows
        places = np.arange(low, min(low + self.rows, self.count))
        if not self.hashed:
            return places
        return places * pow(self._stride, -1, self.count) % self.count

    @property
    def _stride(self) -> int:
        # A bijection, and no table: neighbours are a golden section of all places apart.
        stride = max(1, round(self.count * _GOLDEN))
        while math.gcd(stride, self.count) != 1:
            stride += 1
        return stride
