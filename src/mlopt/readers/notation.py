"""Numbers as people write them: ``1.234,50``, ``$70,123.00``, ``12 %``.

A column is taken for numbers only when every cell is one; what a cell means follows from a
decimal sign for the whole column, never from the cell alone: "1,500" may be either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_SYMBOLS = "$€£¥%"
_SIGN = rf"[+-]?\s?[{_SYMBOLS}]?\s?[+-]?"
_PATTERNS = {
    mark: rf"{_SIGN}(?:(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|\d+)(?:{mark_}\d+)?|{mark_}\d+)"
    rf"\s?[{_SYMBOLS}]?"
    for mark, mark_, group in ((".", r"\.", ","), (",", ",", r"[. \u00a0\u202f'’]"))
}


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column of texts that are all numbers.

    Parameters
    ----------
    values : Series of float
    example : str
        A cell, and what it is read as.
    """

    values: Any
    example: str


def numbers_of(texts: Any, decimal: str) -> Numbers | None:
    """The numbers of a Series of texts, or None where a cell is none or units differ."""
    uniques = texts.dropna().drop_duplicates()
    if uniques.empty:
        return None
    some = uniques.iloc[0]
    if cells_of(uniques.iloc[:1], decimal).isna().any():
        return None
    if not _is_certain(uniques, decimal):
        return None
    units = uniques.str.extract(rf"([{_SYMBOLS}])", expand=False).fillna("").unique()
    values = cells_of(texts, decimal)
    if len(units) > 1 or values[texts.notna()].isna().any():
        return None
    return Numbers(values, f"{some!r} is read as {values[uniques.index[0]]:g}")


def are_written(texts: Any, decimal: str) -> bool:
    """Whether all cells of a Series of texts are numbers of this notation."""
    return bool(texts.dropna().str.fullmatch(_PATTERNS[decimal]).all())


def cells_of(texts: Any, decimal: str) -> Any:
    """A Series of floats: NaN where a text is missing or no number."""
    import pandas as pd

    cells = texts.astype(object)
    if not isinstance(texts.dtype, pd.StringDtype):  # to `factorize`, True and 1 are one
        cells = cells.map(str)
    cells = cells.where(texts.notna(), None)
    codes, uniques = pd.factorize(cells)
    cells = pd.Series(uniques, dtype=object).str.strip()
    written = cells.str.fullmatch(_PATTERNS[decimal]).astype(bool)
    # What is no number in this notation may still be a plain one: 1e-5, 1.5.
    plain = cells[written].str.replace(rf"[^\d+\-{decimal}]", "", regex=True)
    cells[written] = plain.str.replace(decimal, ".", regex=False)
    values = pd.to_numeric(cells, errors="coerce").to_numpy(float)
    found = np.where(codes < 0, np.nan, np.append(values, np.nan)[codes])
    return pd.Series(found, index=texts.index, name=texts.name)


def decimal_of(texts: Any) -> str:
    """The decimal sign by which most cells are numbers; a point where both do."""
    comma = cells_of(texts, ",").notna()
    if not comma.any() or not _is_certain(texts[comma], ","):
        return "."
    return "," if comma.sum() > cells_of(texts, ".").notna().sum() else "."


def _is_certain(texts: Any, decimal: str) -> bool:
    """Groups of digits with nothing but blanks between them may be codes."""
    marks = "," if decimal == "." else ",."
    return bool(texts.str.contains(f"[{_SYMBOLS}{marks}]").any())
