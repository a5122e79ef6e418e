"""Trials on samples of several sizes: what the profile of a pipeline is taken from.

KeystoneML profiles on 512 and 1024 rows (V-D). Where rows are many, a third sample tells
what is short from noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mlopt.cluster import Executor
from mlopt.pipeline.blocks.cut import Blocks
from mlopt.pipeline.graph.operators import Operator
from mlopt.pipeline.profiling.sampling import take_sample
from mlopt.pipeline.profiling.trial import Trial

Found = TypeVar("Found")

SIZES = (512, 1024)
"""Rows of the two samples."""
SHARE, LARGEST = 40, 8192
"""A third takes this share of all rows, and so many at most."""
FEW, PART = 1000, 4
"""Up to so many rows all of them are the sample; of few more, this part at most."""


class Samples:
    """Drawn when they are first needed.

    Parameters
    ----------
    sources : mapping of token to Blocks
    executor : Executor

    Attributes
    ----------
    total : int or None
        Rows in all, if they are counted.
    """

    def __init__(self, sources: Mapping[str, Blocks], executor: Executor) -> None:
        self._sources, self._executor = sources, executor
        first = next(iter(sources.values()))
        self.total = sum(first.lengths) if first.lengths else None
        self.blocks = first.count
        self._least = 0
        self._trials: tuple[Trial, ...] = ()

    @property
    def all(self) -> tuple[Trial, ...]:
        """By size. The largest sample is drawn; the others are some of its rows."""
        if not self._trials:
            rows = take_sample(self._sources, self._executor, self._largest())
            sizes = SIZES if rows.size > SIZES[-1] else (rows.size // 2,)
            smaller = [rows.part(n) for n in sizes if self._smallest(rows.size) <= n]
            self._trials = (*map(Trial, smaller), Trial(rows))
        return self._trials

    @property
    def large(self) -> Trial:
        """On the largest sample."""
        return self.all[-1]

    def example(self, op: Operator) -> Any:
        """Some rows of an operator's value."""
        return self.large.value(op)

    def enough_for(self, work: Callable[[], Found]) -> Found:
        """``work()``, on larger samples if it fails on small ones.

        A step may ask for more rows than a sample has: so many components, so many
        clusters. What fails on the largest sample is not the sample's fault.
        """
        try:
            return work()
        except Exception:
            if not self._trials or not self._enlarge():
                raise
        return work()

    def _enlarge(self) -> bool:
        before, self._least = self.large.rows, LARGEST
        self._trials = ()
        return self.large.rows > before

    def _largest(self) -> int:
        if self.total is None:
            return max(SIZES[-1], self._least)
        if self.total <= FEW:
            return self.total
        many = min(self.total // SHARE, LARGEST)
        return max(min(SIZES[-1], self.total // PART), many, self._least)

    def _smallest(self, largest: int) -> int:
        """Rows of the smallest sample: half of all where small ones have failed."""
        few = self.total is not None and self.total <= FEW
        return largest if few else largest // 2 if self._least else 1
