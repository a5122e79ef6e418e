"""Where work runs: in process or on Dask, behind one interface, with the same results.

`Cluster` and `local_cluster` are loaded only when asked for, because `distributed` takes
most of a second to import.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from mlopt.cluster.executor import Executor, Handle, Tree, tree_reduce
from mlopt.cluster.limits import between_passes, inside_task, single_threaded
from mlopt.cluster.parcel import usable
from mlopt.cluster.threads import Threads, count_threads

if TYPE_CHECKING:
    from mlopt.cluster.preset import local_cluster
    from mlopt.cluster.workers import Cluster

__all__ = [
    "Cluster",
    "Executor",
    "Handle",
    "Threads",
    "Tree",
    "between_passes",
    "count_threads",
    "executor",
    "inside_task",
    "local_cluster",
    "single_threaded",
    "tree_reduce",
    "usable",
]


def __getattr__(name: str) -> Any:
    if name == "Cluster":
        from mlopt.cluster.workers import Cluster

        return Cluster
    if name == "local_cluster":
        from mlopt.cluster.preset import local_cluster

        return local_cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def executor(client: Any = None, n_jobs: int | None = None) -> Executor:
    """Where to run: on the given client, else on an active one, else in this process.

    Parameters
    ----------
    client : distributed.Client, optional
    n_jobs : int, optional
        Threads when there is no client; None or -1 for all cores. Inside a call of an
        executor or a Dask task it is always one: the other cores have their work already.
    """
    if client is not None:
        from mlopt.cluster.workers import Cluster

        return Cluster(client)
    if inside_task():
        return Threads(1)
    # Whoever has an active client has imported distributed; nobody else should pay for it.
    return _active(n_jobs) if "distributed" in sys.modules else Threads(n_jobs)


def _active(n_jobs: int | None) -> Executor:
    from distributed import default_client, get_worker

    try:
        get_worker()
        return Threads(1)
    except ValueError:
        pass
    try:
        return executor(default_client())
    except ValueError:
        return Threads(n_jobs)
