"""What tests ask of a cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dask
import distributed

from mlopt.cluster.preset import PRESET


@contextmanager
def running_workers() -> Iterator[str]:
    """The address of two worker processes, as of `local_cluster`, without a client."""
    with (
        dask.config.set(PRESET),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
    ):
        yield str(cluster.scheduler_address)


def task_keys(client: Any) -> set[str]:
    """Of all tasks that the scheduler knows."""
    found: set[str] = client.run_on_scheduler(_keys)
    return found


def _keys(dask_scheduler: Any) -> set[str]:
    return {str(key) for key in dask_scheduler.tasks}


def eventually(true: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether it comes true in time."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


def in_thread(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """A call in a thread, and its result or error when it has ended."""
    ended: list[Any] = []

    def run() -> None:
        try:
            ended.append(call())
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, ended
