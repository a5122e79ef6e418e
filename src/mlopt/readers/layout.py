"""How a text holds a table: separator, header and remarks, from its first lines."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlopt.errors import InputError
from mlopt.readers.files import File

MISSING = ("", "?", "NA", "NaN", "nan", "N/A", "null", "NULL", "None")
UNNAMED = "Unnamed: "
BLANKS = r"\s+"
_SEPARATORS = (",", "\t", ";", "|", BLANKS)
_NEARLY = 0.9
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


def layout_of(file: File) -> Layout:
    """Find out how the file is laid out."""
    lines = _lines(file)
    start = _skipped(lines, lambda line: line.startswith(_REMARKS))
    if start == len(lines):
        raise InputError(f"`{file.path}` must hold rows, but its first lines are remarks.")
    separator = _best_separator(lines[start:])
    width = _usual_width(_fields(lines[start:], separator))
    if width > 1:
        # A title above the table is one field where rows have several.
        start += _skipped(lines[start:], lambda ln: len(_fields([ln], separator)[0]) == 1)
    first, *rest = _fields(lines[start:], separator)
    header = is_header(first, rest)
    names = [f"c{number}" for number in range(width)]
    if header:
        names = [name.strip() for name in _padded(first, rest, width)]
    return Layout(separator, start + header, _distinct(names))


def is_header(first: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns.

    It does when it holds no number and nothing missing, and differs from what is below:
    stands above numbers, or is never repeated.
    """
    fields = [field.strip() for field in first]
    # A name may be missing in front, above row names, or behind a separator at the end.
    named = "\n".join(fields).strip().split("\n")
    if any(field in MISSING or _is_number(field) for field in named):
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


def _skipped(lines: Sequence[str], unwanted: Callable[[str], bool]) -> int:
    """How many lines come before the first that is neither blank nor unwanted."""
    wanted = (
        i for i, line in enumerate(lines) if line.strip() and not unwanted(line.strip())
    )
    return next(wanted, len(lines))


def _best_separator(lines: Sequence[str]) -> str:
    """The first that gives nearly all lines as many fields, or else the most of them."""
    even: dict[str, float] = {}
    for separator in _SEPARATORS:
        rows = _fields(lines, separator)
        width = _usual_width(rows)
        even[separator] = width > 1 and sum(len(row) == width for row in rows) / len(rows)
        if even[separator] >= _NEARLY:
            return separator
    return max(even, key=lambda separator: even[separator])


def _fields(lines: Sequence[str], separator: str) -> list[list[str]]:
    few = lines[:200]
    if separator == BLANKS:
        few, separator = [line.strip().replace("\t", " ") for line in few], " "
    try:
        # Skipping blanks after a blank makes one separator of several.
        rows = list(csv.reader(few, delimiter=separator, skipinitialspace=True))
    except csv.Error:
        return []
    return [row for row in rows if row]


def _usual_width(rows: Sequence[Sequence[str]]) -> int:
    return Counter(map(len, rows)).most_common(1)[0][0] if rows else 0


def _padded(header: Sequence[str], rest: Sequence[Sequence[str]], width: int) -> list[str]:
    """A header with a field for every column: rows may have one more, without a name."""
    missing = [""] * (width - len(header))
    if any(row[-1].strip() for row in rest if len(row) == width):
        # R leaves out the name of the first column, where it puts the names of rows.
        return [*missing, *header]
    return [*header, *missing]


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names made different by a number: a, a.1; and a name for columns without one."""
    seen: Counter[str] = Counter()
    result = []
    for number, name in enumerate(names):
        name = name or f"{UNNAMED}{number}"
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
