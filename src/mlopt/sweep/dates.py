"""Dates that are written as texts: how to tell and how to read them."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

MONTHS = ("jan feb mar apr may jun jul aug sep oct nov dec").split()  # noqa: SIM905
DAYS = (
    "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%m-%d-%Y", "%d-%m-%Y",
    "%d %b %Y", "%b %d %Y", "%Y %b %d",
)  # fmt: skip
TIMES = (
    "", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p",
)  # fmt: skip
FORMATS = ("ISO8601", *(day + time for day, time in product(DAYS, TIMES)))
PARTS = ("year", "month", "day", "day_of_week", "hour", "minute")

_MONTH = re.compile(rf"(?i)\b({'|'.join(MONTHS)})[a-z]*")
_BETWEEN = re.compile(r"(?i)(?<=\d)(?:st|nd|rd|th)\b[\s.,/-]*|(?<!:\d\d)[\s.,/-]+|\s+")
LOOKS_LIKE_A_DATE = re.compile(
    rf"(?i)\s*(?:\d{{1,4}}[-/.]\d{{1,2}}[-/.]\d{{1,4}}"
    rf"|(?:\d{{1,4}}(?:st|nd|rd|th)?[\s./-]+)?(?:{'|'.join(MONTHS)})[a-z]*[\s.,/-]+\d)"
)


def date_format(values: pd.Series) -> str | None:
    """The first format of `FORMATS` that reads most of these texts as dates, or None where
    none reads nearly all."""
    sample = values.iloc[:: max(1, len(values) // 1000)]
    if sample.str.match(LOOKS_LIKE_A_DATE).mean() < 0.95:
        return None
    best, most = None, 0.95
    for layout in FORMATS:
        share = float(read_dates(sample, layout).notna().mean())
        if share > most:
            best, most = layout, share
        if most == 1.0:
            break
    return best


def read_dates(column: pd.Series, layout: str) -> pd.Series:
    """Dates without a time zone; what cannot be read is missing.

    Names of months are read in English, long and short alike.
    """
    if not layout and column.dtype.kind in "OU":
        # Of texts pandas would take the first one's format, and all others for missing.
        layout = "ISO8601"
    if "%b" in layout and not pd.api.types.is_datetime64_any_dtype(column.dtype):
        column = column.map(_plain, na_action="ignore")
        layout = layout.replace("%b", "%m")  # names would be those of the process' language
    dates = pd.to_datetime(column, errors="coerce", utc=True, format=layout or None)
    return dates.dt.tz_localize(None)


def varying_parts(dates: pd.Series) -> tuple[str, ...]:
    """The parts of a date that differ between rows, and "days" since 1970."""
    known = dates.dropna()
    return ("days", *(p for p in PARTS if getattr(known.dt, p).nunique() > 1))


def date_part(dates: pd.Series, part: str) -> np.ndarray:
    """One part of dates as floats, (n,); NaN where the date is missing."""
    if part == "days":
        return np.asarray((dates - pd.Timestamp(0)) / pd.Timedelta(days=1), dtype=float)
    return np.asarray(getattr(dates.dt, part), dtype=float)


def _plain(cell: Any) -> Any:
    """ "16th December, 2005" as "16 12 2005"; what is no text is a date already."""
    if not isinstance(cell, str):
        return cell
    text = _MONTH.sub(lambda name: f"{MONTHS.index(name[1].lower()) + 1}", cell.strip())
    return _BETWEEN.sub(" ", text).strip()
