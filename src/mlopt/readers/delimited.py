"""CSV and its kin: read by pandas, in the layout that was found, and tidied up."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import IO, Any

import numpy as np

from mlopt.errors import InputError
from mlopt.hearing import raised
from mlopt.readers.files import Content, File
from mlopt.readers.layout import MISSING, ODD_BYTES, UNNAMED, Layout, layout_of
from mlopt.readers.notation import Numbers, are_written, numbers_of
from mlopt.readers.table import UNKNOWN, Known, Table, table_of


def read(file: File, target: str | int | None, known: Known = UNKNOWN) -> Table:
    """A text of rows, one a line."""
    layout = layout_of(file, known.names)
    title = [f"above the table stands {layout.title!r:.80}"] if layout.title else []
    frame, remarks, decimal, doubts = _tidy(file, layout, known)
    table = table_of(frame, target, file.path)
    table = replace(
        table,
        remarks=(*title, *remarks),
        doubts=doubts,
        decimal=decimal,
        written=partial(_as_written, file, layout),
    )
    if len(frame.columns) == len(layout.names):
        return table
    places = {name: place for place, name in enumerate(layout.names)}
    return replace(table, numbers=tuple(places[name] for name in table.names))


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
    return stripped(_pandas(file, layout, ".", kinds_of(layout, texts)))


def _tidy(
    file: File, layout: Layout, known: Known
) -> tuple[Any, list[str], str | None, tuple[str, ...]]:
    """The values, what must be said about how they were read, the decimal sign where it is
    known, and what was said of numbers of which it is not.
    """
    kinds = kinds_of(layout, known.texts)
    frame = stripped(_pandas(file, layout, ".", kinds))
    frame, found, decimal, remarks, both = _decided(file, layout, known, kinds, frame)
    said = {name: f"`{name}`: {one.example}" for name, one in found.items()}
    remarks += said.values()
    for name, one in found.items():
        frame[name] = one.values
    unnamed = [n for n in frame if n.startswith(UNNAMED) and n not in known.names]
    nothing = [name for name in unnamed if _says_nothing(frame[name])]
    doubts = tuple(said[name] for name in both)
    return frame.drop(columns=nothing), remarks, decimal, doubts


def _decided(
    file: File, layout: Layout, known: Known, kinds: Mapping[str, type], frame: Any
) -> tuple[Any, dict[str, Numbers], str | None, list[str], list[str]]:
    """The values, the columns of text that are numbers in people's notation, the decimal
    sign where the file or a training tells it, what must be said of it, and which of the
    columns nothing tells it of.
    """
    listed = layout.separator == ","  # a comma within a number is then within quotes
    points, commas = (_written_numbers(frame, mark, kinds) for mark in ".,")
    pointed = not all(are_written(frame[name], ",") for name in points)
    sure = [name for name in commas if name not in points]
    both = [name for name in commas if name in points]
    both = [name for name in both if not points[name].values.equals(commas[name].values)]
    either = bool(both) and not listed and known.decimal is None
    trained = known.decimal == "," and (bool(commas) or not listed)
    if (sure and not listed) or ((sure or trained or either) and not pointed):
        turned = stripped(_pandas(file, layout, ",", kinds))
        pointed = pointed or _has_points(frame, turned)
        if (sure and not (listed and pointed)) or (trained and not pointed):
            # Everywhere then: 1.234 in another column is more than a thousand.
            said = commas[sure[0]].example if sure else "as in training"
            remarks = [f"numbers have a decimal comma: {said}"]
            return turned, _written_numbers(turned, ",", kinds), ",", remarks, []
    if either and not pointed:
        return frame, points | commas, None, [], both
    rest = {name: commas[name] for name in sure}
    decimal = "." if points or known.decimal == "." or _has_fractions(frame) else None
    return frame, points | rest, decimal, [], []


def _has_fractions(frame: Any) -> bool:
    """Whether a number was read with a decimal point."""
    floats = frame.select_dtypes("floating")
    return any(bool((floats[name] % 1 > 0).any()) for name in floats)


def kinds_of(layout: Layout, texts: Collection[str]) -> dict[str, type]:
    """What `pandas.read_csv` is told of columns that stay as they are written."""
    return {name: str for name in layout.names if name in texts}


def _as_written(file: File, layout: Layout, name: str) -> Any:
    """A column whose cells are texts, or missing."""
    return stripped(_pandas(file, layout, ".", {name: str}, [name]))[name]


def _has_points(frame: Any, commas: Any) -> bool:
    """Whether a number of ``frame`` has a decimal point: what was read for a decimal comma
    has neither such a number there, nor groups of three digits.
    """
    turned = [name for name in frame if is_text(commas[name]) and not is_text(frame[name])]
    return not all(are_written(commas[name], ",") for name in turned)


def _written_numbers(
    frame: Any, decimal: str, others: Collection[str]
) -> dict[str, Numbers]:
    """The columns of text that are numbers in people's notation, without ``others``."""
    texts = [name for name in frame if name not in others and is_text(frame[name])]
    found = ((name, numbers_of(frame[name], decimal)) for name in texts)
    return {name: numbers for name, numbers in found if numbers is not None}


def options_of(layout: Layout, decimal: str) -> dict[str, Any]:
    """How `pandas.read_csv` reads a layout."""
    import pandas as pd

    options = {
        "sep": layout.separator,
        "header": None,
        "names": list(layout.names),
        "index_col": False,
        "skiprows": 0 if layout.quoted else layout.skip,
        "skipinitialspace": True,
        "na_values": list(MISSING),
        "encoding": layout.encoding,
        "encoding_errors": ODD_BYTES,
        "decimal": decimal,
    }
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
        options["float_precision"] = "round_trip"  # from 3.1 on, no digit is lost anyway
    return options


@contextmanager
def below(stream: IO[bytes], layout: Layout) -> Iterator[IO[Any]]:
    """What `pandas.read_csv` is to be given: it would take a quote in a remark, or in a
    header of several lines, for the beginning of a text to skip.
    """
    if not layout.quoted:
        yield stream
        return
    text = io.TextIOWrapper(stream, layout.encoding, ODD_BYTES, newline="")
    try:
        for _ in range(layout.skip):
            text.readline()
        yield text
    finally:
        text.detach()


def chunks(
    file: File, stream: IO[Any], options: dict[str, Any], rows: int
) -> Iterator[Any]:
    """Data frames of so many rows."""
    import pandas as pd

    try:
        with pd.read_csv(stream, chunksize=rows, low_memory=False, **options) as reader:
            while True:
                with raised(pd.errors.ParserWarning):
                    frame = next(reader, None)
                if frame is None:
                    return
                yield frame
    except (ValueError, pd.errors.ParserWarning) as error:
        raise _misshapen(file, options, error) from error


def _misshapen(file: File, options: dict[str, Any], error: Exception) -> InputError:
    return InputError(
        f"`{file.path}` cannot be read as a table of {len(options['names'])} columns: "
        f"{str(error).strip()}. Make all rows as long as the first."
    )


def _pandas(
    file: File,
    layout: Layout,
    decimal: str,
    kinds: Mapping[str, type] | None = None,
    only: Sequence[str] | None = None,
) -> Any:
    import pandas as pd

    options = {**options_of(layout, decimal), "dtype": kinds, "usecols": only}
    with file.opened() as stream, below(stream, layout) as text:
        try:
            with raised(pd.errors.DtypeWarning, pd.errors.ParserWarning):
                return pd.read_csv(text, **options)
        except pd.errors.DtypeWarning:
            pass  # a column with numbers in one part and text in another is text
        except (ValueError, pd.errors.ParserWarning) as error:
            raise _misshapen(file, options, error) from error
    with file.opened() as stream, below(stream, layout) as text:
        return pd.read_csv(text, low_memory=False, **options)


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
