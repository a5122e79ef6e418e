"""What people should know of single cells and columns of a table: what cannot be read, and
what gives the target away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from mlopt.readers.notation import cells_of
from mlopt.sweep.dates import read_dates
from mlopt.sweep.vectors import lost_of

SAMPLE = 2000
"""Rows that tell of most columns that they do not determine the target."""
ROWS_A_VALUE = 5
"""Rows that a value of a column must have on average, to say something by agreeing."""
LISTED = 5
"""Rows that a message names at most."""

_TRUTHS = {"true": 1.0, "false": 0.0}


def row_list(rows: NDArray[np.int64]) -> str:
    """Numbers of rows, from 1."""
    shown = ", ".join(f"{row + 1:,}" for row in rows[:LISTED])
    more = f" and {len(rows) - LISTED:,} more" if len(rows) > LISTED else ""
    return f"row{'s' * (len(rows) > 1)} {shown}{more}"


def unreadable(
    frame: pd.DataFrame,
    numbers: Iterable[str],
    dates: Mapping[str, str],
    decimals: Mapping[str, str],
    vectors: Mapping[str, int],
) -> list[str]:
    """A sentence for each column with cells that are missing to a model as they cannot be
    read.
    """
    sentences = []
    read: dict[str, tuple[str, Any]] = {}
    for name in numbers:
        reader = partial(numbers_of, decimal=decimals.get(name, "."))
        if is_text(frame[name]):
            read[name] = ("number", reader)
        elif frame[name].dtype.kind == "f":
            read[name] = ("finite number", reader)
    for name, layout in dates.items():
        if is_text(frame[name]):
            read[name] = ("date", lambda c, layout=layout: read_dates(c, layout))
    for name, length in vectors.items():
        read[name] = (f"list of {length} numbers", partial(lost_of, length=length))
    for name, (kind, reader) in read.items():
        column = frame[name]
        lost = np.asarray(pd.isna(reader(column)) & column.notna())
        if lost.any():
            rows = np.flatnonzero(lost)
            are = "are" if len(rows) > 1 else "is"
            cell = column.iloc[rows[0]]
            cell = cell.item() if isinstance(cell, np.generic) else cell
            sentences.append(
                f"`{name}`: {len(rows):,} of {len(column):,} cells {are} no {kind} and "
                f"{are} taken as missing: {cell!r:.80} in {row_list(rows)}"
            )
    return sentences


def numbers_of(column: pd.Series, decimal: str) -> NDArray[np.float64]:
    """Cells as floats, NaN where there is no finite number."""
    values = _as_float(column, decimal)
    return np.where(np.isinf(values), np.nan, values)


def _as_float(column: pd.Series, decimal: str) -> NDArray[np.float64]:
    if column.dtype.kind in "fiub" and isinstance(column.dtype, np.dtype):
        return np.asarray(column, dtype=float)
    if column.dtype.kind == "m":
        return np.asarray(column / pd.Timedelta(seconds=1), dtype=float)
    if is_text(column):
        # A column of True and False with a gap comes as text, or as objects. Each cell is
        # read for itself: what it is does not depend on who came with it.
        truths = column.astype(str).str.strip().str.lower().map(_TRUTHS)
        return np.asarray(truths.fillna(cells_of(column, decimal)), dtype=float)
    numbers = pd.to_numeric(column, errors="coerce").astype("Float64")
    return np.asarray(numbers.to_numpy(dtype=float, na_value=np.nan))


def notations(frame: pd.DataFrame, decimals: Mapping[str, str]) -> list[str]:
    """A sentence for each column of numbers in people's notation."""
    sentences = []
    for name, decimal in decimals.items():
        values = cells_of(frame[name], decimal)
        known = np.flatnonzero(values.notna())
        if len(known):
            cell, value = frame[name].iloc[known[0]], values.iloc[known[0]]
            sentences.append(f"`{name}`: {cell!r} is read as {value:g}")
    return sentences


def is_text(column: pd.Series) -> bool:
    """Whether the cells of a column must be read to be numbers."""
    return not (
        types.is_numeric_dtype(column.dtype)
        or types.is_bool_dtype(column.dtype)
        or types.is_datetime64_any_dtype(column.dtype)
        or types.is_timedelta64_dtype(column.dtype)
    )


def giveaways(frame: pd.DataFrame, names: Iterable[str], y: NDArray[Any]) -> list[str]:
    """The columns that determine the target exactly."""
    return [name for name in names if _determines(frame[name], y)]


def _determines(column: pd.Series, y: NDArray[Any]) -> bool:
    known = column.notna().to_numpy()
    if known.sum() < len(y) / 2:
        return False
    column, y = column[known], y[known]
    if y.dtype.kind == "f" and _is_line(column, y):
        return True
    return _is_function(column[:SAMPLE], y[:SAMPLE]) and _is_function(column, y)


def _is_function(column: pd.Series, y: NDArray[Any]) -> bool:
    values, answers = pd.factorize(column)[0], pd.factorize(y)[0]
    levels, classes = int(values.max()) + 1, int(answers.max()) + 1
    if classes < 2 or levels * ROWS_A_VALUE > len(y):
        return False
    pairs = np.unique(values.astype(np.int64) * classes + answers)
    return len(pairs) == levels


def _is_line(column: pd.Series, y: NDArray[Any]) -> bool:
    """Whether the target is the column times a number plus a number."""
    x = cells_of(column, ".") if is_text(column) else pd.to_numeric(column, errors="coerce")
    x = np.asarray(x, dtype=float)
    if not np.isfinite(x).all():
        return False
    low, high = int(x.argmin()), int(x.argmax())
    spread = np.ptp(y)
    if x[low] == x[high] or spread == 0:
        return False
    slope = (y[high] - y[low]) / (x[high] - x[low])
    return bool(np.abs(y - y[low] - slope * (x - x[low])).max() <= 1e-9 * spread)
