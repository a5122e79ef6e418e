"""Tables of numbers as matrices: pandas, polars and Arrow alike, through narwhals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import narwhals as nw
import numpy as np

from mlopt.errors import InputError
from mlopt.rows.block import float_dtype


def is_frame(X: Any) -> bool:
    """Whether ``X`` is a table in memory that narwhals can read."""
    return bool(nw.dependencies.is_into_dataframe(X))


def frame_names(frame: Any) -> tuple[str, ...]:
    """Column names as text; they must differ."""
    try:
        return unique_names(str(name) for name in _table(frame).columns)
    except nw.exceptions.DuplicateError as error:
        raise InputError(
            f"Column names must differ: {' '.join(str(error).split())}. Rename or drop the "
            "copies."
        ) from error


def unique_names(names: Iterable[str]) -> tuple[str, ...]:
    """The same names, refused when one comes twice."""
    found = tuple(names)
    twice = [f"`{name}`" for name, times in sorted(Counter(found).items()) if times > 1]
    if twice:
        raise InputError(
            f"Column names must differ, but these come more than once: {_listed(twice)}. "
            "Rename or drop the copies."
        )
    return found


def frame_dtype(frame: Any, dtype: Any = None) -> np.dtype:
    """float32 when that holds all columns of NumPy's types, else float64.

    Raises
    ------
    InputError
        When a column holds anything but numbers and booleans.
    """
    check_numbers(table := _numbers(frame))
    kinds = list(getattr(table.to_native(), "dtypes", ()))
    # `check_array` asks NumPy for the type that holds all, and has float64 for all others.
    plain = bool(kinds) and all(isinstance(kind, np.dtype) for kind in kinds)
    small = plain and np.result_type(*kinds) == np.float32
    return float_dtype(np.dtype("f4" if small else "f8"), dtype)


def check_numbers(table: nw.DataFrame[Any]) -> None:
    """Raise when a column holds anything but numbers and booleans.

    Raises
    ------
    InputError
    """
    schema = table.schema
    wrong = [f"`{name}` ({kind})" for name, kind in schema.items() if not _numeric(kind)]
    if wrong:
        raise InputError(
            f"X must hold numbers only; these columns do not: {_listed(wrong)}. Encode "
            "them, for example with `OneHotEncoder` or `OrdinalEncoder`, or drop them."
        )


def frame_matrix(frame: Any, dtype: np.dtype) -> np.ndarray:
    """All columns as one C-contiguous matrix; missing values become NaN."""
    check_numbers(table := _numbers(frame))
    matrix = np.empty(table.shape, dtype)
    kind = nw.Float32 if dtype == np.dtype("f4") else nw.Float64
    for number, name in enumerate(table.columns):
        matrix[:, number] = table.get_column(name).cast(kind).to_numpy()
    return matrix


def part_matrix(part: Any, dtype: np.dtype, names: tuple[str, ...]) -> np.ndarray:
    """A partition as a matrix, if it has the columns of all, in their order.

    Raises
    ------
    InputError
        Else: Dask does not look, and one column would be taken for another.
    """
    found = frame_names(part)
    if found != names:
        raise InputError(
            f"All partitions of X must have the same columns, got {[*names]} and "
            f"{[*found]}: select them in one order, or rename them, before."
        )
    return frame_matrix(part, dtype)


def has_dask_text(meta: Any) -> bool:
    """Whether a frame or series of Dask has text in its own type, whose missing is NA."""
    kinds = meta.dtypes if hasattr(meta, "columns") else [meta.dtype]
    return any(map(_of_dask, kinds))


def native_text(block: Any) -> Any:
    """Text of Dask's own type as pandas has it: missing is NaN, with which steps work.

    Dask makes `string` of all text unless ``dataframe.convert-string`` is off; other
    columns, and all of pandas below 3, whose text is objects, stay as they are.
    """
    if hasattr(block, "columns"):
        wanted = {number for number, kind in enumerate(block.dtypes) if _of_dask(kind)}
        if not wanted:
            return block
        block = block.copy(deep=False)
        for number in wanted:
            block.isetitem(number, block.iloc[:, number].astype("str"))
        return block
    return block.astype("str") if _of_dask(block.dtype) else block


def _of_dask(kind: Any) -> bool:
    """Whether text is of a type that pandas itself makes of none, though it has its own."""
    import pandas as pd

    own = isinstance(kind, pd.StringDtype) and kind.na_value is pd.NA
    return own and isinstance(pd.Series([""]).dtype, pd.StringDtype)


def _table(frame: Any) -> nw.DataFrame[Any]:
    return nw.from_native(frame, eager_only=True)


def _numbers(frame: Any) -> nw.DataFrame[Any]:
    """The table; what pandas has as objects, categories or sparse values as float64, where
    these are numbers."""
    if hasattr(frame, "isetitem"):
        kinds = list(map(str, frame.dtypes))
        wanted = [
            number
            for number, kind in enumerate(kinds)
            if kind in ("object", "category") or kind.startswith("Sparse[")
        ]
        frame = frame.copy(deep=False) if wanted else frame
        for number in wanted:
            with suppress(TypeError, ValueError):
                frame.isetitem(number, frame.iloc[:, number].astype(np.float64))
    return _table(frame)


def _numeric(kind: Any) -> bool:
    return bool(kind.is_numeric()) or kind == nw.Boolean


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"
