"""What each column of a table is: a number, a category, a date, a text, or of no
use.

Judged by dtype and by how many values there are, on the training rows, never by the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from pandas.api import types

from mlopt.readers.notation import cells_of, decimal_of
from mlopt.sweep.dates import date_format, read_dates, varying_parts
from mlopt.sweep.texts import TOPICS, are_sentences
from mlopt.sweep.vectors import length_of

CODE_LEVELS = 12
"""Whole numbers with at most so many values are taken as categories by linear models."""

FEW_LEVELS = 200
"""Categories with more values than this are replaced by what the target does there."""

MOSTLY_OWN = 0.9
"""Values for a row from which nearly every row has its own."""

MOSTLY = 0.95
"""Share of rows with a number from which other cells of a column are taken as missing."""


@dataclass(frozen=True)
class Roles:
    """The columns of a table by role.

    Parameters
    ----------
    numbers : tuple of str
        Used as they are.
    codes : tuple of str
        Whole numbers with few values: numbers to a tree, categories to a linear model.
    categories : mapping of str to int
        Text and the like, with the number of values each has.
    dates : mapping of str to str
        Dates, with the format that reads them ("" when they are dates already: texts are
        read as ISO 8601 then).
    parts : mapping of str to tuple of str
        Which parts of each date differ between rows: only they say anything.
    dropped : mapping of str to str
        Columns that are not used, and why.
    decimals : mapping of str to str
        Of numbers in people's notation, as in "$1,234.50", the sign in front of decimals.
    vectors : mapping of str to int
        Lists of numbers, as embeddings are, with how many each has.
    texts : tuple of str
        Sentences, of which nearly every row has its own.
    """

    numbers: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    categories: Mapping[str, int] = field(default_factory=dict)
    dates: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dropped: Mapping[str, str] = field(default_factory=dict)
    decimals: Mapping[str, str] = field(default_factory=dict)
    vectors: Mapping[str, int] = field(default_factory=dict)
    texts: tuple[str, ...] = ()

    @property
    def few(self) -> tuple[str, ...]:
        """Categories that can be spelled out."""
        return tuple(name for name, n in self.categories.items() if n <= FEW_LEVELS)

    @property
    def many(self) -> tuple[str, ...]:
        """Categories with too many values for that."""
        return tuple(name for name, n in self.categories.items() if n > FEW_LEVELS)

    @property
    def used(self) -> tuple[str, ...]:
        """All columns that models see."""
        return (*self.cells, *self.vectors, *self.texts)

    @property
    def cells(self) -> tuple[str, ...]:
        """Those of them that have a value in each cell."""
        return (*self.numbers, *self.codes, *self.categories, *self.dates)

    @property
    def width(self) -> int:
        """Columns that trees see: parts of dates and vectors, and topics of texts, are a
        column each."""
        parts = sum(map(len, self.parts.values())) + sum(self.vectors.values())
        plain = len(self.numbers) + len(self.codes) + len(self.categories)
        return plain + parts + TOPICS * len(self.texts)

    def describe(self) -> list[str]:
        """A sentence a role, for the log and the report."""
        kinds = (
            ("numbers", self.numbers),
            ("whole-number codes", self.codes),
            ("categories", [f"{name} ({n})" for name, n in self.categories.items()]),
            ("dates", list(self.dates)),
            ("vectors", [f"{name} ({n})" for name, n in self.vectors.items()]),
            ("texts", self.texts),
            ("dropped", [f"{name} ({why})" for name, why in self.dropped.items()]),
        )
        return [f"{len(names)} {kind}: {_listed(names)}" for kind, names in kinds if names]


def roles_of(frame: pd.DataFrame, drop: Iterable[str] = ()) -> Roles:
    """Judge every column of ``frame``; those in ``drop`` are left out on request."""
    kinds = ("number", "code", "category", "date", "vector", "text", "dropped")
    found: dict[str, dict[str, Any]] = {kind: {} for kind in kinds}
    parts: dict[str, tuple[str, ...]] = {}
    unwanted = set(drop)
    for name in frame.columns:
        column = frame[name]
        kind, detail = ("dropped", "on request") if name in unwanted else judge(column)
        found[kind][name] = detail
        if kind == "date":
            parts[name] = varying_parts(read_dates(column, detail))
    return Roles(
        numbers=tuple(found["number"]),
        codes=tuple(found["code"]),
        categories=found["category"],
        dates=found["date"],
        parts=parts,
        dropped=found["dropped"],
        decimals={name: sign for name, sign in found["number"].items() if sign},
        vectors=found["vector"],
        texts=tuple(found["text"]),
    )


def judge(column: pd.Series) -> tuple[str, Any]:
    """(role, detail) of one: "number", "code", "category", "date", "vector", "text",
    "dropped"."""
    if length := length_of(column):
        return "vector", length
    known = column.dropna()
    values = pd.Series((known.astype(str) if column.dtype == object else known).unique())
    if values.empty:
        return "dropped", "no values"
    if len(values) == 1 and len(known) == len(column):
        return "dropped", "the same value everywhere"
    if isinstance(column.dtype, pd.CategoricalDtype) and _are_codes(column.dtype):
        return _judge_categories(len(values), len(known))
    if types.is_bool_dtype(column.dtype):
        return "number", None
    if types.is_datetime64_any_dtype(column.dtype):
        return "date", ""
    if types.is_numeric_dtype(column.dtype) or types.is_timedelta64_dtype(column.dtype):
        return _judge_numbers(values, len(known))
    return _judge_text(values.astype(str), known.astype(str))


def _judge_numbers(values: pd.Series, rows: int) -> tuple[str, Any]:
    if not types.is_integer_dtype(values.dtype):
        return "number", None
    levels = len(values)
    # Part of the rows may be set aside, so that the numbers have gaps. The span of narrow
    # integers may be more than they hold.
    if levels == rows > 20 and int(values.max()) - int(values.min()) < 2 * levels:
        return "dropped", "it numbers the rows"
    return ("code", None) if 2 < levels <= CODE_LEVELS else ("number", None)


def _judge_text(values: pd.Series, known: pd.Series) -> tuple[str, Any]:
    rows = len(known)
    # Telling by the different values is as good as by all rows, and fast.
    if pd.to_numeric(values, errors="coerce").notna().mean() > 0.99:
        return "number", None
    decimal = decimal_of(values.iloc[:: max(1, len(values) // 1000)])
    numbers = cells_of(values, decimal).notna()
    levels = int(numbers.sum())
    # Of grades, a word may be one more; among many numbers it stands for none of them.
    some = levels > CODE_LEVELS and known.isin(values[numbers]).mean() >= MOSTLY
    if some or numbers.mean() > 0.99:
        plain = pd.to_numeric(values[numbers], errors="coerce").notna().all()
        return "number", None if plain else decimal
    layout = date_format(values)
    if layout is not None:
        return "date", layout
    if len(values) > MOSTLY_OWN * rows and are_sentences(values):
        return "text", None
    return _judge_categories(len(values), rows)


def _judge_categories(levels: int, rows: int) -> tuple[str, Any]:
    if levels > 50 and levels > MOSTLY_OWN * rows:
        return "dropped", "nearly every row has a value of its own"
    return "category", levels


def _are_codes(dtype: pd.CategoricalDtype) -> bool:
    """Whether numbers are said to be categories: as such they have an order or a distance
    only where they are said to have one."""
    return types.is_numeric_dtype(dtype.categories.dtype) and not dtype.ordered


def _listed(names: Iterable[str], most: int = 8) -> str:
    names = list(names)
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
