"""Some rows of every source, the same rows of each, spread over the blocks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import Executor
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.blocks.cut import Blocks, ask
from mlopt.prices import price
from mlopt.stats import sample_block, sample_shares

_FIRST, _MOST = 3, 64
"""Blocks read for a sample in any case, where reading them is work, and at most."""
_SECONDS = price("sample.blocks")


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of the sources.

    Attributes
    ----------
    rows : mapping of token to rows
        Of each source, the same rows.
    total : int
        How many rows there are in all.
    places : ndarray of int, or None
        Which of all rows these are, where anybody knows.
    """

    rows: Mapping[str, Any]
    total: int
    places: NDArray[np.int64] | None = None

    @property
    def size(self) -> int:
        """How many rows were taken."""
        return tables.count_rows(next(iter(self.rows.values())))

    def part(self, size: int) -> Sample:
        """Fewer rows, evenly among these."""
        few = min(size, self.size)
        picked = (np.arange(few) * self.size // max(1, few)).tolist()
        rows = {token: tables.take_rows(data, picked) for token, data in self.rows.items()}
        return Sample(
            rows, self.total, None if self.places is None else self.places[picked]
        )

    def beside(self, values: Any) -> Any:
        """Of ``values``, one for each of all rows, those that go with these; None where
        they are not as many, or nobody knows which rows these are."""
        if self.places is None or tables.count_rows(values) != self.total:
            return None
        return tables.take_rows(values, self.places)


def take_sample(
    sources: Mapping[str, Blocks],
    executor: Executor,
    size: int,
    *,
    everywhere: bool = False,
) -> Sample:
    """``size`` rows of all sources, or all rows if there are not as many.

    Every block gives its share. Where blocks must be read first, some do, from the first to
    the last: as many as are read in half a second, unless it is to be ``everywhere``.
    """
    found = list(sources.values())
    counted, count = found[0].lengths, found[0].count
    assert counted is not None  # by `bind`, which leaves empty blocks out
    picked = list(range(count))
    if any(blocks.lazy for blocks in found) and not everywhere:
        picked = _spread(count, _FIRST)
    begin = time.perf_counter()
    shares = _shares(counted, picked, size)
    parts = _asked(sources, executor, shares)
    took = time.perf_counter() - begin
    if len(picked) < count and took < _SECONDS:
        more = min(_MOST, int(len(picked) * _SECONDS / max(took, 1e-3)))
        if more > len(picked):
            shares = _shares(counted, _spread(count, more), size)
            parts = _asked(sources, executor, shares)
    rows = {token: tables.stack(part, token) for token, part in parts.items()}
    return Sample(rows, sum(counted), _places(counted, shares))


def _spread(count: int, most: int) -> list[int]:
    """Numbers of blocks from the first to the last, evenly."""
    few = min(count, most)
    return sorted({number * (count - 1) // max(1, few - 1) for number in range(few)})


def _shares(counted: Sequence[int], picked: list[int], size: int) -> dict[int, int]:
    """How many rows each block gives that is picked."""
    shares = sample_shares([counted[number] for number in picked], size)
    return dict(zip(picked, shares, strict=True))


def _asked(
    sources: Mapping[str, Blocks], executor: Executor, shares: Mapping[int, int]
) -> dict[str, list[Any]]:
    """By source, of each block that is picked: its share of the rows."""
    wanted = {number: (share, number) for number, share in shares.items()}
    return {
        token: ask(blocks, executor, "sample", _take, wanted)
        for token, blocks in sources.items()
    }


def _places(counted: Sequence[int], shares: Mapping[int, int]) -> NDArray[np.int64]:
    """Of all rows, the numbers of those that `_asked` takes."""
    starts = np.cumsum([0, *counted])
    taken = (starts[i] + sample_block(counted[i], n, 0, i) for i, n in shares.items())
    return np.concatenate([*taken])


def _take(block: Any, share: int, number: int) -> Any:
    picked = sample_block(tables.count_rows(block), share, 0, number)
    return tables.take_rows(block, picked)
