"""How a text holds a table: separator, header and remarks, from its first lines."""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

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
ODD_BYTES = "mlopt-latin-1"
"""The error handler of codecs by which what is not UTF-8 is read: a letter a byte, as in
Latin-1. What a cell is, does not depend on other cells then."""
_LINE_END = re.compile(r"\r\n|\r|\n")
"""What pandas ends lines at: `str.splitlines` knows more."""
_TAGS = re.compile(r"\s*<[^<>]+>([,;|\t]<[^<>]+>)+\s*")
"""A header as tools for markets write it."""
_REMARKS, _BAR = ("#", "%", "//"), "|"
"""What remarks begin with; a bar, where it does not separate columns."""


@dataclass(frozen=True)
class Layout:
    """How a text holds its columns.

    Attributes
    ----------
    separator : str
        As pandas takes it.
    skip : int
        Lines before the first row of values: remarks and the header.
    quoted : bool
        Whether a quote is in these, within which pandas would count no line.
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
    quoted: bool = False


def layout_of(file: File, names: Collection[str] = ()) -> Layout:
    """Find out how the file is laid out; ``names`` are of columns that it must have."""
    lines, wanted = _lines(file), frozenset(names)
    start = _skipped(lines, lambda line: line.startswith((*_REMARKS, _BAR)))
    if _best_separator(lines[start:] or lines) == _BAR:  # in front of a row it is no remark
        start = _skipped(lines, lambda line: line.startswith(_REMARKS))
    if start == len(lines):
        raise InputError(f"`{file.path}` must hold rows, but its first lines are remarks.")
    separator = _best_separator(lines[start:], wanted)
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
        start += _above(lines[start:], separator, width)
    title = " ".join(line.strip() for line in lines[above:start] if line.strip())
    first, *rest = _fields(lines[start:], separator)
    skip = start
    if _names_all(first, wanted) or is_header(first, rest):
        skip += _lines_of_first(lines[start:], separator)
    else:
        first = _behind_mark(lines[:above], separator, [first, *rest])
    written = [f"c{number}" for number in range(width)]
    if skip > start or first:
        written = _padded(first, rest, width)
    quoted = any('"' in line for line in lines[:skip])
    return Layout(separator, skip, _distinct(written), _encoding(file), title, quoted)


def _above(lines: Sequence[str], separator: str, width: int) -> int:
    """How many lines are a title: of one field each, unless it goes on in the next line."""
    for number, line in enumerate(lines):
        if line.strip() and (
            len(_fields([line], separator)[0]) > 1
            or len(_fields(lines[number:], separator)[0]) == width
        ):
            return number
    return len(lines)


def _behind_mark(
    remarks: Sequence[str], separator: str, rows: Sequence[Sequence[str]]
) -> list[str]:
    """The names in the last remark, where they fit the rows below; or none."""
    written = [line.strip() for line in remarks if line.strip()]
    if not written or not written[-1].startswith(("#", "%")):
        return []
    # "% fat" is what is measured, while "#" and "%x" only mark the line.
    bare = written[-1].lstrip("#" if written[-1].startswith("% ") else "#%")
    names = _fields([bare.lstrip()], separator)
    fits = bool(names) and len(names[0]) == _usual_width(rows) > 1
    return names[0] if fits and is_header(names[0], rows) else []


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error(ODD_BYTES, _as_latin_1)


def _encoding(file: File) -> str:
    marks = (name for mark, name in _BYTE_ORDER if file.head.startswith(mark))
    return next(marks, "utf-8-sig")


def is_header(first: Sequence[str], rest: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns.

    It does when it holds no number, and differs from what is below: a text stands above
    numbers; or nothing in it is missing or repeated. Or it counts columns, as pandas does.
    """
    fields = [field.strip() for field in first]
    # A name may be missing in front, above row names, or behind a separator at the end.
    named = "\n".join(fields).strip().split("\n")
    if "" in named or "?" in named:
        return False
    columns = [[row[i].strip() for row in rest if i < len(row)] for i in range(len(first))]
    if any(map(_is_number, fields)):
        return _counts_columns(fields, columns)
    pairs = list(zip(fields, columns, strict=True))
    # A column may be called None or NA; but what is missing may stand above numbers, too.
    if any(field not in MISSING and _are_numbers(column) for field, column in pairs):
        return True
    return not any(field in MISSING or field in column for field, column in pairs)


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
    text = file.head.decode(encoding, errors=ODD_BYTES)
    markup = text.lstrip().startswith("<") and not _TAGS.fullmatch(text.split("\n", 1)[0])
    if markup or text.lstrip().startswith(("{", "[{")):
        by_line = ", lines=True" * text.lstrip().startswith("{")
        raise InputError(
            f"`{file.path}` looks like JSON or XML: convert it to CSV or Parquet, for "
            f"example with `pandas.read_json(path{by_line}).to_parquet(...)`."
        )
    lines = _LINE_END.split(text)
    if file.whole and not lines[-1]:
        lines.pop()
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


def _names_all(row: Sequence[str], wanted: frozenset[str]) -> bool:
    """Whether a row has all names that a header must have, if any are known."""
    return bool(wanted) and wanted.issubset(_distinct(row))


def _best_separator(lines: Sequence[str], wanted: frozenset[str] = frozenset()) -> str:
    """The one that gives most lines as many fields, the first of equals; blanks only where
    no other gives nearly all of them as many. But one that finds the header, if any does.
    """
    found = _evenest(lines)
    for separator in (found, *_SEPARATORS) if wanted else ():
        rows = _fields(lines, separator)
        width = _usual_width(rows)
        if any(len(row) == width and _names_all(row, wanted) for row in rows):
            return separator
    return found


def _evenest(lines: Sequence[str]) -> str:
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
    try:
        rows = list(_reader(lines, separator))
    except csv.Error:
        return []
    return [row for row in rows if row]


def _lines_of_first(lines: Sequence[str], separator: str) -> int:
    """Lines of the first row, which has several where one ends within quotes."""
    reader = _reader(lines, separator)
    next(reader)
    return int(reader.line_num)


def _reader(lines: Sequence[str], separator: str) -> Any:
    few = lines[:200]
    if separator == BLANKS:
        few, separator = [line.strip().replace("\t", " ") for line in few], " "
    # Skipping blanks after a blank makes one separator of several.
    ended = (f"{line}\n" for line in few)
    return csv.reader(ended, delimiter=separator, skipinitialspace=True)


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
    given = [name.strip() or f"{UNNAMED}{at}" for at, name in enumerate(names)]
    numbers, result = defaultdict[str, Iterator[int]](lambda: count(1)), dict[str, None]()
    taken = set(given)
    for name in given:
        free = (one for n in numbers[name] if (one := f"{name}.{n}") not in taken)
        result[next(free) if name in result else name] = None
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
