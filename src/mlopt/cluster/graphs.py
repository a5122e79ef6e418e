"""What the tasks of a Dask graph read of each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent import futures
from itertools import pairwise
from typing import Any

from mlopt.cluster.executor import resolve


def settled(key: Any, task: Any) -> Any:
    """A task of a graph, with the values of handles in their place."""
    from dask.task_spec import DataNode

    if isinstance(task, futures.Future):
        return DataNode(key, task.result())  # in which Dask looks for no further tasks
    return resolve(task)


def after(reads: Mapping[Any, Iterable[Any]], first: Any) -> set[Any]:
    """A task, and all that need it."""
    from dask.core import toposort

    found = {first}
    for key in toposort(dict(reads), dependencies=dict(reads)):
        if not found.isdisjoint(reads[key]):
            found.add(key)
    return found


def reads_of(tasks: Mapping[Any, Any]) -> dict[Any, frozenset[Any]]:
    """The tasks that each one reads."""
    return {k: getattr(task, "dependencies", frozenset()) for k, task in tasks.items()}


def is_chain(tasks: Mapping[Any, Any]) -> bool:
    """Whether every task reads the one before it."""
    from dask.core import toposort
    from dask.task_spec import DataNode

    reads = reads_of(tasks)
    order = toposort(tasks, dependencies=reads)
    work = [key for key in order if not isinstance(tasks[key], DataNode)]
    return all(one in reads[later] for one, later in pairwise(work))
