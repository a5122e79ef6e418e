"""Any input cut into blocks of rows: in memory, or in the chunks of a Dask collection.

Chunks of a collection are not read before they are needed, and read again whenever they
are, unless something keeps them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlopt.cluster import Executor
from mlopt.errors import InputError
from mlopt.pipeline import tables
from mlopt.pipeline.tokens import token_of
from mlopt.rows.block import boundaries


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows in blocks, as tasks that give them.

    Attributes
    ----------
    tasks : mapping of key to task, value or handle
        A graph in which every one of ``keys`` can be computed.
    keys : tuple
        One a block.
    lengths : tuple of int, or None
        Rows of each block; None while nobody has counted them.
    token : str
        Of the content.
    lazy : bool
        Whether blocks are read only when they are asked for.
    nbytes : int or None
        In all; None while nobody knows.
    """

    tasks: Mapping[Any, Any]
    keys: tuple[Any, ...]
    lengths: tuple[int, ...] | None
    token: str
    lazy: bool = False
    nbytes: int | None = None

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return len(self.keys)


def is_dask(data: Any) -> bool:
    """Whether ``data`` is a Dask collection; found out without importing dask."""
    return "dask" in sys.modules and bool(sys.modules["dask"].is_dask_collection(data))


def cut(
    data: Any,
    executor: Executor,
    *,
    name: str = "X",
    lengths: Sequence[int] | None = None,
    token: str | None = None,
) -> Blocks:
    """Blocks of ``data``; those of a Dask collection are its chunks of rows.

    Parameters
    ----------
    data : array, sparse matrix, data frame, list of documents, or Dask collection
    executor : Executor
    name : str
        For messages and keys.
    lengths : sequence of int, optional
        Rows of each block: as many as those of the data that these go with.
    token : str, optional
        Of the content, when it is known.

    Raises
    ------
    InputError
        When there are no rows, or not as many as ``lengths`` says.
    """
    if is_dask(data):
        return _lazy(data, name)
    data = usable(data)
    n = tables.count_rows(data)
    if n == 0:
        raise InputError(f"`{name}` must have at least one row, got none.")
    if lengths is not None and sum(lengths) != n:
        raise InputError(
            f"X and `{name}` must have the same number of rows, got {sum(lengths)} and {n}."
        )
    nbytes = tables.count_bytes(data)
    edges = boundaries(n, nbytes) if lengths is None else _edges(lengths)
    token = token or token_of(data)
    keys = tuple((f"{name}-{token}", number) for number in range(len(edges) - 1))
    tasks = {
        key: executor.put(tables.row_range(data, start, stop))
        for key, (start, stop) in zip(keys, pairwise(edges), strict=True)
    }
    sizes = tuple(b - a for a, b in pairwise(edges))
    return Blocks(tasks, keys, sizes, token, nbytes=nbytes)


def _edges(lengths: Sequence[int]) -> list[int]:
    return [int(edge) for edge in np.cumsum((0, *lengths))]


def usable(data: Any) -> Any:
    """What can be cut by rows: CSR for other sparse matrices, arrays for nested lists."""
    if sp.issparse(data):
        return data if data.format == "csr" else data.tocsr()
    if isinstance(data, list | tuple):
        return _from_list(data)
    if isinstance(data, np.ndarray) or hasattr(data, "iloc"):
        return data
    if hasattr(data, "__array__") and not hasattr(data, "__len__"):
        return np.asarray(data)
    if isinstance(data, str | bytes) or not hasattr(data, "__iter__"):
        raise InputError(
            "Data must be an array, a sparse matrix, a data frame, a list of documents or "
            f"a Dask collection, got {type(data).__name__}."
        )
    return data if hasattr(data, "shape") else list(data)


def _from_list(data: Any) -> Any:
    """Lists of rows and of numbers as arrays; documents, of any kind, as they are."""
    if not data or isinstance(data[0], str | bytes | dict):
        return data
    try:
        found = np.asarray(data)
    except ValueError:
        return list(data)  # rows of unlike lengths: tokens of documents
    mixed = found.dtype.kind in "US" and found.ndim > 1
    if mixed and not all(isinstance(cell, str) for row in data for cell in row):
        return np.asarray(data, dtype=object)  # numbers beside text stay numbers
    return found


def _lazy(data: Any, name: str) -> Blocks:
    """The chunks of a Dask array, data frame, series or bag."""
    import dask
    import dask.array as da

    # As `to_delayed` does: one key must not stand for two tasks.
    (data,) = dask.optimize(data)
    lengths = None
    if isinstance(data, da.Array):
        if data.ndim > 1 and data.numblocks[1] > 1:
            data = data.rechunk({1: -1})
        if not any(np.isnan(size) for size in data.chunks[0]):
            lengths = tuple(int(size) for size in data.chunks[0])
        rest = (0,) * (data.ndim - 1)
        keys = tuple((data.name, i, *rest) for i in range(data.numblocks[0]))
        graph: Any = data.__dask_graph__()
        token = data.name
    else:
        keys, graph = tuple(data.__dask_keys__()), data.__dask_graph__()
        token = str(dask.base.tokenize(data))
    return Blocks(dict(graph), keys, lengths, f"dask-{token}", lazy=True)
