"""Large dense blocks, a few rows at a time.

What a step makes of a block on the way (copies, masks, squares) then is as large as a
panel, and stays in the cache of a core. Of images, steps make much more than they are
given: what they make of a few tells how many go into a panel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

PANEL = 4 << 20
"""Bytes of a panel."""
_FEWEST = 256
"""Rows of a panel at least."""
FEW_IMAGES = 16
"""Of a panel at least: for fewer, calls take longer than the work."""


def panel_edges(values: Sequence[Any]) -> list[int]:
    """Where panels of arrays of as many rows begin, and the number of rows at the end.

    One panel when they are small, or when some of them is not a plain array of numbers.
    """
    n = len(values[0]) if isinstance(values[0], np.ndarray) else 0
    plain = all(isinstance(v, np.ndarray) and v.dtype.kind in "fiub" for v in values)
    nbytes = sum(value.nbytes for value in values) if plain and n else 0
    if nbytes <= 2 * PANEL:
        return [0, n]
    size = max(_FEWEST, PANEL * n // nbytes)
    return [*range(0, n, size), n]


class Chain(ABC):
    """Functions of rows one after the other."""

    @abstractmethod
    def traced(self, *values: Any) -> tuple[Any, int]:
        """The result, and the bytes of the largest array that was made on the way."""


def images_a_panel(largest: int, count: int) -> int:
    """How many images go into a panel, where ``count`` gave arrays of ``largest`` bytes."""
    return max(FEW_IMAGES, PANEL * count // max(1, largest))


def panels(*values: Any) -> Iterator[tuple[Any, ...]]:
    """The same rows of all arrays; None stays None.

    Parameters
    ----------
    *values : ndarray or None
        The first, which is not None, says how many there are.
    """
    edges = panel_edges([values[0]])
    if len(edges) == 2:
        yield values
        return
    for start, stop in pairwise(edges):
        yield tuple(None if value is None else value[start:stop] for value in values)


@dataclass(frozen=True)
class InPanels:
    """A function of rows, each of which goes by itself, on large blocks panel by panel.

    Attributes
    ----------
    function : callable
    cut : tuple of bool
        Which arguments are rows; the others go along whole.
    """

    function: Callable[..., Any]
    cut: tuple[bool, ...]

    @property
    def __name__(self) -> str:
        return str(getattr(self.function, "__name__", "row_wise"))

    def __call__(self, *values: Any) -> Any:
        rows = [v for v, cut in zip(values, self.cut, strict=True) if cut]
        edges, first = panel_edges(rows), None
        if isinstance(self.function, Chain) and _are_images(rows):
            head = [v[:FEW_IMAGES] if cut else v for v, cut in self._pairs(values)]
            first, largest = self.function.traced(*head)
            size = images_a_panel(largest, FEW_IMAGES)
            edges = [0, *range(FEW_IMAGES, len(rows[0]), size), len(rows[0])]
        if len(edges) == 2:
            return self.function(*values)
        if first is None:
            first = self._part(values, edges[0], edges[1])
        if type(first) is not np.ndarray or first.dtype.hasobject:
            return self.function(*values)
        whole = np.empty((edges[-1], *first.shape[1:]), first.dtype)
        whole[: edges[1]] = first
        for start, stop in pairwise(edges[1:]):
            part = self._part(values, start, stop)
            if part.dtype != whole.dtype or part.shape[1:] != whole.shape[1:]:
                return self.function(*values)
            whole[start:stop] = part
        return whole

    def _part(self, values: Sequence[Any], start: int, stop: int) -> Any:
        return self.function(
            *(v[start:stop] if cut else v for v, cut in self._pairs(values))
        )

    def _pairs(self, values: Sequence[Any]) -> Iterator[tuple[Any, bool]]:
        return zip(values, self.cut, strict=True)


def _are_images(rows: Sequence[Any]) -> bool:
    """Whether there are many rows, each an array of several axes."""
    first = rows[0]
    several = isinstance(first, np.ndarray) and first.ndim > 2
    return several and len(rows) == 1 and len(first) > 2 * FEW_IMAGES
