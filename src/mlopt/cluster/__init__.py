"""Where work runs: in process or on Dask, behind one interface, with the same results."""

from __future__ import annotations

from typing import Any

from mlopt.cluster.executor import Executor, Handle, Tree, tree_reduce
from mlopt.cluster.limits import inside_task, single_threaded
from mlopt.cluster.threads import Threads, count_threads

__all__ = [
    "Executor",
    "Handle",
    "Threads",
    "Tree",
    "count_threads",
    "executor",
    "inside_task",
    "single_threaded",
    "tree_reduce",
]


def executor(client: Any = None, n_jobs: int | None = None) -> Executor:
    """Where to run: the given client, else an active one, else threads of this process.

    Parameters
    ----------
    client : distributed.Client, optional
    n_jobs : int, optional
        Threads when there is no client; None or -1 for all cores. Inside a call of an
        executor it is always one: the other cores have their work already.
    """
    del client
    return Threads(1 if inside_task() else n_jobs)
