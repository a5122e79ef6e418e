"""CSV and its kin: read by pandas, in the layout that was found, and tidied up."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from mlopt.errors import InputError
from mlopt.readers.files import File
from mlopt.readers.layout import MISSING, UNNAMED, Layout, layout_of
from mlopt.readers.table import Table, table_of


def read(file: File, target: str | int | None) -> Table:
    """A text of rows, one a line."""
    layout = layout_of(file)
    frame = _tidy(_parsed(file, layout))
    table = table_of(frame, target, file.path)
    if len(frame.columns) == len(layout.names):
        return table
    return replace(table, numbers=tuple(map(layout.names.index, table.names)))


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
                warnings.simplefilter("error", pd.errors.ParserWarning)
                return pd.read_csv(stream, **options)
        except pd.errors.DtypeWarning:
            # A column with numbers in one part and text in another is text.
            stream.seek(0)
            return pd.read_csv(stream, low_memory=False, **options)
        except (ValueError, pd.errors.ParserWarning) as error:
            if isinstance(error, UnicodeDecodeError):
                raise
            raise InputError(
                f"`{file.path}` cannot be read as a table of {len(layout.names)} columns: "
                f"{str(error).strip()}. Make all rows as long as the first."
            ) from error


def _tidy(frame: Any) -> Any:
    """Without blanks around text, dots behind labels, and columns that say nothing."""
    from pandas.api.types import is_string_dtype

    for name in [name for name in frame if is_string_dtype(frame[name])]:
        values = frame[name].str.strip()
        # The labels of UCI's adult.test end in a dot, those of adult.data do not.
        if values.dropna().str.endswith(".").all():
            values = values.str.slice(stop=-1)
        frame[name] = values
    unnamed = [name for name in frame if name.startswith(UNNAMED)]
    return frame.drop(columns=[name for name in unnamed if _says_nothing(frame[name])])


def _says_nothing(values: Any) -> bool:
    """Whether a column without a name is empty, or only counts the rows."""
    if values.isna().all():
        return True
    numbers = np.arange(len(values))
    counts = (values == numbers).all() or (values == numbers + 1).all()
    return values.dtype.kind in "iu" and bool(counts)
