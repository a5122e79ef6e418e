"""Bodies of requests to columns, and predictions to bodies: JSON, CSV, Arrow.

Rows of two requests may share a call only where that changes neither's columns: pandas
gives a column of whole numbers another type when one of them is a text. So each column has
a kind, and only requests with the same kinds are gathered.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa

from mlopt.errors import InputError
from mlopt.readers.delimited import read_given
from mlopt.serving.model import ServedModel
from mlopt.sweep.formulas import csv_of
from mlopt.sweep.learned import as_learned
from mlopt.sweep.tabular import as_text, check_columns

JSON, CSV, TSV = "application/json", "text/csv", "text/tab-separated-values"
ARROW = "application/vnd.apache.arrow.stream"
ARROW_FILE = "application/vnd.apache.arrow.file"

MOMENTS = {
    datetime.datetime, datetime.date, datetime.time, datetime.timedelta,
    pd.Timestamp, pd.Timedelta,
}  # fmt: skip
READ = frozenset({int, float, str, bool, type(None), *MOMENTS})
"""Types of cells; Arrow has the moments."""
LISTS = frozenset({list, type(None)})
"""Those of vectors."""
EXACT = 1 << 53
"""Whole numbers below it are the same as a float."""

Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Rows:
    """The rows of a request, in the columns that the model needs.

    Parameters
    ----------
    columns : mapping of str to list
    kinds : tuple
        Of each column: rows may be gathered with those of the same kinds.
    length : int
    """

    columns: Columns
    kinds: tuple[Hashable, ...]
    length: int

    def between(self, begin: int, end: int) -> Rows:
        """Rows ``begin`` to ``end``."""
        if (begin, end) == (0, self.length):
            return self
        cut = {name: values[begin:end] for name, values in self.columns.items()}
        return Rows(cut, self.kinds, end - begin)


def read_rows(content: bytes, media: str, model: ServedModel) -> Rows:
    """The rows in a body.

    Parameters
    ----------
    content : bytes
    media : str
        One of `READERS`.
    model : ServedModel
        Its columns are taken; others are left out.

    Raises
    ------
    MissingColumnError
        A column that the model needs is not there.
    InputError
        The body is not what its type says.
    """
    columns = dict(READERS[media](content, model))
    lengths = {len(values) for values in columns.values()}
    if len(lengths) != 1 or lengths == {0}:
        raise InputError(
            "The columns must have one length of at least 1 row, got lengths of "
            f"{sorted(lengths) or 'nothing'}."
        )
    kinds = []
    for column in model.columns:
        name, values = column.name, columns[column.name]
        kind = _kind(name, column.kind, values)
        if column.kind == "category" and kind not in ("text", "whole"):
            # Here, with all its rows: of a part of them it might be another text.
            columns[name] = _cells(pd.Series(as_text(pd.Series(values))))
            kind = "text"
        kinds.append(kind)
    return Rows(columns, tuple(kinds), lengths.pop())


def frame_of(parts: Sequence[Rows], model: ServedModel) -> pd.DataFrame:
    """Rows of several requests of the same kinds as one data frame."""
    columns: dict[str, Any] = {}
    for column, kind in zip(model.columns, parts[0].kinds, strict=True):
        name = column.name
        values = parts[0].columns[name]
        if len(parts) > 1:
            values = [value for rows in parts for value in rows.columns[name]]
        if column.kind == "value":  # its steps are given what files would give them
            values = as_learned(pd.Series(values, name=name), column.learned)
        columns[name] = np.asarray(values, dtype=float) if kind == "number" else values
    return pd.DataFrame(columns)


def write_rows(columns: Columns, media: str, **beside: Any) -> bytes:
    """Predictions as a body; what is said ``beside`` them has a place in JSON alone, and
    there where no column has its name.
    """
    if media == JSON:
        return msgspec.json.encode({**columns, **beside, **columns})  # which come first
    if media == ARROW:
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        return bytes(sink.getvalue())
    return csv_of(pd.DataFrame(columns))


def _of_json(content: bytes, model: ServedModel) -> Columns:
    try:
        given = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"The body is no JSON: {error}.") from None
    names = model.names
    if isinstance(given, dict):
        check_columns(names, given)
        if not all(isinstance(given[name], list) for name in names):
            raise InputError("JSON must be a list of objects, or an object of lists.")
        return {name: given[name] for name in names}
    if not isinstance(given, list) or not all(isinstance(row, dict) for row in given):
        raise InputError("JSON must be a list of objects, or an object of lists.")
    try:
        return {name: [row[name] for row in given] for name in names}
    except KeyError:
        for row in given:
            check_columns(names, row)
        raise


def _of_text(separator: str) -> Callable[[bytes, ServedModel], Columns]:
    def read(content: bytes, model: ServedModel) -> Columns:
        frame = read_given(content, separator, model.texts)
        check_columns(model.names, frame.columns)
        return {name: _cells(frame[name]) for name in model.names}

    return read


def _cells(column: pd.Series) -> list[Any]:
    return list(column.astype(object).where(column.notna(), None))


def _of_arrow(content: bytes, model: ServedModel) -> Columns:
    try:
        whole = content.startswith(b"ARROW1")
        with (pa.ipc.open_file if whole else pa.ipc.open_stream)(content) as stream:
            table = stream.read_all()
        table.validate(full=True)
        names = table.column_names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"The body is no Arrow IPC: {str(error)[:200]}.") from None
    if table.num_rows > 8 * len(content) or table.get_total_buffer_size() > len(content):
        # What is read takes memory that the body has no credits for.
        raise InputError(
            f"The body must hold its {table.num_rows:,} rows unpacked: write Arrow IPC "
            "without compression, and columns with a type, not of nulls alone."
        )
    check_columns(model.names, names)
    if len(set(names)) < len(names):
        raise InputError("Each column must have a name of its own.")
    return {name: _values(table.column(name)) for name in model.names}


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Cells as JSON would have them: a decimal, as databases sum to, is a number."""
    if pa.types.is_decimal(column.type) or pa.types.is_float16(column.type):
        column = column.cast(pa.float64())
    return list(column.to_pylist())


READERS: Mapping[str, Callable[[bytes, ServedModel], Columns]] = {
    JSON: _of_json,
    CSV: _of_text(","),
    TSV: _of_text("\t"),
    ARROW: _of_arrow,
    ARROW_FILE: _of_arrow,
}
"""The types of bodies that are read."""

WRITERS = (JSON, CSV, ARROW)
"""The types of bodies that are written, the usual one first."""


def _largest(types: frozenset[type], values: Sequence[Any]) -> int:
    if types == {int}:
        return int(max(max(values), -min(values)))
    return max(abs(v) for v in values if type(v) is int) if int in types else 0


def _kind(name: str, role: str, values: Sequence[Any]) -> Hashable:
    """What values a column has, as far as others may come beside them."""
    types = frozenset(map(type, values))
    read, words = READ, "numbers, texts, true, false or null"
    if role == "vector":
        read, words = LISTS, "lists of numbers, or null"
    if not types <= read:
        wrong = next(i for i, value in enumerate(values) if type(value) not in read)
        raise InputError(
            f"`{name}` must hold {words}; row {wrong + 1} has {values[wrong]!r:.80}."
        )
    largest = _largest(types, values)
    if largest >= 1 << 63:
        raise InputError(f"`{name}` must hold whole numbers of at most 64 bits.")
    if role == "value":
        return types, largest >= EXACT
    known = types - {type(None)}
    # To a step that reads columns, a missing cell is one whatever stands beside it.
    if role == "number" and known <= {int, float}:
        return "number"
    if known <= {str}:
        return "text"
    whole = role == "category" and known <= {int, float} and largest < EXACT
    # 1.0 is read as 1 where all are whole.
    if whole and all(v is None or v != v or v % 1 == 0 for v in values):
        return "whole"
    return types, largest >= EXACT
