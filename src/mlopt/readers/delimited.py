"""CSV and its kin: separator, header and remarks are found out from the first lines."""

from __future__ import annotations

import csv
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlopt.errors import InputError
from mlopt.readers.files import File
from mlopt.readers.table import Table, table_of

MISSING = ("", "?", "NA", "NaN", "nan", "N/A", "null", "NULL", "None")
_BLANKS = r"\s+"
_SEPARATORS = (",", "\t", ";", "|", _BLANKS)
_REMARKS = ("#", "%", "|", "//")


@dataclass(frozen=True)
class Layout:
    """How a text holds its columns.

    Attributes
    ----------
    separator : str
        As pandas takes it.
    skip : int
        Lines before the first row of values: remarks and the header.
    names : tuple of str
        Columns; "c0", "c1", ... without a header.
    """

    separator: str
    skip: int
    names: tuple[str, ...]


def read(file: File, target: str | int | None) -> Table:
    """A text of rows, one a line."""
    layout = layout_of(file)
    frame = _tidy(_parsed(file, layout))
    return table_of(frame, target, file.path)


def layout_of(file: File) -> Layout:
    """Find out how the file is laid out."""
    lines = _lines(file)
    remarks = next(
        (i for i, line in enumerate(lines) if line.strip() and not _is_remark(line)),
        len(lines),
    )
    if remarks == len(lines):
        raise InputError(f"`{file.path}` must hold rows, but has none in its first lines.")
    separator, rows = _best_separator(lines[remarks:])
    width = _usual_width(rows)
    # A title above the table is one field where rows have several.
    titles = next(i for i, row in enumerate(rows) if len(row) > 1 or width < 2)
    first, rest = rows[titles], rows[titles + 1 :]
    header = is_header(first, rest)
    names = [f"c{number}" for number in range(width)]
    if header:
        # R leaves the column of row names without a name.
        found = first if len(first) >= width else [""] * (width - len(first)) + first
        names = [name.strip() for name in found]
    return Layout(separator, remarks + titles + header, _distinct(names))


def is_header(first: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns.

    It does when it holds no number and nothing missing, and differs from what is below:
    stands above numbers, or is never repeated.
    """
    fields = [field.strip() for field in first]
    named = fields[1:] if len(fields) > 1 else fields
    if any(_is_number(field) for field in fields) or any(f in MISSING for f in named):
        return False
    columns = [[row[i].strip() for row in rest if i < len(row)] for i in range(len(first))]
    if any(_are_numbers(column) for column in columns):
        return True
    return not any(field in column for field, column in zip(fields, columns, strict=True))


def _lines(file: File) -> list[str]:
    if b"\x00" in file.head:
        raise InputError(
            f"`{file.path}` must be CSV, Parquet, LIBSVM or .npz, but is some other binary "
            "file: convert it to one of these."
        )
    text = file.head.decode("utf-8-sig", errors="replace")
    if text.lstrip().startswith(("{", "[{", "<")):
        raise InputError(
            f"`{file.path}` looks like JSON or XML: convert it to CSV or Parquet, for "
            "example with `pandas.read_json(path, lines=True).to_parquet(...)`."
        )
    lines = text.splitlines()
    return lines if file.whole or len(lines) < 2 else lines[:-1]


def _is_remark(line: str) -> bool:
    return line.lstrip().startswith(_REMARKS)


def _best_separator(lines: Sequence[str]) -> tuple[str, list[list[str]]]:
    """The first separator by which most lines have as many fields, more than one."""
    best: tuple[float, str, list[list[str]]] = (0.0, ",", [[line] for line in lines])
    for separator in _SEPARATORS:
        rows = _fields(lines, separator)
        width = _usual_width(rows)
        even = sum(len(row) == width for row in rows) / max(len(rows), 1)
        if width > 1 and even > best[0]:
            best = (even, separator, rows)
    return best[1], best[2]


def _fields(lines: Sequence[str], separator: str) -> list[list[str]]:
    few = [line for line in lines[:200]]
    if separator == _BLANKS:
        return [line.split() for line in few if line.strip()]
    return [
        row for row in csv.reader(few, delimiter=separator, skipinitialspace=True) if row
    ]


def _usual_width(rows: Sequence[Sequence[str]]) -> int:
    return Counter(map(len, rows)).most_common(1)[0][0] if rows else 0


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names made different by a number: a, a.1; and a name for columns without one."""
    seen: Counter[str] = Counter()
    result = []
    for number, name in enumerate(names):
        name = name or f"c{number}"
        result.append(f"{name}.{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return tuple(result)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return field.lower() not in ("nan", "inf", "infinity")


def _are_numbers(column: Sequence[str]) -> bool:
    values = [field for field in column if field not in MISSING]
    return bool(values) and all(_is_number(field) for field in values)


def _parsed(file: File, layout: Layout) -> Any:
    try:
        return _pandas(file, layout, "utf-8-sig")
    except UnicodeDecodeError:
        # Not every old table is UTF-8; in Latin-1 every byte is a letter.
        return _pandas(file, layout, "latin-1")


def _pandas(file: File, layout: Layout, encoding: str) -> Any:
    import pandas as pd

    options = {
        "sep": layout.separator,
        "header": None,
        "names": list(layout.names),
        "index_col": False,
        "skiprows": layout.skip,
        "skipinitialspace": True,
        "na_values": list(MISSING),
        "encoding": encoding,
    }
    with file.opened() as stream:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.DtypeWarning)
                return pd.read_csv(stream, **options)
        except pd.errors.DtypeWarning:
            # A column with numbers in one part and text in another is text.
            stream.seek(0)
            return pd.read_csv(stream, low_memory=False, **options)
        except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            raise InputError(
                f"`{file.path}` cannot be read as a table of {len(layout.names)} columns: "
                f"{str(error).strip()}. Make all rows as long as the first."
            ) from error


def _tidy(frame: Any) -> Any:
    """Without blanks around text, dots behind labels, and a column that counts rows."""
    for name in frame.columns[frame.dtypes == "str"]:
        values = frame[name].str.strip()
        known = values.dropna()
        # The labels of UCI's adult.test end in a dot, those of adult.data do not.
        if known.str.endswith(".").all():
            values = values.str.slice(stop=-1)
        frame[name] = values
    return frame
