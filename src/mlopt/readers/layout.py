"""How a text holds a table: separator, header and remarks, from its first lines."""

from __future__ import annotations

import codecs
import csv
import re
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
_MOST_COLUMNS = 100_000
"""Columns of a text: what judges and plans them looks at each, and takes a millisecond."""
_COUNTED = 3
"""Numbers without a text that count columns, at least: values may begin with 0 and 1."""
_DECIMAL_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+")
_BYTE_ORDER = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""What texts begin with; that of UTF-32 begins like that of UTF-16."""
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
    encoding : str
    title : str
        What stands above the table and is left out.
    """

    separator: str
    skip: int
    names: tuple[str, ...]
    encoding: str = "utf-8-sig"
    title: str = ""


def layout_of(file: File) -> Layout:
    """Find out how the file is laid out."""
    lines = _lines(file)
    start = _skipped(lines, lambda line: line.startswith(_REMARKS))
    if start == len(lines):
        raise InputError(f"`{file.path}` must hold rows, but its first lines are remarks.")
    separator = _best_separator(lines[start:])
    if not _fields(lines[start:], separator):
        raise InputError(
            f"`{file.path}` cannot be cut into columns: one of its first lines has more "
            f"than {csv.field_size_limit():,} characters between separators, or a quote "
            "that does not end."
        )
    width = _usual_width(_fields(lines[start:], separator))
    if width > _MOST_COLUMNS:
        raise InputError(
            f"`{file.path}` must have at most {_MOST_COLUMNS:,} columns as a text, but has "
            f"{width:,}: write it as LIBSVM or as a matrix in `.npz`."
        )
    above = start
    if width > 1:
        # A title above the table is one field where rows have several.
        start += _skipped(lines[start:], lambda ln: len(_fields([ln], separator)[0]) == 1)
    title = " ".join(line.strip() for line in lines[above:start] if line.strip())
    first, *rest = _fields(lines[start:], separator)
    skip = start + is_header(first, rest)
    if skip == start:
        first = _behind_hash(lines[:above], separator, [first, *rest])
    names = [f"c{number}" for number in range(width)]
    if skip > start or first:
        names = [name.strip() for name in _padded(first, rest, width)]
    return Layout(separator, skip, _distinct(names), _encoding(file), title)


def _behind_hash(
    remarks: Sequence[str], separator: str, rows: Sequence[Sequence[str]]
) -> list[str]:
    """The names in the last remark, where they fit the rows below; or none."""
    written = [line.strip() for line in remarks if line.strip()]
    if not written or not written[-1].startswith("#"):
        return []
    names = _fields([written[-1].lstrip("# ")], separator)
    fits = bool(names) and len(names[0]) == _usual_width(rows) > 1
    return names[0] if fits and is_header(names[0], rows) else []


def _encoding(file: File) -> str:
    marks = (name for mark, name in _BYTE_ORDER if file.head.startswith(mark))
    return next(marks, "utf-8-sig")


def is_header(first: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns.

    It does when it holds no number and nothing missing, and differs from what is below:
    stands above numbers, or is never repeated. Or it counts columns, as pandas does.
    """
    fields = [field.strip() for field in first]
    # A name may be missing in front, above row names, or behind a separator at the end.
    named = "\n".join(fields).strip().split("\n")
    if any(field in MISSING for field in named):
        return False
    columns = [[row[i].strip() for row in rest if i < len(row)] for i in range(len(first))]
    if any(map(_is_number, fields)):
        return _counts_columns(fields, columns)
    if any(_are_numbers(column) for column in columns):
        return True
    return not any(field in column for field, column in zip(fields, columns, strict=True))


def _counts_columns(fields: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    """Whether the numbers of a first row are names: each one more than the one before, and
    something else in it is unlike what is below.

    A row of values may begin 0, 1, 2 where those below are whole numbers, too.
    """
    pairs = list(zip(fields, columns, strict=True))
    texts = [(field, below) for field, below in pairs if field and not _is_number(field)]
    counts, below_counts = zip(*(p for p in pairs if _is_number(p[0])), strict=True)
    start = int(counts[0]) if counts[0].isdecimal() else -1
    if list(counts) != [str(start + number) for number in range(len(counts))]:
        return False
    if start in (0, 1) and any(_are_numbers(below) for _, below in texts):
        return True
    if start == 0 and pairs[0] == ("", [str(row) for row in range(len(columns[0]))]):
        return True  # above the numbers of rows, which pandas writes in front
    repeated = any(field in below for field, below in texts)
    return (
        len(counts) >= _COUNTED and not repeated and any(map(_are_fractions, below_counts))
    )


def _lines(file: File) -> list[str]:
    encoding = _encoding(file)
    if b"\x00" in file.head and encoding == "utf-8-sig":
        raise InputError(
            f"`{file.path}` must be CSV, Parquet, LIBSVM or .npz, but is some other binary "
            "file: convert it to one of these."
        )
    text = file.head.decode(encoding, errors="replace")
    if text.lstrip().startswith(("{", "[{", "<")):
        by_line = ", lines=True" * text.lstrip().startswith("{")
        raise InputError(
            f"`{file.path}` looks like JSON or XML: convert it to CSV or Parquet, for "
            f"example with `pandas.read_json(path{by_line}).to_parquet(...)`."
        )
    lines = text.splitlines()
    if not file.whole and len(lines) < 2:
        raise InputError(
            f"`{file.path}` must hold a row a line, but its first line is longer than "
            f"{len(file.head) >> 20} MB."
        )
    return lines if file.whole else lines[:-1]


def _skipped(lines: Sequence[str], unwanted: Callable[[str], bool]) -> int:
    """How many lines come before the first that is neither blank nor unwanted."""
    wanted = (
        i for i, line in enumerate(lines) if line.strip() and not unwanted(line.strip())
    )
    return next(wanted, len(lines))


def _best_separator(lines: Sequence[str]) -> str:
    """The one that gives most lines as many fields, the first of equals; blanks only where
    no other gives nearly all of them as many.
    """
    even: dict[str, float] = {}
    for separator in _SEPARATORS:
        rows = _fields(lines, separator)
        width = _usual_width(rows)
        even[separator] = width > 1 and sum(len(row) == width for row in rows) / len(rows)
    marks = [separator for separator in _SEPARATORS if separator != BLANKS]
    best = max(marks, key=lambda separator: even[separator])
    equals = (mark for mark in marks[1:] if even[mark] == even[","])
    if best == ",":
        best = next((mark for mark in equals if _commas_are_decimal(lines, mark)), best)
    if even[best] >= _NEARLY:
        return best
    return max(even, key=lambda separator: even[separator])


def _commas_are_decimal(lines: Sequence[str], separator: str) -> bool:
    """Whether every comma is one within a number, when lines are cut by ``separator``."""
    fields = [f.strip() for row in _fields(lines, separator) for f in row if "," in f]
    return bool(fields) and all(map(_DECIMAL_COMMA.fullmatch, fields))


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
    if _DECIMAL_COMMA.fullmatch(field):
        return True
    try:
        float(field)
    except ValueError:
        return False
    return field.lower() not in ("nan", "inf", "infinity")


def _are_numbers(column: Sequence[str]) -> bool:
    values = [field for field in column if field not in MISSING]
    return bool(values) and all(_is_number(field) for field in values)


def _are_fractions(column: Sequence[str]) -> bool:
    whole = any(field.lstrip("+-").isdecimal() for field in column)
    return _are_numbers(column) and not whole
