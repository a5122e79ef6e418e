"""What workers hold of a Dask collection: futures among the tasks of its graph."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any


def futures_in(graph: Mapping[Any, Any]) -> dict[Any, Any]:
    """The futures among the values of a graph, by their keys."""
    if "distributed" not in sys.modules:
        return {}
    from distributed import Future

    return {key: one for key, one in graph.items() if isinstance(one, Future)}


def bringing(graph: Mapping[Any, Any]) -> dict[Any, Any]:
    """The same graph for this process: futures are tasks that bring what they stand for."""
    from dask.task_spec import Task

    futures = futures_in(graph).items()
    return {**graph, **{key: Task(key, future.result) for key, future in futures}}


def cluster_of(data: Iterable[Any]) -> Any:
    """The cluster that holds some of what Dask collections are made of, if one does."""
    if "distributed" not in sys.modules:
        return None
    graphs = [one.__dask_graph__() for one in data]
    # Chunks of one collection have one graph.
    for graph in {id(graph): graph for graph in graphs}.values():
        for future in futures_in(graph).values():
            from mlopt.cluster.workers import Cluster

            return Cluster(future.client)
    return None
