"""Quantiles of columns from a summary that merges, with a known bound on its error.

A level holds rows that each stand for ``2**level`` rows of the data, every column sorted
on its own. Of a level of `SIZE` rows or more every second value of each column, in order,
moves one level up; which half, alternates. Such a step moves the rank of any value by at
most ``2**level``, and takes at least `SIZE` values of that weight: the steps of one level
move it by ``n / SIZE`` at most, and those of all levels together by

    |rank found - rank| <= n / SIZE * (1 + log2(n / SIZE)),

0.05% of n for a million rows. As long as there are fewer than `SIZE` rows, all are kept
and nothing is approximate. There is no chance in it: the same blocks, merged in the same
order, give the same summary.

Manku, Rajagopalan, Lindsay, "Approximate medians and other quantiles in one pass and with
limited memory", 1998; Agarwal et al., "Mergeable summaries", 2012, section 3.

Shapes: d columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIZE = 1 << 14
"""Rows that a level may not reach."""


@dataclass(frozen=True)
class Sketch:
    """A summary of the values of each column.

    Attributes
    ----------
    levels : tuple of ndarray of shape (m, d)
        Values that stand for ``2**level`` values each.
    steps : tuple of int
        How often each level was halved.
    """

    levels: tuple[NDArray[Any], ...]
    steps: tuple[int, ...]

    @staticmethod
    def of(X: NDArray[Any], size: int | None = None) -> Sketch:
        """Of the columns of one block; no value may be missing.

        Parameters
        ----------
        X : ndarray of shape (n, d)
        size : int, default=SIZE
            Rows that a level may not reach; the same for all that are merged.
        """
        return Sketch((X,), (0,))._halved(size or SIZE)

    def merged(self, other: Sketch, size: int | None = None) -> Sketch:
        """Of the rows of both."""
        none = self.levels[0][:0]
        pairs = zip_longest(self.levels, other.levels, fillvalue=none)
        levels = tuple(np.concatenate(pair) for pair in pairs)
        steps = zip_longest(self.steps, other.steps, fillvalue=0)
        return Sketch(levels, tuple(map(sum, steps)))._halved(size or SIZE)

    @property
    def exact(self) -> bool:
        """Whether every value is there."""
        return len(self.levels) == 1

    def points(self) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """The values kept, of shape (m, d), and how many each stands for, (m,)."""
        weights = [np.full(len(rows), 2.0**level) for level, rows in enumerate(self.levels)]
        return np.concatenate(self.levels), np.concatenate(weights)

    def _halved(self, size: int) -> Sketch:
        """The same with fewer than ``size`` rows on every level."""
        levels, steps, level = list(self.levels), list(self.steps), 0
        while level < len(levels):
            if len(levels[level]) >= size:
                if level + 1 == len(levels):
                    levels.append(levels[level][:0])
                    steps.append(0)
                values = np.sort(levels[level], axis=0)
                even = len(values) & ~1
                moved = values[steps[level] % 2 : even : 2]
                levels[level + 1] = np.concatenate((levels[level + 1], moved))
                # the last of an odd number stays, with its weight
                levels[level] = values[even:]
                steps[level] += 1
            level += 1
        return Sketch(tuple(levels), tuple(steps))
