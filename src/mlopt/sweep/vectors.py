"""Columns whose cells are lists of as many numbers each, as embeddings are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def length_of(column: pd.Series) -> int:
    """How many numbers each cell has; 0 where some are no such lists, or others."""
    length = 0
    for cell in column.dropna() if _may_be(column) else ():
        found = _numbers(cell)
        if found is None or len(found) != (length := length or len(found)):
            return 0
    return length


def vectors_of(column: pd.Series, length: int) -> NDArray[np.float64]:
    """Cells as rows (n, length); NaN where a cell, or one of its numbers, is none."""
    found = np.full((len(column), length), np.nan)
    for row, cell in enumerate(column):
        numbers = _numbers(cell)
        if numbers is not None and len(numbers) == length:
            found[row] = numbers
    found[np.isinf(found)] = np.nan
    return found


def lost_of(column: pd.Series, length: int) -> NDArray[np.float64]:
    """(n,): NaN where a cell is no vector of that length, else 0."""
    return np.where(np.isnan(vectors_of(column, length)).all(axis=1), np.nan, 0.0)


def parts_of(name: str, length: int) -> list[str]:
    """What the columns of numbers are called."""
    return [f"{name}[{place}]" for place in range(length)]


def _may_be(column: pd.Series) -> bool:
    return column.dtype == object or "list" in str(column.dtype)


def _numbers(cell: Any) -> NDArray[np.float64] | None:
    if not isinstance(cell, list | tuple | np.ndarray):
        return None
    if isinstance(cell, np.ma.MaskedArray):  # of DuckDB's lists
        cell = np.ma.filled(cell.astype(object), np.nan)
    found = np.asarray(cell)
    if found.ndim != 1 or found.dtype.kind not in "iufbO":
        return None
    try:
        return found.astype(np.float64)
    except (TypeError, ValueError):
        return None
