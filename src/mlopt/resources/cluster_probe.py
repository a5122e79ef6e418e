"""Measuring a cluster through its client, which is only ever called, never imported."""

from __future__ import annotations

import contextlib
import functools
import statistics
import time
from collections.abc import Mapping
from typing import Any

from mlopt.errors import ClusterError
from mlopt.resources.descriptor import Resources
from mlopt.resources.measure import measure

MEASURED_WORKERS = 4  # enough for a median; the others are taken to be alike
PAYLOAD = 2**23
WAIT, LOOK = 60.0, 5.0
"""Seconds for a task, far more than one takes, as others may have the workers; and between
two looks whether these are there: a look is a message of some milliseconds."""
STARTING = 5.0
"""Seconds in which a worker that has been asked for appears, as a rule."""


def identity(client: Any) -> Mapping[str, Any]:
    """The scheduler's id, and what it knows of every worker.

    `Client.scheduler_info` gives a cache that a callback empties of workers every second.

    Raises
    ------
    ClusterError
        If the scheduler does not answer.
    """
    try:
        found: Mapping[str, Any] = client.sync(client.scheduler.identity, n_workers=-1)
    # The client has given up by then, or its scheduler ended while it was asked.
    except (OSError, RuntimeError, AttributeError) as error:
        raise ClusterError(
            f"The Dask scheduler does not answer (client status: {client.status}): start "
            "the cluster, then run again with a new client."
        ) from error
    return found


def cluster_counts(client: Any) -> tuple[str, dict[str, int]]:
    """The scheduler's id, workers, and threads and memory as if all were the least one.

    Raises
    ------
    ClusterError
        If the cluster has no workers.
    """
    info = identity(client)
    if not info["workers"]:
        # Some may be on their way: just started, or started again after a crash.
        with contextlib.suppress(TimeoutError):
            client.wait_for_workers(1, timeout=STARTING)
        info = identity(client)
    workers = list(info["workers"].values())
    if not workers:
        raise ClusterError(
            "A cluster needs at least one worker to be probed, this one has none. Start "
            "workers, or wait for them with `client.wait_for_workers(1)`."
        )
    limits = [int(w["memory_limit"]) for w in workers if w["memory_limit"]]
    threads = min(int(worker["nthreads"]) for worker in workers)
    return str(info["id"]), {
        "workers": len(workers),
        "threads": max(1, threads),
        "memory": len(workers) * min(limits, default=Resources().memory),
    }


def measure_cluster(client: Any, threads: int) -> dict[str, float]:
    """The measured fields of `Resources` for the workers of ``client``."""
    workers = _one_worker_a_host(identity(client)["workers"])
    asked = [_submit(client, worker, measure, threads) for worker in workers]
    found = [_result(client, future) for future in asked]
    # One slow worker says little of the others; the median is what most of them do.
    names = set.intersection(*(set(rates) for rates in found))
    rates = {name: statistics.median(r[name] for r in found) for name in sorted(names)}
    rates |= _task_seconds(client)
    return rates | {"network": _network_rate(client, rates["round_trip"])}


def _one_worker_a_host(workers: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Addresses of a few workers, no two on one host: they would measure one another."""
    by_host = {str(info.get("host", address)): address for address, info in workers.items()}
    return sorted(by_host.values())[:MEASURED_WORKERS]


def _submit(client: Any, worker: str, function: Any, *args: Any) -> Any:
    return client.submit(function, *args, workers=[worker], pure=False)


def _result(client: Any, *asked: Any) -> Any:
    """What the last of these tasks gives when all have ended, as long as there are workers.

    Raises
    ------
    ClusterError
        With what is lost, or when it takes a minute.
    """
    end = time.monotonic() + WAIT
    gather = functools.partial(client.gather, list(asked), asynchronous=True)
    while True:
        try:
            return client.sync(gather, callback_timeout=LOOK)[-1]
        # The tasks are ours and cannot fail: their workers can, in many ways.
        except Exception as error:
            if not identity(client)["workers"]:
                raise ClusterError(
                    "All Dask workers were lost while they were measured: start workers, "
                    "then run again."
                ) from error
            if not isinstance(error, TimeoutError):
                raise ClusterError(
                    "A Dask worker was lost while it was measured, or has no memory for it "
                    f"({type(error).__name__}): look at its log, then run again."
                ) from error
            if time.monotonic() > end:
                raise ClusterError(
                    f"The Dask workers did not answer within {WAIT:.0f} s while they were "
                    "measured: run again."
                ) from error


def _task_seconds(client: Any, tasks: int = 64) -> dict[str, float]:
    """What one round trip takes, and one more task among many."""
    _result(client, client.submit(int, pure=False))  # the first one opens connections
    trips = []
    for _ in range(8):
        start = time.perf_counter()
        _result(client, client.submit(int, pure=False))
        trips.append(time.perf_counter() - start)
    trip = statistics.median(trips)
    start = time.perf_counter()
    _result(client, *client.map(int, range(tasks), pure=False))
    many = time.perf_counter() - start
    return {"task": max(many - trip, 0.01 * many) / tasks, "round_trip": trip}


def _network_rate(client: Any, round_trip: float) -> float:
    """Bytes/s from one worker to another, or to the client where there is one worker."""
    addresses = sorted(identity(client)["workers"])
    payload = _submit(client, addresses[0], bytes, PAYLOAD)
    _result(client, payload)
    start = time.perf_counter()
    if len(addresses) > 1:
        _result(client, _submit(client, addresses[1], len, payload))
        took = time.perf_counter() - start - round_trip
    else:
        _result(client, payload)
        took = time.perf_counter() - start
    # The trip of the task itself is not transfer, but it may have varied by as much.
    return PAYLOAD / max(took, 0.1 * (time.perf_counter() - start), 1e-9)
