"""Some rows of every source, the same rows of each, spread over the blocks."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlopt.cluster import Executor
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.blocks.cut import Blocks, ask
from mlopt.stats import sample_block, sample_shares

_FIRST, _MOST = 3, 64
"""Blocks read for a sample in any case, where reading them is work, and at most."""
_SECONDS = 0.5
"""What reading more blocks than the first may take, on all threads."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of the sources.

    Attributes
    ----------
    rows : mapping of token to rows
        Of each source, the same rows.
    total : int
        How many rows there are in all; estimated when nobody has counted them.
    """

    rows: Mapping[str, Any]
    total: int

    @property
    def size(self) -> int:
        """How many rows were taken."""
        return tables.count_rows(next(iter(self.rows.values())))

    def part(self, size: int) -> Sample:
        """Fewer rows, evenly among these."""
        step = max(1, self.size // size)
        picked = list(range(0, self.size, step))[:size]
        rows = {token: tables.take_rows(data, picked) for token, data in self.rows.items()}
        return Sample(rows, self.total)


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
    counted = next((b.lengths for b in found if b.lengths is not None), None)
    count = found[0].count
    picked = list(range(count))
    if any(blocks.lazy for blocks in found) and not everywhere:
        picked = _spread(count, _FIRST)
    # For each block the rows taken, and how many it has.
    begin = time.perf_counter()
    parts = _asked(sources, executor, counted, picked, size)
    took = time.perf_counter() - begin
    if len(picked) < count and took < _SECONDS:
        more = min(_MOST, int(len(picked) * _SECONDS / max(took, 1e-3)))
        if more > len(picked):
            picked = _spread(count, more)
            parts = _asked(sources, executor, counted, picked, size)
    lengths = [length for _, length in next(iter(parts.values()))]
    total = sum(counted) if counted else round(sum(lengths) / len(lengths) * count)
    rows = {
        token: tables.stack([taken for taken, n in part if n] or [part[0][0]], token)
        for token, part in parts.items()
    }
    return Sample(rows, total)


def _spread(count: int, most: int) -> list[int]:
    """Numbers of blocks from the first to the last, evenly."""
    few = min(count, most)
    return sorted({number * (count - 1) // max(1, few - 1) for number in range(few)})


def _asked(
    sources: Mapping[str, Blocks],
    executor: Executor,
    counted: tuple[int, ...] | None,
    picked: list[int],
    size: int,
) -> dict[str, list[tuple[Any, int]]]:
    """By source, for each block that is picked: its share of the rows, and its length."""
    if counted is None:
        shares = [-(-size // len(picked))] * len(picked)
    else:
        shares = sample_shares([counted[number] for number in picked], size)
    pairs = zip(picked, shares, strict=True)
    wanted = {number: (share, number) for number, share in pairs}
    return {
        token: ask(blocks, executor, "sample", _take, wanted)
        for token, blocks in sources.items()
    }


def _take(block: Any, share: int, number: int) -> tuple[Any, int]:
    n = tables.count_rows(block)
    return tables.take_rows(block, sample_block(n, share, 0, number)), n
