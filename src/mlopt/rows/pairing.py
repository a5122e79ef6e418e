"""Rows and what goes with them, such as their targets, from one graph.

Computed apart, the rows of a frame may come in another order each time, as they do behind
a shuffle: each would meet the target of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlopt.cluster import futures_in

_BARRIERS = ("barrier", "p2p_barrier")
"""Tasks that wait for all rows, which then come as threads or workers had them."""


def chunks_of(data: Sequence[Any]) -> list[np.ndarray]:
    """Delayed chunks of Dask collections; what several have in common is computed once.

    Frames share what is behind their columns only where Dask optimizes them together.
    """
    found: dict[int, np.ndarray] = {}
    for numbers in alike(data):
        from dask.base import collections_to_expr
        from dask.core import flatten
        from dask.delayed import Delayed
        from dask.highlevelgraph import HighLevelGraph

        joint = collections_to_expr([data[number] for number in numbers]).optimize()
        name, tasks = joint._name, dict(joint.__dask_graph__())
        for number in numbers:  # Dask leaves out what workers hold already
            tasks |= futures_in(data[number].__dask_graph__())
        graph = HighLevelGraph.from_collections(name, tasks, dependencies=())
        for number, keys in zip(numbers, joint.__dask_keys__(), strict=True):
            one = data[number]
            parts = [Delayed(key, graph, layer=name) for key in flatten(keys)]
            shape = getattr(one, "numblocks", None)
            found[number] = np.empty((len(parts),) if shape is None else shape, object)
            for place, part in enumerate(parts):
                found[number].flat[place] = part
    return [found[number] for number in range(len(data))]


def alike(data: Sequence[Any]) -> list[list[int]]:
    """Numbers of those that Dask optimizes together: frames, and arrays."""
    kinds: dict[Any, list[int]] = {}
    for number, one in enumerate(data):
        kinds.setdefault(hasattr(one, "expr") or type(one), []).append(number)
    return list(kinds.values())


def is_shuffled(data: Any) -> bool:
    """Whether there is a shuffle behind a Dask collection: the order of rows may change."""
    from dask._task_spec import convert_legacy_graph

    tasks = convert_legacy_graph(dict(data.__dask_graph__())).values()
    return any(
        getattr(getattr(task, "func", None), "__name__", "") in _BARRIERS for task in tasks
    )
