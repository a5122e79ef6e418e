"""Tables in blocks of rows, for files larger than memory: CSV, Parquet, JSON lines.

What a column is, the whole file says: one cell may make texts of a million numbers. A block
is therefore only given as long as its columns are of the kinds of the first block, where
the whole would be read as the blocks are; else `NotAlikeError` says what differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from mlopt.errors import InputError
from mlopt.readers import delimited, libsvm, members
from mlopt.readers.binary import as_of_text, unreadable, value_bytes
from mlopt.readers.documents import records, texts_of
from mlopt.readers.files import File, NotAlikeError
from mlopt.readers.layout import UNNAMED, layout_of
from mlopt.readers.notation import numbers_of
from mlopt.readers.table import UNKNOWN, WHOLE, Known

NUMBER, TEXT, VECTOR = "number", "text", "vector"
"""How a model uses a column."""
NOTHING = "nothing"


def read_blocks(
    path: str | Path,
    block_bytes: int,
    *,
    uses: Mapping[str, str] | None = None,
    known: Known = UNKNOWN,
) -> Iterator[Any]:
    """Data frames of consecutive rows that together are those of `read_table`.

    Parameters
    ----------
    path : str or Path
        CSV and its kin, Parquet, or JSON lines with an object in each; compressed or not.
    block_bytes : int
        Of the file, or of what it unpacks to, for a block.
    uses : mapping of str to str, optional
        Columns that are used as `NUMBER`, `TEXT` or `VECTOR`: these may be integers here
        and floats there, and others may be anything. By default types must be the same.
    known : Known, optional
        As of `read_table`.

    Raises
    ------
    NotAlikeError
        Columns change their kind from one block to another, or the format has no blocks.
    InputError
        As of `read_table`.
    """
    file = File.at(str(path))
    seen: dict[str, str] = {}
    start = 0
    columns = None
    for frame in _frames(file, block_bytes, known):
        # Of JSON lines, what a row lacks is missing, if only another row has it.
        names = set(frame.columns) if uses is None else uses.keys() & set(frame.columns)
        if columns is None:
            columns = names if uses is None else set(uses)
        if names != columns and is_json_lines(file):
            raise NotAlikeError(
                f"`{path}` must have the same names in all lines to be read in blocks; in "
                f"the {len(frame):,} from {start + 1:,} on, "
                f"`{min(map(str, names ^ columns))}` is only in some."
            )
        for name, kind in _kinds(frame, uses).items():
            before = seen.get(name, NOTHING)
            if NOTHING not in (kind, before) and kind != before:
                raise NotAlikeError(
                    f"`{path}` must hold the same in all rows of a column to be read in "
                    f"blocks; `{name}` holds {before} at first, and {kind} from row "
                    f"{start + 1:,} on: write it alike, or as Parquet."
                )
            seen[name] = before if kind == NOTHING else kind
        start += len(frame)
        yield frame
    if not start:
        raise InputError(f"`{path}` must have rows, but has none.")


def read_matrices(
    path: str | Path,
    block_bytes: int,
    *,
    columns: int | None,
    numbered_from: int | None = None,
) -> Iterator[Any] | None:
    """Features of consecutive rows of a LIBSVM or ``.npz`` file that together are those of
    `read_table`; None where it is another.

    Parameters
    ----------
    path : str or Path
    block_bytes : int
        Of a block, as text or as numbers.
    columns : int or None
        Features of the rows, if they are known: LIBSVM does not say.
    numbered_from : int, optional
        As of `read_table`.

    Raises
    ------
    NotAlikeError
        The format, or what is in it, has no blocks.
    InputError
        As of `read_table`.
    """
    file = File.at(str(path))
    if file.is_numpy:
        return members.blocks(file, block_bytes)
    if not libsvm.looks_like(file):
        return None
    if columns is None:
        raise NotAlikeError(f"how many columns `{path}` has, only all of its rows tell")
    return libsvm.blocks(file, columns, block_bytes, numbered_from)


def read_documents(path: str | Path, block_bytes: int) -> Iterator[list[str]]:
    """Consecutive documents of JSON lines, which together are those of `read_jsonl`.

    Raises
    ------
    InputError
        As of `read_jsonl`.
    """
    file = File.at(str(path))
    rows, start = _rows_of(file, block_bytes), 0
    with file.streamed() as stream:
        found = texts_of(file.path, stream)
        while block := list(islice(found, rows)):
            start += len(block)
            yield block
    if not start:
        raise InputError(f"`{path}` must hold a line of JSON at least.")


def is_json_lines(file: File) -> bool:
    """Whether a file begins with an object of JSON."""
    return file.head.lstrip().startswith(b"{")


def read_records(path: str | Path) -> Any:
    """A data frame of a file of JSON lines: a row each, a column for every name.

    Raises
    ------
    InputError
        A line is no object.
    """
    file = File.at(str(path))
    with file.opened() as stream:
        frame = _frame_of(record for _, record in records(file.path, stream))
    if not len(frame):
        raise InputError(f"`{path}` must hold a line of JSON at least.")
    return frame


def _frames(file: File, block_bytes: int, known: Known) -> Iterator[Any]:
    if file.is_parquet:
        yield from _of_parquet(file, block_bytes)
    elif is_json_lines(file):
        rows = _rows_of(file, block_bytes)
        with file.streamed() as stream:
            found = records(file.path, stream)
            while block := [record for _, record in islice(found, rows)]:
                yield _frame_of(block)
    elif file.is_numpy or libsvm.looks_like(file):
        raise NotAlikeError(f"`{file.path}` holds a matrix, not a table with names.")
    else:
        yield from _of_text(file, block_bytes, known)


def _of_text(file: File, block_bytes: int, known: Known) -> Iterator[Any]:
    layout = layout_of(file, known.names)
    if any(name.startswith(UNNAMED) for name in layout.names):
        raise NotAlikeError(f"`{file.path}` has a column without a name: name it.")
    if known.decimal == "," and layout.separator != ",":
        raise NotAlikeError(f"only all rows tell the decimal sign of `{file.path}`")
    kinds = delimited.kinds_of(layout, known.texts)
    options = {**delimited.options_of(layout, "."), "dtype": kinds}
    rows = _rows_of(file, block_bytes)
    with file.streamed() as stream, delimited.below(stream, layout) as text:
        for frame in delimited.chunks(file, text, options, rows):
            frame = delimited.stripped(frame)
            for name in frame.columns.difference([*kinds], sort=False):
                if delimited.is_text(frame[name]) and any(
                    numbers_of(frame[name], decimal) is not None for decimal in ".,"
                ):
                    raise NotAlikeError(
                        f"`{file.path}` writes numbers of `{name}` in a notation that "
                        "only all rows tell: write them plainly."
                    )
            yield frame.reset_index(drop=True)


def _of_parquet(file: File, block_bytes: int) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with file.streamed() as stream:
        try:
            source = pq.ParquetFile(stream)
            rows, whole = source.metadata.num_rows, value_bytes(source.metadata)
            for batch in source.iter_batches(
                max(1, int(block_bytes * rows / max(1, whole)))
            ):
                yield as_of_text(batch.to_pandas().reset_index(drop=True))
        except pa.ArrowException as error:
            raise unreadable(file, error) from error


def _frame_of(records: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(list(records)).rename(columns=str)


def _rows_of(file: File, block_bytes: int) -> int:
    """Rows of so many bytes, as the first ones are."""
    lines = file.head.count(b"\n") or 1
    return max(1, int(block_bytes * lines / len(file.head)))


def _kinds(frame: Any, uses: Mapping[str, str] | None) -> dict[str, str]:
    """What the cells of each column are, as far as it makes a difference."""
    names = frame.columns if uses is None else [n for n in frame.columns if n in uses]
    return {name: _kind(frame[name], (uses or {}).get(name, "")) for name in names}


def _kind(column: Any, use: str) -> str:
    kind = column.dtype.kind if isinstance(column.dtype, np.dtype) else ""
    if use == NUMBER and kind in tuple("iuf"):
        return "numbers"
    if not use or kind not in tuple("iuf"):
        return str(column.dtype) if column.notna().any() or not use else NOTHING
    known = column.dropna()
    if not len(known):
        return NOTHING
    # Whole numbers are the same as text, whether read as integers or as floats.
    if (known.abs() >= WHOLE).any():
        return "large numbers"
    return "whole numbers" if kind != "f" or (known % 1 == 0).all() else "numbers"
