"""Any input as shelves of blocks: from memory, or from the chunks of a Dask collection.

A *shelf* is a tuple of neighbouring blocks that one task works on: a whole subtree of the
order in which partial results are combined, so that shelves change no result.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlopt.cluster import Executor, Handle, computed
from mlopt.errors import InputError
from mlopt.rows import frames
from mlopt.rows.block import (
    Block,
    Found,
    array_bytes,
    as_matrix,
    boundaries,
    check_shape,
    convert,
    float_dtype,
    inspect,
    row_slice,
)

Shelf = tuple[Block, ...]


@dataclass(frozen=True)
class Source:
    """Blocks where the executor works, and what is known of each."""

    shelves: tuple[Handle, ...]
    sizes: tuple[int, ...]
    found: tuple[Found, ...]
    names: tuple[str, ...] | None


def split(
    X: Any, executor: Executor, block_rows: int | None, dtype: Any, finite: bool = False
) -> Source:
    """Cut any supported input into shelves of blocks."""
    if block_rows is not None and block_rows < 1:
        raise InputError(f"`block_rows` must be at least 1, got {block_rows}.")
    if is_dask(X):
        return _from_dask(X, executor, block_rows, dtype)
    if isinstance(X, np.ndarray) or sp.issparse(X) or not frames.is_frame(X):
        return _from_matrix(as_matrix(X, dtype), executor, block_rows, None, finite)
    names = frames.frame_names(X)
    matrix = frames.frame_matrix(X, frames.frame_dtype(X, dtype))
    check_shape(matrix.shape)
    return _from_matrix(matrix, executor, block_rows, names)


def _from_matrix(
    matrix: Any,
    executor: Executor,
    block_rows: int | None,
    names: tuple[str, ...] | None,
    finite: bool = False,
) -> Source:
    edges = boundaries(matrix.shape[0], array_bytes(matrix), block_rows)
    blocks = _cut_shelf(matrix, edges, 0)
    sizes = shelf_sizes(len(blocks), executor.group(len(blocks), array_bytes(matrix)))
    ends = np.cumsum(sizes)
    shelves = [
        executor.put(blocks[end - size : end])
        for size, end in zip(sizes, ends, strict=True)
    ]
    found = executor.map(_inspect_shelf, shelves, finite)
    return Source(
        tuple(shelves), sizes, tuple(one for shelf in found for one in shelf), names
    )


def split_held(matrix: Handle, executor: Executor) -> Source:
    """Cut a matrix that the executor holds, where it is, as one from memory."""
    ready = executor.submit(as_matrix, matrix)
    whole = executor.result(executor.submit(inspect, ready))
    edges = boundaries(whole.rows, whole.nbytes)
    sizes = shelf_sizes(len(edges) - 1, executor.group(len(edges) - 1, whole.nbytes))
    firsts = np.cumsum((0, *sizes))[:-1]
    shelves = tuple(
        executor.submit(_cut_shelf, ready, edges[first : first + size + 1], int(first))
        for first, size in zip(firsts, sizes, strict=True)
    )
    found = executor.map(_inspect_shelf, shelves)
    return Source(shelves, sizes, tuple(one for shelf in found for one in shelf), None)


def _cut_shelf(matrix: Any, edges: Sequence[int], index: int) -> Shelf:
    return tuple(
        Block(row_slice(matrix, start, stop), index=index + number)
        for number, (start, stop) in enumerate(pairwise(edges))
    )


def shelf_sizes(count: int, group: int) -> tuple[int, ...]:
    """``count`` blocks on shelves of ``group``; the last may have fewer."""
    return tuple(min(group, count - first) for first in range(0, count, group))


def is_dask(X: Any) -> bool:
    """Whether ``X`` is a Dask collection; found out without importing dask."""
    # Whoever has a Dask collection has imported dask; nobody else should pay for it.
    return "dask" in sys.modules and bool(sys.modules["dask"].is_dask_collection(X))


def collected(data: Any) -> Any:
    """A Dask collection in this process, chunk by chunk; other data as they are.

    Its own ``compute`` has one worker put all chunks together, which must then hold them.
    """
    if not is_dask(data):
        return data
    finish, extra = data.__dask_postcompute__()
    parts = np.asarray(data.to_delayed(), dtype=object)
    chunks = np.empty(parts.size, dtype=object)
    for number, chunk in enumerate(computed(parts.flat)):
        chunks[number] = chunk
    found = finish(chunks.reshape(parts.shape).tolist(), *extra)
    return frames.native_text(found) if hasattr(data, "divisions") else found


def _from_dask(X: Any, executor: Executor, block_rows: int | None, dtype: Any) -> Source:
    import dask.array as da

    if isinstance(X, da.Array):
        names = None
        delayed, wanted = _array_chunks(X, executor, block_rows, dtype)
    else:
        names, delayed, wanted = _frame_chunks(X, dtype)
    chunks = [
        executor.submit(_converted, chunk, wanted, names)
        for chunk in executor.load(delayed)
    ]
    found = executor.map(inspect, chunks)
    # An empty partition has no say in anything, its type included.
    kept = [(chunk, one) for chunk, one in zip(chunks, found, strict=True) if one.rows]
    if not kept:
        check_shape((0, found[0].columns if found else 0))
    return _shelved([c for c, _ in kept], [one for _, one in kept], executor, names)


def _array_chunks(
    X: Any, executor: Executor, block_rows: int | None, dtype: Any
) -> tuple[Sequence[Any], np.dtype]:
    """Delayed chunks of whole rows."""
    if X.ndim != 2 or X.shape[1] == 0:
        check_shape(X.shape)
    wanted = float_dtype(X.dtype, dtype)
    known = not any(np.isnan(rows) for rows in X.chunks[0])
    if X.numblocks[1] > 1 or (block_rows and known):
        X = X.rechunk({0: block_rows, 1: -1} if block_rows and known else {1: -1})
    if known and not sp.issparse(X._meta):
        check_fits(max(X.chunks[0]) * X.shape[1] * wanted.itemsize, executor)
    return list(X.to_delayed().ravel()), wanted


def check_fits(nbytes: int, executor: Executor, most: float | None = None) -> None:
    """Raise if a block of ``nbytes`` is too large for a worker.

    Parameters
    ----------
    most : float, optional
        Bytes of a block that work; default: 60% of a worker's memory, where Dask spills.

    Raises
    ------
    InputError
        With the bytes of a block and of a worker.
    """
    if executor.memory is None:
        return
    most = 0.6 * executor.memory if most is None else most
    if nbytes > most:
        raise InputError(
            f"One block of X needs {nbytes / 2**30:.1f} GB ({nbytes} bytes) and a worker "
            f"has {executor.memory / 2**30:.1f} ({executor.memory} bytes), enough for "
            f"blocks of {most:.0f} bytes: make smaller chunks with `X.rechunk`, or start "
            "workers with more memory."
        )


def _frame_chunks(X: Any, dtype: Any) -> tuple[tuple[str, ...], Sequence[Any], np.dtype]:
    """Names, delayed partitions and the type of a Dask data frame."""
    import dask.dataframe as dd
    import pandas as pd

    if not isinstance(X, dd.DataFrame):
        raise InputError(
            "Of Dask's collections X must be an array or a data frame, got "
            f"{type(X).__name__}: convert it with `to_dataframe()` or `to_frame()`."
        )
    names = frames.unique_names(str(name) for name in X.columns)
    kinds = zip(names, X.dtypes, strict=True)
    empty = pd.DataFrame({name: pd.Series([], dtype=kind) for name, kind in kinds})
    return names, X.to_delayed(), frames.frame_dtype(empty, dtype)


def _converted(chunk: Any, dtype: np.dtype, names: tuple[str, ...] | None) -> Any:
    if names is None or not frames.is_frame(chunk):
        return convert(chunk, dtype)
    return frames.part_matrix(chunk, dtype, names)


def _shelved(
    chunks: Sequence[Handle],
    found: Sequence[Found],
    executor: Executor,
    names: tuple[str, ...] | None,
) -> Source:
    sizes = shelf_sizes(
        len(chunks), executor.group(len(chunks), sum(one.nbytes for one in found))
    )
    shelves = []
    for last, size in zip(np.cumsum(sizes), sizes, strict=True):
        part = slice(int(last) - size, int(last))
        shelves.append(executor.submit(_shelf, chunks[part], part.start))
    return Source(tuple(shelves), sizes, tuple(found), names)


def _shelf(matrices: Sequence[Any], index: int) -> Shelf:
    return tuple(Block(X, index=index + number) for number, X in enumerate(matrices))


def _inspect_shelf(shelf: Shelf, finite: bool = False) -> list[Found]:
    return [inspect(block.X, finite) for block in shelf]
