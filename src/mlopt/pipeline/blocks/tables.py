"""Blocks of any type that scikit-learn takes: arrays, CSR, data frames, documents."""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing

from mlopt.errors import InputError
from mlopt.resources.sizes import memory_of
from mlopt.rows.block import as_csr

_MIXED = ("mixed", "mixed-integer")
"""What pandas calls objects of several types that are not all numbers."""


def count_rows(block: Any) -> int:
    """How many rows a block has."""
    return int(block.shape[0]) if hasattr(block, "shape") else len(block)


def count_columns(block: Any) -> int:
    """How many columns; 1 for documents and other one-dimensional blocks."""
    shape = tuple(getattr(block, "shape", ()))
    return int(shape[1]) if len(shape) > 1 else 1


def columns_of(block: Any) -> tuple[str, ...] | int:
    """The names of the columns of a frame, the number of any others."""
    names = getattr(block, "columns", None)
    return count_columns(block) if names is None else tuple(map(str, names))


def have_order(values: Any) -> bool:
    """Whether targets can be sorted: not text beside numbers, nor beside None."""
    if values is None or str(getattr(values, "dtype", "object")) != "object":
        return True
    values = np.asarray(values)
    if values.dtype != object or values.ndim != 1:
        return True
    import pandas as pd

    return pd.api.types.infer_dtype(values, skipna=False) not in _MIXED


def count_entries(*parts: Any) -> tuple[int, int]:
    """Stored entries of blocks of the same rows, and all."""
    sizes = [count_rows(part) * count_columns(part) for part in parts]
    pairs = zip(parts, sizes, strict=True)
    stored = [int(part.nnz) if is_sparse(part) else size for part, size in pairs]
    return sum(stored), sum(sizes)


def count_bytes(block: Any) -> int:
    """Bytes in memory, text included."""
    if sp.issparse(block):
        block = block if block.format == "csc" else as_csr(block)
        return int(sum(part.nbytes for part in (block.data, block.indices, block.indptr)))
    if isinstance(block, np.ndarray) and not block.dtype.hasobject:
        return int(block.nbytes)
    if hasattr(block, "memory_usage"):
        usage = block.memory_usage(deep=True)
        return int(usage.sum() if hasattr(usage, "sum") else usage)
    if hasattr(block, "estimated_size"):
        return int(block.estimated_size())
    if hasattr(block, "nbytes") and not isinstance(block, np.ndarray):
        return int(block.nbytes)
    return memory_of(block)


def kind_of(block: Any) -> str:
    """What a block is, in a word: blocks of one step must all be the same."""
    if sp.issparse(block):
        return "sparse"
    if isinstance(block, np.ndarray):
        return "array"
    return type(block).__name__


def is_sparse(block: Any) -> bool:
    """Whether zeros are left out."""
    return bool(sp.issparse(block))


def row_range(data: Any, start: int, stop: int) -> Any:
    """Rows ``start`` to ``stop``, without a copy where the type allows it."""
    if sp.issparse(data):
        return as_csr(data)[start:stop]
    if isinstance(data, np.ndarray | list | tuple):
        return data[start:stop]
    if hasattr(data, "iloc"):
        return data.iloc[start:stop]
    return data[start:stop]


def are_typed_by_missing(data: Any) -> bool:
    """Whether a few of the rows may have another type in NumPy than all of them.

    In polars whole numbers and booleans have, where one of them is missing.
    """
    pl = sys.modules.get("polars")
    if pl is None or not isinstance(data, pl.DataFrame):
        return False
    whole = [one for one in data if one.dtype.is_integer() or one.dtype == pl.Boolean]
    return any(one.null_count() for one in whole)


def unlisted(block: Any) -> Any:
    """Lists of rows and of numbers as arrays; documents, of any kind, as they are.

    So are rows of text alone: they may be documents in tokens, all as long, or a table,
    and each step makes of them what it reads.
    """
    if not isinstance(block, list | tuple) or not block:
        return block
    if isinstance(block[0], str | bytes | dict):
        return block
    try:
        found = np.asarray(block)
    except ValueError:
        return list(block)  # rows of unlike lengths: tokens of documents
    if found.dtype.kind not in "US":
        return found
    text = (isinstance(cell, str | bytes) for row in block for cell in row)
    if found.ndim > 2 or (found.ndim == 2 and all(text)):
        return list(block)
    return np.asarray(block, dtype=object)  # numbers beside text stay numbers


def tabled(block: Any) -> Any:
    """A list of rows as the one table that a `ColumnTransformer` makes of it."""
    return np.asarray(block, dtype=object) if isinstance(block, list | tuple) else block


def as_numbers(block: Any, *, flattens: bool = False) -> Any:
    """Objects that are numbers as float64, as scikit-learn takes them; all else as is.

    Each descriptor of an image is a row of what ``flattens``.
    """
    block = unlisted(flat(block) if flattens else block)
    if isinstance(block, np.ndarray) and block.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            return block.astype(np.float64)
    return block


def copied(data: Any) -> Any:
    """Rows that may be changed without those of ``data``."""
    if isinstance(data, list | tuple):
        immutable = all(isinstance(one, str | bytes) for one in data)
        return list(data) if immutable else copy.deepcopy(data)
    if hasattr(data, "copy"):
        return data.copy()
    return data.clone() if hasattr(data, "clone") else copy.deepcopy(data)


def take_rows(data: Any, indices: Sequence[int] | np.ndarray) -> Any:
    """Rows by number; a block that is no table says itself how."""
    if hasattr(data, "take_rows"):
        return data.take_rows(np.asarray(indices))
    if sp.issparse(data) and data.format not in ("csr", "lil", "dok"):
        data = as_csr(data)
    return _safe_indexing(data, np.asarray(indices))


def take_columns(data: Any, columns: Any) -> Any:
    """Columns by name, number, mask or slice; one name or number gives one dimension."""
    if isinstance(columns, list) and not columns:
        return data[:, :0] if not hasattr(data, "iloc") else data.iloc[:, :0]
    return _safe_indexing(data, columns, axis=1)


def flat(block: Any) -> Any:
    """Descriptors of images, (n, m, d), as n m rows; other blocks as they are."""
    shape = tuple(getattr(block, "shape", ()))
    return block.reshape(-1, shape[2]) if len(shape) == 3 else block


def stack(blocks: Sequence[Any], step: str = "", *, labelled: bool = False) -> Any:
    """Blocks one below the other.

    Frames made of blocks of an array count their rows from 0 each, and those of the whole
    count on. ``labelled`` says that blocks were frames of Dask: then these numbers are the
    labels of their rows, and stay.

    Raises
    ------
    InputError
        When a block is of another type than the first, naming ``step``.
    """
    kinds = [kind_of(block) for block in blocks]
    if len(set(kinds)) > 1:
        other = next(i for i, kind in enumerate(kinds) if kind != kinds[0])
        raise InputError(
            f"Step `{step}` must return one type for all rows: block 0 is {kinds[0]}, "
            f"block {other} is {kinds[other]}. Return the same type whatever the rows."
        )
    first = blocks[0]
    if len(blocks) == 1:
        return first
    if sp.issparse(first):
        return sp.vstack(blocks, format="csr")
    if isinstance(first, np.ndarray):
        return np.concatenate(blocks)
    if isinstance(first, list | tuple):
        return [item for block in blocks for item in block]
    if hasattr(first, "iloc"):
        import pandas as pd

        fresh = not labelled and all(map(_counts_from_0, blocks))
        if _have_unlike_categories(blocks):
            from dask.dataframe.methods import concat  # as `compute` of Dask does

            with suppress(TypeError):  # of other types, or orders: no categories have all
                whole = concat(list(blocks))
                return whole.reset_index(drop=True) if fresh else whole
        return pd.concat(blocks, ignore_index=fresh)
    import polars as pl

    return pl.concat(blocks)


def _have_unlike_categories(blocks: Sequence[Any]) -> bool:
    """Whether a column is categorical in all blocks, of other categories in some."""
    import pandas as pd

    def kinds(block: Any) -> list[Any]:
        return list(getattr(block, "dtypes", ())) if block.ndim > 1 else [block.dtype]

    return any(
        all(isinstance(kind, pd.CategoricalDtype) for kind in column)
        and any(kind != column[0] for kind in column)
        for column in zip(*map(kinds, blocks), strict=False)
    )


def _counts_from_0(block: Any) -> bool:
    """Whether pandas has numbered the rows: a cut of other numbers has another type."""
    import pandas as pd

    return isinstance(block.index, pd.RangeIndex) and block.index.equals(
        pd.RangeIndex(len(block))
    )
