"""Blocks that nobody has used for long go to a file while a member's memory is scarce.

Whoever uses a block holds its lock: one whose lock is free can go, and is read again when
it is used the next time. So a shard may be larger than its member's memory.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import IO, Any

import numpy as np

from mlopt.cluster.memory import Spare
from mlopt.server.blocks import LARGEST, Array, Block

log = logging.getLogger("mlopt")


class Room:
    """Memory for the blocks of a shard, and a file for those that it has no room for.

    Parameters
    ----------
    spare : Spare or None
        None: there is room for all.

    Attributes
    ----------
    written : int
        Bytes that went to the file so far.
    """

    def __init__(self, spare: Spare | None) -> None:
        self._spare, self.written = spare, 0
        self._file: IO[bytes] | None = None
        self._making = threading.Lock()

    def make(self, blocks: Callable[[], Mapping[int, Block]]) -> None:
        """Put blocks away, those that were used the longest ago first, if memory is scarce.

        One that somebody uses just then stays.
        """
        if self._spare is None or (short := -self._spare.nbytes()) <= 0:
            return
        if not self._making.acquire(blocking=False):
            return  # somebody does
        try:
            oldest = sorted(blocks().items(), key=lambda one: one[1].used)
            for number, block in oldest:
                if short <= 0:
                    break
                short -= self._put_away(number, block)
        except OSError as error:
            log.warning("blocks could not be put away, and stay in memory: %s", error)
        finally:
            self._making.release()

    def close(self) -> None:
        """The file is gone, and what is in it."""
        with self._making:
            if self._file is not None:
                self._file.close()
            self._spare = None

    def _put_away(self, number: int, block: Block) -> int:
        if not block.lock.acquire(blocking=False):
            return 0
        try:
            went = block.put_away(partial(self._write, number))
        finally:
            block.lock.release()
        self.written += went
        return went

    def _write(self, number: int, arrays: Sequence[Array]) -> Callable[[], list[Array]]:
        if self._file is None:
            assert self._spare is not None
            self._file = tempfile.TemporaryFile(dir=self._spare.folder)  # noqa: SIM115  (kept)
        # Each block has a place of its own; those of small ones take no more than they are.
        at = number * LARGEST
        kinds = [(array.shape, array.dtype) for array in arrays]
        for array in arrays:
            at += _all(os.pwrite, self._file, np.ascontiguousarray(array), at)
        return partial(self._read, number, kinds)

    def _read(
        self, number: int, kinds: Sequence[tuple[tuple[int, ...], np.dtype]]
    ) -> list[Array]:
        assert self._file is not None
        at, arrays = number * LARGEST, [np.empty(*kind) for kind in kinds]
        for array in arrays:
            at += _all(_read_into, self._file, array, at)
        return arrays


def _all(
    call: Callable[[int, memoryview, int], int], file: IO[bytes], array: Array, at: int
) -> int:
    """Write or read all of an array, which may take several calls; gives its bytes."""
    flat: Any = array.reshape(-1).view(np.uint8)
    rest = memoryview(flat)
    while rest:
        done = call(file.fileno(), rest, at)
        if not done:
            raise OSError(f"the file of blocks ends at {at}")
        rest, at = rest[done:], at + done
    return array.nbytes


def _read_into(file: int, place: memoryview, at: int) -> int:
    found = os.pread(file, len(place), at)
    place[: len(found)] = found
    return len(found)
