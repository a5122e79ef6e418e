"""A cluster on this machine that keeps its workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
import distributed
from dask.system import CPU_COUNT

from mlopt.cluster.connect import dask_default_kept
from mlopt.resources.probe import memory_limit as memory_limit_here

PRESET = {
    # Dask's 15 s give a nanny up for good when its worker is slow to come back.
    "distributed.deploy.lost-worker-timeout": "600 s",
    # Otherwise tasks wait for ever once the last worker is gone.
    "distributed.scheduler.no-workers-timeout": "45 s",
    # What ended two workers ends others too: better to name it than to go on.
    "distributed.scheduler.allowed-failures": 1,
    # A worker that hangs is given up, and its work done elsewhere.
    "distributed.scheduler.worker-ttl": "30 s",
}


_START = 60.0
"""Seconds that worker processes may take to report to their scheduler."""


@contextmanager
def local_cluster(
    n_workers: int, threads_per_worker: int = 1, *, memory_limit: Any = "auto"
) -> Iterator[distributed.Client]:
    """Worker processes on this machine, reached through loopback only, and their client.

    Parameters
    ----------
    n_workers : int
        Processes.
    threads_per_worker : int, default=1
    memory_limit : int, float or str, default="auto"
        Of one worker, as in `distributed.LocalCluster`; "auto" knows of all control groups.

    Yields
    ------
    distributed.Client
        Active until the block ends; then the processes end too.
    """
    if memory_limit == "auto":  # Dask's own formula, of a limit that it does not know
        memory_limit = int(memory_limit_here() * min(1.0, threads_per_worker / CPU_COUNT))
    with (
        dask_default_kept(),
        dask.config.set(PRESET),
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=threads_per_worker,
            processes=True,
            memory_limit=memory_limit,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        # The processes run by now, but the scheduler may not have heard of all of them.
        if n_workers:
            client.wait_for_workers(n_workers, timeout=_START)
        yield client
