"""Any input cut into blocks of rows: in memory, or in the chunks of a Dask collection.

Chunks of a collection are not read before they are needed, and read again whenever they
are, unless something keeps them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask._task_spec import convert_legacy_graph
from dask.base import tokenize
from dask.task_spec import Alias, Task, TaskRef

from mlopt.cluster import Executor, Threads, computed, futures_in
from mlopt.errors import InputError
from mlopt.identity import join, token_of
from mlopt.pipeline.blocks import tables
from mlopt.plan.units import format_bytes
from mlopt.rows.block import as_csr, boundaries, check_unmasked
from mlopt.rows.frames import has_dask_text, native_text
from mlopt.rows.room import AT_ONCE, KILLED, memories
from mlopt.rows.source import check_fits, collected_together, is_dask


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
        Of the content, or of this run.
    lazy : bool
        Whether blocks are read only when they are asked for.
    labelled : bool
        Whether they are parts of a Dask frame, each with row labels of its own.
    given : key of a task, or None
        All rows in one, as the user gave them, where these are in this process.
    """

    tasks: Mapping[Any, Any]
    keys: tuple[Any, ...]
    lengths: tuple[int, ...] | None
    token: str
    lazy: bool = False
    labelled: bool = False
    given: Any = None

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return len(self.keys)

    def graph(self, numbers: Iterable[int]) -> dict[Any, Any]:
        """The tasks that these blocks need, and maybe others."""
        if self.lazy:
            return dict(self.tasks)
        return {key: self.tasks[key] for key in (self.keys[number] for number in numbers)}

    def without(self, lengths: Sequence[int]) -> Blocks:
        """Only the blocks that have rows, where each has so many."""
        keys = tuple(k for k, n in zip(self.keys, lengths, strict=True) if n)
        counted = tuple(int(n) for n in lengths if n)
        return replace(self, keys=keys, lengths=counted)


def ask(
    blocks: Blocks,
    executor: Executor,
    name: str,
    function: Callable[..., Any],
    arguments: Mapping[int, tuple[Any, ...]],
) -> list[Any]:
    """``function(block, *arguments)``, for each block by number that has arguments."""
    graph, keys = blocks.graph(arguments), []
    # A scheduler that still holds an answer gives it to who asks by the same name.
    asked = tokenize(blocks.token, list(arguments.items()))
    for number, others in arguments.items():
        key = (f"{name}-{asked}", number)
        graph[key] = Task(key, function, TaskRef(blocks.keys[number]), *others)
        keys.append(key)
    handles = executor.run_graph(graph, keys)
    values = [executor.result(handle) for handle in handles]
    for handle in handles:
        executor.release(handle)
    return values


def lengths_of(blocks: Blocks, executor: Executor) -> list[int]:
    """Rows of each block, of which all are read."""
    every = dict.fromkeys(range(blocks.count), ())
    return ask(blocks, executor, "rows", tables.count_rows, every)


def same_rows(X: Any, beside: Any) -> bool:
    """Whether two Dask frames surely take their rows from one, as they come."""
    here, there = _behind(X), _behind(beside)
    return here == there and len(here) == 1


def _behind(data: Any) -> set[str]:
    """The frames that ``data`` is computed from row by row; none where not known."""
    found: set[str] = set()
    above = [data.expr] if hasattr(data, "expr") else []
    while above:
        expression = above.pop()
        if _is_row_wise(expression):
            above += [one for one in expression.dependencies() if one.ndim]
        else:
            found.add(expression._name)
    return found


def _is_row_wise(expression: Any) -> bool:
    from dask.dataframe.dask_expr import _expr

    return isinstance(expression, _expr.Elemwise)


def check_same_rows(name: str, n: int, found: int) -> None:
    """Raise unless there are as many of ``name`` as of X.

    Raises
    ------
    InputError
    """
    if found != n:
        raise InputError(
            f"X and `{name}` must have the same number of rows, got {n} and {found}."
        )


def cut(
    data: Any,
    executor: Executor,
    *,
    name: str = "X",
    lengths: Sequence[int] | None = None,
    lasting: bool = False,
    small: float = 0,
    as_given: bool = False,
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
    lasting : bool, default=False
        Whether equal data get an equal token, in every run: their content is then read.
        Else the token never comes again.
    small : int or infinity, default=0
        Rows up to which they are one block; so are those that `are_typed_by_missing`.
    as_given : bool, default=False
        Whether one block is to be ``data`` itself, a list or in columns as it may be.

    Raises
    ------
    InputError
        When there are no rows, or not as many as ``lengths`` says.
    """
    if is_dask(data):
        return _lazy(data, executor, token_of(data) if lasting else uuid.uuid4().hex)
    given = framed(data)
    converted = sp.issparse(given) or isinstance(given, list | tuple)
    data = given if as_given and converted else usable(given, name)
    n = tables.count_rows(data)
    if n == 0:
        raise InputError(f"`{name}` must have at least one row, got none.")
    if lengths is not None:
        check_same_rows(name, sum(lengths), n)
    elif n <= small or tables.are_typed_by_missing(data):
        lengths = [n]
    edges = boundaries(n, tables.count_bytes(data)) if lengths is None else _edges(lengths)
    token = token_of(data) if lasting else uuid.uuid4().hex
    keys = tuple((f"{name}-{token}", number) for number in range(len(edges) - 1))
    ranges = dict(zip(keys, pairwise(edges), strict=True))
    sizes = tuple(b - a for a, b in pairwise(edges))
    parts: dict[Any, Callable[[], Any]] = {
        key: partial(tables.row_range, data, *edge) for key, edge in ranges.items()
    }
    whole = (f"{name}-{token}", "given") if isinstance(executor, Threads) else None
    all_rows = given if converted else data
    if whole is not None:
        parts[whole] = lambda: all_rows
    if as_given and len(keys) == 1:
        parts[keys[0]] = lambda: all_rows
    return Blocks(_Parts(parts, executor), keys, sizes, token, given=whole)


def cut_anew(blocks: Blocks, name: str, sizes: Sequence[int], executor: Executor) -> Blocks:
    """The same rows in blocks of ``sizes``, of parts that are read to be counted.

    Raises
    ------
    InputError
        When there are not as many as X has.
    """
    have = lengths_of(blocks, executor)
    check_same_rows(name, sum(sizes), sum(have))
    if have == [*sizes]:
        return replace(blocks, lengths=tuple(sizes))
    before, after = np.cumsum([0, *have]), np.cumsum([0, *sizes])
    graph, keys = dict(blocks.tasks), []
    token = f"{blocks.token}-{join(*map(str, sizes))}"  # of these cuts alone
    for number, (start, stop) in enumerate(pairwise(after.tolist())):
        first = min(int(np.searchsorted(before, start, "right")), blocks.count) - 1
        last = max(first + 1, int(np.searchsorted(before, stop)))
        edges = start - int(before[first]), stop - int(before[first])
        keys.append((f"{name}-cut-{token}", number))
        parts = map(TaskRef, blocks.keys[first:last])
        graph[keys[-1]] = Task(keys[-1], _rows_of, *edges, *parts)
    lengths = tuple(sizes)
    return replace(blocks, tasks=graph, keys=tuple(keys), lengths=lengths, token=token)


def _rows_of(start: int, stop: int, *parts: Any) -> Any:
    return tables.row_range(tables.stack(parts, labelled=True), start, stop)


class _Parts(Mapping[Any, Any]):
    """Handles of the parts of data in memory, each given away when it is first asked for.

    Targets travel to workers only where a step reads them.
    """

    def __init__(self, parts: Mapping[Any, Callable[[], Any]], executor: Executor) -> None:
        self._parts, self._executor = parts, executor
        self._handles: dict[Any, Any] = {}

    def __getitem__(self, key: Any) -> Any:
        if key not in self._handles:
            self._handles[key] = self._executor.put(self._parts[key]())
        return self._handles[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


def gathered(data: Mapping[str, Any], room: float, why: str = "") -> dict[str, Any]:
    """Data in this process: Dask collections are computed, if they fit.

    Raises
    ------
    InputError
        With the bytes of what is larger than ``room``, and the reason ``why``.
    """
    for name, one in data.items():
        if is_dask(one):
            check_room(one, name, room, why)
    return dict(zip(data, collected_together(*data.values()), strict=True))


def check_room(data: Any, name: str, room: float, why: str = "", advice: str = "") -> float:
    """Bytes of a Dask collection, or of `Rows`, that is to be gathered.

    Raises
    ------
    InputError
        When they are more than ``room``, with the reason ``why``, and what else than more
        memory would do.
    """
    size = _size(data) if is_dask(data) else float(data.nbytes)
    if size > room:
        reason = f": {why.removesuffix('.')}" if why else ""
        raise InputError(
            f"`{name}` must be gathered in one place, and takes "
            f"{format_bytes(size)}, more than the {format_bytes(room)} that there are"
            f"{reason}. Give more memory, {advice or 'or fewer rows'}."
        )
    return size


def _size(data: Any) -> float:
    """Bytes of a Dask collection: as it says, or counted chunk by chunk."""
    import dask
    import dask.array as da

    if isinstance(data, da.Array) and not (
        np.isnan(data.nbytes) or sp.issparse(data._meta)
    ):
        return float(data.nbytes)
    parts = np.ravel(np.asarray(data.to_delayed(), dtype=object))
    counted = computed(dask.delayed(tables.count_bytes)(p) for p in parts)
    return float(sum(counted))


def _edges(lengths: Sequence[int]) -> list[int]:
    return [int(edge) for edge in np.cumsum((0, *lengths))]


def usable(data: Any, name: str = "X") -> Any:
    """What can be cut by rows: CSR for other sparse matrices, arrays for lists of numbers.

    Tables of Arrow become data frames of pandas, arrays of Arrow those of NumPy, and
    pandas' own arrays its series.
    """
    check_unmasked(data, name)
    data = framed(data)
    if getattr(data, "shape", None) == ():
        raise InputError(f"{name} must have rows, got a single value: {data!r}.")
    if sp.issparse(data):
        return as_csr(data)
    if isinstance(data, list | tuple):
        found = tables.unlisted(data)
        objects = getattr(found, "dtype", None) == np.dtype(object) and found.ndim == 1
        return np.asarray(data) if name != "X" and objects else found  # of one type
    if isinstance(data, np.ndarray) or hasattr(data, "iloc"):
        return data
    if hasattr(data, "__array__") and not (_is_polars(data) or _gives_arrays(data)):
        return np.asarray(data)
    if isinstance(data, str | bytes) or not hasattr(data, "__iter__"):
        raise InputError(
            "Data must be an array, a sparse matrix, a data frame, a list of documents or "
            f"a Dask collection, got {type(data).__name__}."
        )
    return data if hasattr(data, "shape") else list(data)


def _is_polars(data: Any) -> bool:
    return type(data).__module__.partition(".")[0] == "polars"


def _gives_arrays(data: Any) -> bool:
    """Whether rows of it are read as they are needed, as from a file."""
    try:
        return isinstance(data[:1], np.ndarray)
    except Exception:  # whatever its library raises
        return False


def framed(data: Any) -> Any:
    """A table of Arrow as a data frame, its arrays as NumPy's; other data as they are.

    Text in it is objects, with None for what is missing, as in a table. What pandas has
    without rows to choose from, an array of its own or an index, is a series.
    """
    if type(data).__module__.startswith("pandas") and not hasattr(data, "iloc"):
        import pandas as pd

        return pd.Series(data)
    if not (hasattr(data, "to_pandas") and type(data).__module__.startswith("pyarrow")):
        return data
    if not hasattr(data, "columns"):
        return np.asarray(data)
    import pandas as pd

    frame = data.to_pandas()
    for number, column in enumerate(data.columns):
        if str(column.type) in ("string", "large_string", "string_view"):
            text = column.to_numpy(zero_copy_only=False)
            frame.isetitem(number, pd.Series(text, index=frame.index, dtype=object))
    return frame


def _largest(executor: Executor) -> float | None:
    """Bytes of the largest block with which a worker of one thread is not killed."""
    found = memories(executor)
    room = min((one.below(KILLED) for one in found), default=0.0)
    return max(room / AT_ONCE, min(one.limit for one in found) / 20) if found else None


def _lazy(data: Any, executor: Executor, token: str) -> Blocks:
    """The chunks of a Dask array, data frame, series or bag."""
    import dask.array as da

    lengths = None
    if isinstance(data, da.Array):
        if data.ndim > 1 and data.numblocks[1] > 1:
            data = data.rechunk({1: -1})
        if not any(np.isnan(size) for size in data.chunks[0]):
            lengths = tuple(int(size) for size in data.chunks[0])
            width = int(np.prod(data.shape[1:]))
            if not sp.issparse(data._meta):
                longest = max(lengths, default=0) * width * data.dtype.itemsize
                check_fits(longest, executor, _largest(executor))
    # `dask.optimize` is not for this: it forgets which columns of a frame were taken.
    parts = np.ravel(np.asarray(data.to_delayed(), dtype=object)).tolist()
    graph = convert_legacy_graph(dict(parts[0].__dask_graph__())) if parts else {}
    for key, task in graph.items():
        if isinstance(task, Alias) and task.key != key:  # of frames of delayed values
            graph[key] = Alias(key, task.target)
    keys = tuple(part.key for part in parts)
    # Dask leaves out what workers hold already, as of a collection that is persisted.
    graph |= futures_in(data.__dask_graph__())
    if (labelled := hasattr(data, "divisions")) and has_dask_text(data._meta):
        own = tuple((f"text-{token}", number) for number in range(len(keys)))
        for new, key in zip(own, keys, strict=True):
            graph[new] = Task(new, native_text, TaskRef(key))
        keys = own
    return Blocks(graph, keys, lengths, f"dask-{token}", lazy=True, labelled=labelled)
