"""How often each value comes: of numbers, and of objects that can be hashed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Counts:
    """Values that differ, and how often each comes.

    Attributes
    ----------
    values : ndarray of shape (m,)
    counts : ndarray of shape (m,)
    """

    values: NDArray[Any]
    counts: NDArray[np.int64]

    @staticmethod
    def of(values: NDArray[Any]) -> Counts:
        """Of one array."""
        if values.dtype.kind == "O":
            return _of_objects(Counter(values.tolist()))
        return Counts(*np.unique(values, return_counts=True))

    def __add__(self, other: Counts) -> Counts:
        values = np.concatenate((self.values, other.values))
        return _summed(values, np.concatenate((self.counts, other.counts)))

    def most(self) -> NDArray[Any]:
        """The values that come most often: several, if they come equally often."""
        return np.asarray(self.values[self.counts == self.counts.max(initial=0)])


def _summed(values: NDArray[Any], counts: NDArray[np.int64]) -> Counts:
    """Counts of values that may come more than once."""
    if values.dtype.kind != "O":
        found, codes = np.unique(values, return_inverse=True)
        totals = np.zeros(len(found), np.int64)
        np.add.at(totals, codes, counts)
        return Counts(found, totals)
    total: Counter[Any] = Counter()
    for value, count in zip(values, counts.tolist(), strict=True):
        total[value] += count
    return _of_objects(total)


def _of_objects(counted: Counter[Any]) -> Counts:
    values = np.empty(len(counted), object)
    values[:] = list(counted)
    return Counts(values, np.fromiter(counted.values(), np.int64, len(counted)))
