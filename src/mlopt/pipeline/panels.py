"""Large dense blocks, a few rows at a time.

What a step makes of a block on the way (copies, masks, squares) then is as large as a
panel, and stays in the cache of a core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

PANEL = 4 << 20
"""Bytes of a panel."""
_FEWEST = 256


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
        edges = panel_edges([v for v, cut in zip(values, self.cut, strict=True) if cut])
        if len(edges) == 2:
            return self.function(*values)
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
            *(v[start:stop] if cut else v for v, cut in zip(values, self.cut, strict=True))
        )
