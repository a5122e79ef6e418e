"""Files as numbered columns: what a source of a query means.

Columns count from 1, as they stand in the file. Where the format sets the label apart
(LIBSVM, ``y`` of an ``.npz`` file), the label is column 1 and feature j column j + 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlopt.errors import InputError, InputWarning, QuerySyntaxError, did_you_mean
from mlopt.query import ast
from mlopt.query.format import format_source
from mlopt.query.text import Text
from mlopt.query.words import PARSERS
from mlopt.readers import BUNDLED, Table, delimited, libsvm, read_table
from mlopt.readers.binary import read_npz, read_parquet
from mlopt.readers.files import File
from mlopt.readers.table import UNKNOWN, Known
from mlopt.rows.block import as_csr

Functions = Mapping[str, Callable[..., Any]]

_READ: Mapping[str, Callable[[str, int | None, int | None, Known], Table]] = {
    "csv": lambda path, _d, _first, known: delimited.read(File.at(path), None, known),
    "libsvm": lambda path, d, first, _: libsvm.read(File.at(path), None, d, first),
    "parquet": lambda path, *_: read_parquet(File.at(path), None),
    "npz": lambda path, *_: read_npz(File.at(path), None),
    "sklearn": lambda path, *_: read_table(f"{BUNDLED}{path}"),
}


@dataclass(frozen=True, eq=False)
class Sheet:
    """A file in memory.

    Parameters
    ----------
    table : Table
    numbers : tuple of int
        Of the columns of ``table.X`` in the file, from 1.
    width : int
        Columns in the file.
    """

    table: Table
    numbers: tuple[int, ...]
    width: int

    @property
    def label_apart(self) -> bool:
        """Whether the format sets the label apart; it is column 1 then."""
        return self.table.y is not None


@dataclass
class Library:
    """Reads each file of a query once.

    Parameters
    ----------
    text : Text
        Of the query, for errors that show the place.
    functions : mapping of str to callable
        The user's; a parser of their own takes a path and returns a table.
    columns : int, optional
        Features of a LIBSVM file, when its rows may lack the last ones.
    numbered_from : int, optional
        The number of its first column, when its rows may lack that one.
    known : Known, optional
        Of a text, what a model has learnt of such.
    """

    text: Text
    functions: Functions
    columns: int | None = None
    numbered_from: int | None = None
    known: Known = UNKNOWN
    sheets: dict[ast.Source, Sheet] = field(default_factory=dict)

    def sheet(self, source: ast.Source) -> Sheet:
        """The whole file of a source.

        Raises
        ------
        InputError
            The file cannot be read.
        QuerySyntaxError
            Its parser is unknown.
        """
        whole = ast.Source(source.path, None, source.parser)
        if whole not in self.sheets:
            table = self._read(source)
            for doubt in table.doubts:
                said = f"`{table.path}`: {doubt}. Write numbers plainly to be sure."
                warnings.warn(said, InputWarning, stacklevel=2)
            self.sheets[whole] = _sheet(table)
        return self.sheets[whole]

    def _read(self, source: ast.Source) -> Table:
        path, parser = source.path.value, source.parser
        if parser is None:
            return read_table(
                path,
                columns=self.columns,
                numbered_from=self.numbered_from,
                known=self.known,
            )
        if parser.value in self.functions:
            return _of_user(self.functions[parser.value](path), format_source(source))
        check_parser(parser, self.text, self.functions)
        read = _READ[parser.value.lower()]
        return read(path, self.columns, self.numbered_from, self.known)


def check_parser(parser: ast.Name, text: Text, functions: Functions) -> None:
    """Refuse a parser that is neither known nor the user's."""
    if parser.value.lower() in _READ or parser.value in functions:
        return
    known = [*PARSERS, *functions]
    raise text.error(
        parser.span,
        f"expected a parser, found `{parser.value}`.{did_you_mean(parser.value, known)} "
        f"Parsers: {', '.join(PARSERS)}, or one of yours, given from Python as "
        f'`mlopt.run(text, functions={{"{parser.value}": f}})`.',
    )


def picked(sheet: Sheet, source: ast.Source, text: Text) -> list[int]:
    """The numbers of the columns that a source names; all without any.

    Raises
    ------
    QuerySyntaxError
        The file has no such column.
    """
    readable = [1, *sheet.numbers] if sheet.label_apart else list(sheet.numbers)
    if source.columns is None:
        return readable
    first, last = source.columns.first, source.columns.last
    if last > sheet.width:
        raise _no_column(source, text, f"`{source.path.value}` has {sheet.width} columns.")
    wanted = [number for number in readable if first <= number <= last]
    if not wanted:
        raise _no_column(
            source, text, "it has no name and is empty, or only counts the rows."
        )
    return wanted


def taken(sheet: Sheet, numbers: Sequence[int]) -> tuple[Any, tuple[str, ...]]:
    """Some columns by number, and their names: a frame, an array or a CSR matrix."""
    table = sheet.table
    if sheet.label_apart and 1 in numbers:
        if len(numbers) > 1:
            raise InputError(
                f"The label of `{table.path}` is set apart by its format, and cannot be a "
                "feature: leave column 1 out."
            )
        return np.asarray(table.y)[:, None], (table.target or "label",)
    places = {number: place for place, number in enumerate(sheet.numbers)}
    at = [places[number] for number in numbers]
    names = tuple(table.names[i] for i in at)
    if at == list(range(len(sheet.numbers))):
        return table.X, names
    return (table.X.iloc[:, at] if _is_frame(table.X) else table.X[:, at]), names


def _sheet(table: Table) -> Sheet:
    d, apart = len(table.names), int(table.y is not None)
    places = table.numbers or range(d)
    numbers = tuple(place + 1 + apart for place in places)
    return Sheet(table, numbers, max(numbers, default=apart))


def _of_user(value: Any, name: str) -> Table:
    """What a parser of the user's returned: a table, or features and their labels."""
    X, y = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    if not hasattr(X, "tocsr") and not _is_frame(X):
        X = np.asarray(X)
    if len(X.shape) != 2 or (y is not None and len(y) != X.shape[0]):
        raise InputError(
            f"The parser of `{name}` must return a table (n, d), with the label first, or "
            f"a pair of features (n, d) and labels (n,); got shape {X.shape}."
        )
    if _is_frame(X):
        return Table(X, y, None, name, tuple(map(str, X.columns)))
    X = as_csr(X) if hasattr(X, "tocsr") else X
    return Table(X, y, None, name, tuple(f"c{number}" for number in range(X.shape[1])))


def _is_frame(X: Any) -> bool:
    return hasattr(X, "iloc")


def _no_column(source: ast.Source, text: Text, why: str) -> QuerySyntaxError:
    assert source.columns is not None
    columns = source.columns
    what = f"column {columns.last}"
    return text.error(columns.span, f"there is no {what} to read: {why}")
