"""Tasks of one block that only one other task of this block reads become part of it.

A block that was read for a single step then is gone when the step is done, and is not held
beside others that wait for their turn.

::

    read 3 ── scale 3 ── part 3        part 3
                                  ->
    read 4 ── scale 4 ── part 4        part 4
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dask.core import reverse_dict
from dask.task_spec import GraphNode, Task


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
        tasks = [graph[member].substitute(names) for member in members]
        new = names.get(key, key)
        found[new] = Task.fuse(*tasks, key=new) if len(tasks) > 1 else tasks[0]
    return found


def _is_block(key: Any, rows: Collection[Any], reads: Mapping[Any, Any]) -> bool:
    """Whether a task makes one block: not from the pieces of many."""
    return key in rows or len(reads[key]) <= 1


def _inputs_first(reads: Mapping[Any, set[Any]]) -> list[Any]:
    from dask.core import toposort

    return list(toposort(reads, dependencies=reads))
