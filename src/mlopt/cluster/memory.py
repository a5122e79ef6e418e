"""What of a worker's memory is taken, and what is left for rows."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from mlopt.errors import ClusterError
from mlopt.resources.control_groups import group_limits
from mlopt.resources.probe import machine_memory

_PROFILE_SECOND = 120_000
"""Bytes of a second in the profile that Dask keeps of a worker, where tasks are calls of
scikit-learn: a census of two workers over 143 s of `benchmarks/streaming_search.py`."""
_PROFILE_SHARE = 0.02
"""Of a worker's limit that this profile may take: of 600 MB the last 100 s. Dask keeps the
last 1000 s, 120 MB, whatever the limit is."""
_SCARCE = 0.6
"""Of a worker's limit: from here on Dask spills; it pauses a worker at .8."""
_PROFILES = ("profile_history", "profile_keys_history")


@dataclass(frozen=True)
class Memory:
    """That of one worker, in bytes.

    Attributes
    ----------
    limit : int
        At 60% of it Dask spills, at 80% it pauses the worker, at 95% it ends it.
    used : int
        By the process, with its libraries, but without what Dask can spill.
    threads : int
        Tasks that run at the same time.
    """

    limit: int
    used: int
    threads: int

    def below(self, share: float) -> float:
        """What is left up to a ``share`` of the limit."""
        return max(0.0, share * self.limit - self.used)


class Spare(NamedTuple):
    """What a member may take yet, and where it may put what it does not need just now.

    Parameters
    ----------
    nbytes : callable
        Bytes of memory now; negative if it is scarce.
    folder : str
        On a disk, gone with the member.
    """

    nbytes: Callable[[], float]
    folder: str


def spare(dask_worker: Any) -> Spare | None:
    """Of a worker; None where nobody set a limit."""
    limit = least(dask_worker.memory_manager.memory_limit)
    if not limit:
        return None
    return Spare(
        lambda: _SCARCE * limit - _used(dask_worker), str(dask_worker.local_directory)
    )


async def measure(load: Callable[[], None], dask_worker: Any) -> Memory | None:
    """On a worker, after ``load``; None where nobody set a limit."""
    # Not on the thread on which the worker talks to others: it may take seconds.
    await asyncio.to_thread(load)
    limit = least(dask_worker.memory_manager.memory_limit)
    if not limit:
        return None
    _shorten_profile(dask_worker, limit)
    return Memory(int(limit), _used(dask_worker), int(dask_worker.state.nthreads))


def _used(dask_worker: Any) -> int:
    """Bytes of the process without those that Dask can spill."""
    # Dask's own dictionary of values that it spills counts their bytes.
    held = getattr(getattr(dask_worker.data, "fast", None), "total_weight", 0)
    return max(0, int(dask_worker.monitor.get_process_memory() - held))


def least(limit: int | None) -> int | None:
    """A limit of Dask's, or what the control groups around this process allow if less.

    Dask looks at the outermost group alone. Workers of a batch system are ended by those
    within it.
    """
    machine = machine_memory() or math.inf
    found = min(limit or machine, *group_limits(), machine)
    return int(found) if limit or found < machine else None


def _shorten_profile(dask_worker: Any, limit: int) -> None:
    seconds = max(1, int(_PROFILE_SHARE * limit / _PROFILE_SECOND))
    for name in _PROFILES:
        kept = getattr(dask_worker, name, None)
        if isinstance(kept, deque) and (kept.maxlen is None or kept.maxlen > seconds):
            setattr(dask_worker, name, deque(kept, maxlen=seconds))


class Paused:
    """Workers that Dask has paused, as long as nothing changes about them."""

    def __init__(self) -> None:
        self._spilled: dict[str, int] = {}

    def idle(self, workers: Mapping[str, Mapping[str, Any]]) -> set[str]:
        """Addresses of those that neither run a call nor spill.

        Parameters
        ----------
        workers : mapping of address to what the scheduler knows of a worker
        """
        paused = {a: w["metrics"] for a, w in workers.items() if w["status"] == "paused"}
        before, self._spilled = self._spilled, {
            address: metrics["spilled_bytes"]["disk"] for address, metrics in paused.items()
        }  # fmt: skip
        return {
            address
            for address, metrics in paused.items()
            if not metrics["task_counts"].get("executing")
            and not metrics["task_counts"].get("long-running")
            and before.get(address) == self._spilled[address]
        }


def no_room(workers: Mapping[str, Mapping[str, Any]], seconds: float) -> ClusterError:
    """That calls wait for these paused workers, which have no memory left; what to do."""
    told = "; ".join(
        f"{address} uses {worker['metrics']['memory'] / 1e6:.0f} MB of "
        f"{worker['memory_limit'] / 1e6:.0f} MB, {_to_spill(worker) / 1e6:.0f} MB of it "
        "values that it may spill"
        for address, worker in sorted(workers.items())
    )
    return ClusterError(
        f"Calls wait for Dask workers that are paused, and have begun nothing for "
        f"{seconds:.0f} s: {told}. Start workers with a higher `memory_limit`, or cut the "
        "data into smaller blocks (`X.repartition(partition_size=...)` of a frame, "
        "`X.rechunk(...)` of an array), and run again."
    )


def _to_spill(worker: Mapping[str, Any]) -> int:
    metrics = worker["metrics"]
    return max(0, int(metrics["managed_bytes"] - metrics["spilled_bytes"]["memory"]))
