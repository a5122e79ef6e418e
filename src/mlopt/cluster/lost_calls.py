"""Calls that Dask fails, or forgets to run, because of what other calls did to a worker.

When a worker dies, Dask suspects every task that was there, data on their way into memory
too; what is suspected too often has failed for good, and all that needs it. And a result
that was lost while something before it counts as failed is never made again, though other
calls wait for it (`Scheduler._transition_memory_released`): they wait for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import distributed

PUT = "put"
"""How the keys of values are named that came from the driver."""
_FORGIVEN = 2
"""Times that a value is sent anew. It kills no worker unless it is too large for all."""


class Forgiven:
    """Which values have been made again, and how often."""

    def __init__(self) -> None:
        self._times: dict[str, int] = {}

    def again(self, handles: Sequence[Any]) -> bool:
        """Run those again that failed for a value that was on its way to a worker."""
        failed = [handle for handle in handles if handle.status == "error"]
        values = {handle: value for handle in failed if (value := _value_at_fault(handle))}
        times = {value: self._times.get(value, 0) + 1 for value in values.values()}
        few = [handle for handle, value in values.items() if times[value] <= _FORGIVEN]
        if few:
            self._times |= {values[handle]: times[values[handle]] for handle in few}
            few[0].client.sync(_retry, few)
        return bool(few)


async def _retry(handles: Sequence[Any]) -> None:
    """As `distributed.Client.retry`, which stumbles over values that the client let go."""
    client = handles[0].client
    keys = [handle.key for handle in handles]
    for key in await client.scheduler.retry(keys=keys, client=client.id):
        if (state := client.futures.get(key)) is not None:
            state.retry()


def _value_at_fault(handle: Any) -> str:
    error = handle.exception()
    if not isinstance(error, distributed.KilledWorker):
        return ""
    return error.task if error.task.split("-")[-2:-1] == [PUT] else ""


def revive(keys: Sequence[str], dask_scheduler: Any) -> None:
    """Let Dask find out anew what it takes to run ``keys``; on the scheduler.

    To be called while no worker has anything to do: what waits then, waits for a task that
    nobody will run.
    """
    tasks = dask_scheduler.tasks
    above, found = [tasks[key] for key in keys if key in tasks], {}
    while above:
        task = above.pop()
        if task.key not in found and task.state not in {"memory", "processing"}:
            found[task.key] = task
            above.extend(task.dependencies)
    # What failed is left alone where it is the call itself: the client has heard of it.
    stuck = [key for key, task in found.items() if task.state in {"waiting", "erred"}]
    named = f"mlopt-revives-{len(found)}"
    dask_scheduler.transitions(dict.fromkeys(stuck, "released"), named)
    left = [key for key, task in found.items() if task.state == "released"]
    wanted = [key for key in left if found[key].who_wants or found[key].waiters]
    dask_scheduler.transitions(dict.fromkeys(wanted, "waiting"), named)
