"""Any input as shelves of blocks: from memory, or from the chunks of a Dask collection.

A *shelf* is a tuple of neighbouring blocks that one task works on: a whole subtree of the
order in which partial results are combined, so that shelves change no result.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlopt.cluster import Executor, Handle, computed, persisted
from mlopt.errors import InputError
from mlopt.rows import frames
from mlopt.rows.block import (
    Block,
    Found,
    array_bytes,
    as_matrix,
    boundaries,
    check_shape,
    check_unmasked,
    convert,
    float_dtype,
    inspect,
    row_slice,
)
from mlopt.rows.pairing import alike, chunks_of, is_shuffled

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
    return split_with(X, (), executor, block_rows, dtype, finite)[0]


def split_with(
    X: Any,
    beside: Sequence[Any],
    executor: Executor,
    block_rows: int | None = None,
    dtype: Any = None,
    finite: bool = False,
) -> tuple[Source, list[Any]]:
    """Cut any supported input into shelves of blocks; and what goes with it, here.

    Dask collections are computed in one graph, so that rows meet what is theirs.
    """
    if block_rows is not None and block_rows < 1:
        raise InputError(f"`block_rows` must be at least 1, got {block_rows}.")
    if is_dask(X):
        return _from_dask(X, beside, executor, block_rows, dtype)
    found = collected_together(*beside)
    if isinstance(X, np.ndarray) or sp.issparse(X) or not frames.is_frame(X):
        matrix = as_matrix(X, dtype)
        return _from_matrix(matrix, executor, block_rows, None, finite), found
    names = frames.frame_names(X)
    matrix = frames.frame_matrix(X, frames.frame_dtype(X, dtype))
    check_shape(matrix.shape)
    return _from_matrix(matrix, executor, block_rows, names), found


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
    """Whether ``X`` is a Dask collection; found out without importing dask.

    Raises
    ------
    InputError
        When it is one value of Dask's, of which nobody knows whether it has rows.
    """
    # Whoever has a Dask collection has imported dask; nobody else should pay for it.
    if "dask" not in sys.modules:
        return False
    from dask.delayed import Delayed
    from dask.task_spec import TaskRef

    if isinstance(X, Delayed | TaskRef):  # as a future is
        raise InputError(
            "Data must be in memory or a Dask collection of rows, got a "
            f"{'delayed value' if isinstance(X, Delayed) else 'future'}: give what it "
            "stands for, or what `from_delayed` of `dask.array` or `dask.dataframe` makes "
            "of it."
        )
    return bool(sys.modules["dask"].is_dask_collection(X))


def collected(data: Any) -> Any:
    """A Dask collection in this process, chunk by chunk; other data as they are.

    Its own ``compute`` has one worker put all chunks together, which must then hold them.
    """
    (found,) = collected_together(data)
    return found


def collected_together(*data: Any) -> list[Any]:
    """As `collected`, of several that are computed in one graph."""
    if not any(map(is_dask, data)):
        return [*data]
    chunks = chunks_of([one for one in data if is_dask(one)])
    values = iter(computed([chunk for own in chunks for chunk in own.flat]))
    return assembled(data, chunks, values)


def assembled(
    data: Iterable[Any], chunks: Iterable[Any], values: Iterable[Any]
) -> list[Any]:
    """Dask collections put together from the ``values`` of their ``chunks``, in turn."""
    found, own, left = [], iter(chunks), iter(values)
    for one in data:
        if is_dask(one):
            parts = np.empty_like(next(own))
            for number in range(parts.size):
                parts.flat[number] = next(left)
            finish, extra = one.__dask_postcompute__()
            one, given = finish(parts.tolist(), *extra), one
            one = frames.native_text(one) if hasattr(given, "divisions") else one
        found.append(one)
    return found


def held(data: Mapping[Any, Any], client: Any = None) -> dict[Any, Any]:
    """Data by name, held where Dask computes if the order of their rows may change.

    They are computed once, all in one graph.

    Parameters
    ----------
    data : mapping of name to Dask collection, or other data
    client : distributed.Client, optional
        Default: that of Dask.
    """
    lazy = [name for name, one in data.items() if is_dask(one)]
    if not any(is_shuffled(data[name]) for name in lazy):
        return dict(data)
    found = dict(data)
    for numbers in alike([data[name] for name in lazy]):
        names = [lazy[number] for number in numbers]
        there = persisted([data[name] for name in names], client)
        found.update(zip(names, there, strict=True))
    return found


def _from_dask(
    X: Any,
    beside: Sequence[Any],
    executor: Executor,
    block_rows: int | None,
    dtype: Any,
) -> tuple[Source, list[Any]]:
    import dask.array as da

    if isinstance(X, da.Array):
        names = None
        X = X.astype(np.float64) if X.dtype == object else X  # as scikit-learn takes them
        X, wanted = _whole_rows(X, executor, block_rows, dtype)
    else:
        names, wanted = _columns(X, dtype)
    own, *others = chunks_of([X, *filter(is_dask, beside)])
    handles = executor.load([chunk for one in (own, *others) for chunk in one.flat])
    values = executor.results(handles[own.size :])
    chunks = [
        executor.submit(_converted, one, wanted, names) for one in handles[: own.size]
    ]
    del handles
    found = executor.map(inspect, chunks)
    # An empty partition has no say in anything, its type included.
    kept = [(chunk, one) for chunk, one in zip(chunks, found, strict=True) if one.rows]
    if not kept:
        check_shape((0, found[0].columns if found else 0))
    source = _shelved([c for c, _ in kept], [one for _, one in kept], executor, names)
    return source, assembled(beside, others, values)


def _whole_rows(
    X: Any, executor: Executor, block_rows: int | None, dtype: Any
) -> tuple[Any, np.dtype]:
    """A Dask array in chunks of whole rows, and the type of what is computed."""
    if X.ndim != 2 or X.shape[1] == 0:
        check_shape(X.shape)
    wanted = float_dtype(X.dtype, dtype)
    known = not any(np.isnan(rows) for rows in X.chunks[0])
    if X.numblocks[1] > 1 or (block_rows and known):
        X = X.rechunk({0: block_rows, 1: -1} if block_rows and known else {1: -1})
    if known and not sp.issparse(X._meta):
        check_fits(max(X.chunks[0]) * X.shape[1] * wanted.itemsize, executor)
    return X, wanted


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


def _columns(X: Any, dtype: Any) -> tuple[tuple[str, ...], np.dtype]:
    """Names of a Dask data frame, and the type of what is computed."""
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
    return names, frames.frame_dtype(empty, dtype)


def _converted(chunk: Any, dtype: np.dtype, names: tuple[str, ...] | None) -> Any:
    check_unmasked(chunk, "X")
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
