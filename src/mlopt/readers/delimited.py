"""CSV and its kin: read by pandas, in the layout that was found, and tidied up."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import IO, Any

import numpy as np

from mlopt.errors import InputError
from mlopt.readers.files import Content, File
from mlopt.readers.layout import MISSING, UNNAMED, Layout, layout_of
from mlopt.readers.notation import Numbers, numbers_of
from mlopt.readers.table import Table, table_of


def read(file: File, target: str | int | None) -> Table:
    """A text of rows, one a line."""
    layout = layout_of(file)
    title = [f"above the table stands {layout.title!r:.80}"] if layout.title else []
    frame, remarks = _tidy(file, layout)
    table = replace(table_of(frame, target, file.path), remarks=(*title, *remarks))
    if len(frame.columns) == len(layout.names):
        return table
    return replace(table, numbers=tuple(map(layout.names.index, table.names)))


def read_given(content: bytes, separator: str, texts: Collection[str]) -> Any:
    """A data frame of a text in memory whose first line names its columns.

    Nothing is guessed from its few rows: numbers have a decimal point, and the columns
    ``texts`` stay as they are written.

    Raises
    ------
    InputError
        Names that are missing or twice there, rows of another length, no UTF-8.
    """
    try:
        first, _, rest = content.decode("utf-8-sig").partition("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"The text must be UTF-8: {error}.") from None
    try:
        (row,) = csv.reader([first], delimiter=separator)
    except csv.Error:  # a line within it, or a name that is too long for one
        row = []
    names = [name.strip() for name in row]
    if not names or "" in names or len(set(names)) < len(names):
        raise InputError(
            "The first line must name the columns, each by a name of its own; got "
            f"{first.strip()[:80]!r}."
        )
    if not rest.strip():
        raise InputError("There must be rows below the names of the columns.")
    file = Content("the text", content, whole=True)
    layout = Layout(separator, 1, tuple(names))
    kinds = {name: str for name in texts if name in names}
    return stripped(_pandas(file, layout, layout.encoding, ".", kinds))


def _tidy(file: File, layout: Layout) -> tuple[Any, list[str]]:
    """The values, and what must be said about how they were read."""
    frame = stripped(_parsed(file, layout, "."))
    found = _written_numbers(frame, ",") if layout.separator != "," else {}
    sure = [name for name in found if numbers_of(frame[name], ".") is None]
    if sure:
        # Everywhere then: 1.234 in another column is more than a thousand.
        frame = stripped(_parsed(file, layout, ","))
        said = f"numbers have a decimal comma: {found[sure[0]].example}"
        found = _written_numbers(frame, ",")
        remarks = [said, *(f"`{name}`: {one.example}" for name, one in found.items())]
    else:
        found |= _written_numbers(frame.drop(columns=list(found)), ".")
        if layout.separator == ",":
            texts = frame.drop(columns=list(found))
            found |= _written_numbers(texts, ",")
        remarks = [f"`{name}`: {one.example}" for name, one in found.items()]
    for name, one in found.items():
        frame[name] = one.values
    unnamed = [name for name in frame if name.startswith(UNNAMED)]
    return frame.drop(
        columns=[name for name in unnamed if _says_nothing(frame[name])]
    ), remarks


def _written_numbers(frame: Any, decimal: str) -> dict[str, Numbers]:
    """The columns of text that are numbers in people's notation."""
    texts = [name for name in frame if is_text(frame[name])]
    found = ((name, numbers_of(frame[name], decimal)) for name in texts)
    return {name: numbers for name, numbers in found if numbers is not None}


def _parsed(file: File, layout: Layout, decimal: str) -> Any:
    try:
        return _pandas(file, layout, layout.encoding, decimal)
    except UnicodeDecodeError:
        # Not every old table is UTF-8; in Latin-1 every byte is a letter.
        return _pandas(file, layout, "latin-1", decimal)


def options_of(layout: Layout, encoding: str, decimal: str) -> dict[str, Any]:
    """How `pandas.read_csv` reads a layout."""
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
        "decimal": decimal,
    }
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
        options["float_precision"] = "round_trip"  # from 3.1 on, no digit is lost anyway
    return options


def chunks(
    file: File, stream: IO[bytes], options: dict[str, Any], rows: int
) -> Iterator[Any]:
    """Data frames of so many rows."""
    import pandas as pd

    try:
        with pd.read_csv(stream, chunksize=rows, low_memory=False, **options) as reader:
            while True:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", pd.errors.ParserWarning)
                    frame = next(reader, None)
                if frame is None:
                    return
                yield frame
    except (ValueError, pd.errors.ParserWarning) as error:
        if isinstance(error, UnicodeDecodeError):
            raise
        raise _misshapen(file, options, error) from error


def _misshapen(file: File, options: dict[str, Any], error: Exception) -> InputError:
    return InputError(
        f"`{file.path}` cannot be read as a table of {len(options['names'])} columns: "
        f"{str(error).strip()}. Make all rows as long as the first."
    )


def _pandas(
    file: File,
    layout: Layout,
    encoding: str,
    decimal: str,
    kinds: Mapping[str, type] | None = None,
) -> Any:
    import pandas as pd

    options = {**options_of(layout, encoding, decimal), "dtype": kinds}
    with file.opened() as stream:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.DtypeWarning)
                warnings.simplefilter("error", pd.errors.ParserWarning)
                return pd.read_csv(stream, **options)
        except pd.errors.DtypeWarning:
            # A column with numbers in one part and text in another is text.
            stream.seek(0)
            return pd.read_csv(stream, low_memory=False, **options)
        except (ValueError, pd.errors.ParserWarning) as error:
            if isinstance(error, UnicodeDecodeError):
                raise
            raise _misshapen(file, options, error) from error


def stripped(frame: Any) -> Any:
    """Without blanks around text."""
    for name in [name for name in frame if is_text(frame[name])]:
        frame[name] = frame[name].str.strip()
    return frame


def is_text(column: Any) -> bool:
    """Whether a column of a file that was read is one of texts."""
    from pandas.api.types import is_string_dtype

    return bool(is_string_dtype(column))


def _says_nothing(values: Any) -> bool:
    """Whether a column without a name is empty, or only counts the rows."""
    if values.isna().all():
        return True
    numbers = np.arange(len(values))
    counts = (values == numbers).all() or (values == numbers + 1).all()
    return values.dtype.kind in "iu" and bool(counts)
