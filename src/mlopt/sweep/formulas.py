"""Tables as CSV that no spreadsheet runs; apart, as all who predict load it."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

FORMULA = re.compile(r"[=@\t\r].|[+-].*[^\d\s.,()/+-]", re.DOTALL)
"""What a spreadsheet would run: not a sign alone, as labels are, nor one before digits."""


def escape_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Texts that a spreadsheet would run as formulas get a quote in front."""

    texts = [name for name in frame if not is_numeric_dtype(frame[name].dtype)]
    # Of a million labels two differ: to look at each takes a fourth of a prediction.
    texts = [name for name in texts if any(map(_runs, _different(frame[name])))]
    return frame.assign(**{str(name): frame[name].map(_escaped) for name in texts})


def _escaped(value: Any) -> Any:
    return f"'{value}" if _runs(value) else value


def _runs(value: Any) -> bool:
    return isinstance(value, str) and FORMULA.match(value) is not None


def _different(column: Any) -> Any:
    try:
        return column.drop_duplicates()
    except TypeError:  # lists and the like
        return column


def csv_of(frame: pd.DataFrame, *, header: bool = True) -> bytes:
    """A table as CSV, safe to open in a spreadsheet."""
    names = [_escaped(name) for name in frame] if header else False
    text: str = escape_formulas(frame).to_csv(index=False, header=names)
    return text.encode()
