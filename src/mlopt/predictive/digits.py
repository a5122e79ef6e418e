"""Rows of DuckDB as a data frame, without a digit lost."""

from __future__ import annotations

import re
from sys import float_info
from typing import Any

import pandas as pd
import pyarrow as pa


def exact(connection: Any, query: str) -> pd.DataFrame:
    """As DuckDB's `df`, which has sums of whole numbers (HUGEINT) and decimals as floats:
    whole numbers are such, and decimals of which a digit would be lost are `Decimal`.
    """
    found = connection.sql(query)
    kinds = [str(kind) for kind in found.types]
    lossy = [re.fullmatch(r"HUGEINT|DECIMAL\(.+\)", kind) is not None for kind in kinds]
    if not any(lossy):
        return found.df()
    table = found.to_arrow_table()
    named = connection.from_arrow(table)
    # Arrow has no UUID and the like: of their own types `df` makes what it always does. Of
    # bits it makes bytes, too.
    own = (
        f"#{n}" if lost or kind in (str(given), "BIT") else f"CAST(#{n} AS {kind})"
        for n, (given, kind, lost) in enumerate(
            zip(named.types, kinds, lossy, strict=True), 1
        )
    )
    frame = named.project(", ".join(own)).df()
    frame.columns = named.columns
    for at, column in enumerate(table.columns):
        if lossy[at]:
            frame.isetitem(at, _digits(column, frame.iloc[:, at]))
    return frame


def _digits(column: pa.ChunkedArray, floats: pd.Series) -> Any:
    """Cells of a column of decimals, as ``floats`` where these say the same."""
    kind = column.type
    if kind.scale == 0:
        try:
            whole = column.cast(pa.int64())
        except pa.ArrowInvalid:  # more than 64 bits
            return [None if one is None else int(one) for one in column.to_pylist()]
        kinds = {pa.int64(): pd.Int64Dtype()} if whole.null_count else {}
        return whole.to_pandas(types_mapper=kinds.get)
    digits = float_info.dig  # that any float keeps
    if kind.precision <= digits or not floats.abs().max() >= 10.0 ** (digits - kind.scale):
        return floats
    return column.to_pylist()
