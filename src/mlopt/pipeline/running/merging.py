"""Tasks of one block that only one other task of this block reads become part of it.

A block that was read for a single step then is gone when the step is done, and is not held
beside others that wait for their turn.

::

    read 3 ── scale 3 ── part 3        part 3
                                  ->
    read 4 ── scale 4 ── part 4        part 4
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from dask.core import reverse_dict
from dask.task_spec import DataNode, GraphNode, Task


def together(
    graph: Mapping[Any, Any], rows: Collection[Any], wanted: Collection[Any]
) -> dict[Any, list[Any]]:
    """Which tasks become one, by the key of the last of them.

    Parameters
    ----------
    graph : mapping of key to task, value or handle
        Without tasks that nobody needs.
    rows : collection of key
        Of operators that make one block from blocks, or statistics of one block.
    wanted : collection of key
        These stay tasks of their own, as do values and handles.
    """
    tasks = {key: task for key, task in graph.items() if isinstance(task, GraphNode)}
    reads = {key: set(task.dependencies) & tasks.keys() for key, task in tasks.items()}
    readers = reverse_dict(reads)
    inside: dict[Any, list[Any]] = {key: [key] for key in tasks}
    for key in _inputs_first(reads):
        for one in reads[key]:
            alone = len(readers[one]) == 1 and one not in wanted
            linear = key in rows or (key not in wanted and len(reads[key]) == 1)
            if alone and linear and _is_block(one, rows, reads):
                inside[key] = [*inside.pop(one), *inside[key]]
    return inside


def linked(graph: Mapping[Any, Any], sources: Iterable[Sequence[Any]]) -> set[Any]:
    """Tasks of the sources that several blocks need, or behind such, or of many tasks.

    They must keep their keys, by which Dask's shuffles know them. What is left are chains,
    each from what is read to one block.

    Parameters
    ----------
    graph : mapping of key to task, value or handle
    sources : iterable of sequence of key
        The blocks of each source, in the order of their rows.
    """
    found: dict[Any, set[int]] = {}
    free: set[Any] = set()
    reads = {
        key: [one for one in task.dependencies if _is_task(graph.get(one))]
        for key, task in graph.items()
        if _is_task(task)
    }
    blocks = [pair for keys in sources for pair in enumerate(keys) if pair[1] in reads]
    for number, block in blocks:
        left = [block]
        while left:
            needed = found.setdefault(key := left.pop(), set())
            # That there are two is enough to know.
            if number not in needed and len(needed) < 2:
                needed.add(number)
                left += reads[key]
    for _, block in blocks:
        chain = [block]
        while len(found[chain[-1]]) == len(reads[chain[-1]]) == 1:
            chain += reads[chain[-1]]
        if len(found[chain[-1]]) == 1 and not reads[chain[-1]]:
            free.update(chain)
    return found.keys() - free


def merged(
    graph: Mapping[Any, Any],
    inside: Mapping[Any, Sequence[Any]],
    names: Mapping[Any, Any] | None = None,
) -> dict[Any, Any]:
    """A graph with these tasks as one each.

    Parameters
    ----------
    inside : mapping of key to keys
        As from `together`.
    names : mapping of key to key, optional
        Other keys for tasks that are several in one, and for handles.
    """
    names = names or {}
    gone = {key for members in inside.values() for key in members} - inside.keys()
    found = {names.get(key, key): v for key, v in graph.items() if key not in gone}
    for key, members in inside.items():
        new = names.get(key, key)
        if len(members) == 1:
            found[new] = graph[key].substitute(names, key=new)
        else:
            tasks = [graph[member].substitute(names) for member in members]
            found[new] = Task.fuse(*tasks, key=new)
    return found


def _is_task(value: Any) -> bool:
    """Whether something is computed: not data, nor a handle."""
    return isinstance(value, GraphNode) and not isinstance(value, DataNode)


def _is_block(key: Any, rows: Collection[Any], reads: Mapping[Any, Any]) -> bool:
    """Whether a task makes one block: not from the pieces of many."""
    return key in rows or len(reads[key]) <= 1


def _inputs_first(reads: Mapping[Any, set[Any]]) -> list[Any]:
    from dask.core import toposort

    return list(toposort(reads, dependencies=reads))
