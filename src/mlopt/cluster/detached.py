"""Tasks that outlive the client that sent them: they run on a worker, and drive others.

::

    client --- detach ---> scheduler ---> worker: `drive`, a client of its own
                                            |  waits for its turn, then submits calls
                                            v
                                          scheduler ---> all workers

The scheduler keeps such a task for nobody (``fire_and_forget``), gives it to another worker
when its own dies, and forgets it when it ends. What it found is in files by then.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import distributed
from distributed.client import futures_of

from mlopt.cluster.at_scheduler import ask
from mlopt.cluster.pool import Abandoned, raise_in
from mlopt.cluster.threads import driving
from mlopt.cluster.turns import take_turns
from mlopt.cluster.workers import restart_stuck
from mlopt.errors import ClusterError
from mlopt.limits import let_go

# Above that of any call, so that it begins on the first thread that is free; it leaves that
# at once, and waits for its turn elsewhere.
_FIRST = 1 << 40
# Seconds between two looks: whether it is a task's turn, whether it is still wanted.
_TURN, _LOOK = 0.5, 0.2
# Seconds until a scheduler must know what it was sent.
_PATIENCE = 30.0
# Seconds until a driver that has not ended is told again: a call-back may drop it.
_AGAIN = 5.0

_FOLDERS = "mlopt-jobs"
_driven: dict[str, int] = {}
"""The tasks that this process drives, and their threads."""


class Drive:
    """What a driver is given: where it is, and whether it is still wanted.

    Attributes
    ----------
    client : distributed.Client
        Of its own.
    worker : str
        The address of the worker that it runs on.
    threads : int
        Of that worker.
    """

    def __init__(self, client: Any, worker: Any, key: str) -> None:
        self.client, self.worker = client, str(worker.address)
        self.threads = int(worker.state.nthreads)
        self._worker, self._key = worker, key

    def forgive(self) -> None:
        """Say that it gets ahead: Dask gives up what has ended some workers, whoever of all
        that ran on them was to blame, and whatever was done between their deaths."""
        ask(self.client, "forgive", key=self._key)

    @property
    def wanted(self) -> bool:
        """Whether nobody has cancelled it, and its worker and its scheduler are there."""
        task = self._worker.state.tasks.get(self._key)
        runs = self._worker.status in (
            distributed.Status.running,
            distributed.Status.paused,
            # On its way out: the task goes to another worker once this one has left.
            distributed.Status.closing_gracefully,
        )
        return runs and task is not None and task.state != "cancelled"


def detach(client: Any, key: str, function: Callable[..., None], *args: Any) -> None:
    """Have ``function(drive, *args)`` run on a worker, whatever becomes of this client.

    Raises
    ------
    ClusterError
        The scheduler does not take it.
    """
    # What is sent within the timeout comes in no order.
    future = client.submit(
        _drive, key, function, *args, key=key, pure=False, priority=_FIRST,
        fifo_timeout="0 ms",
    )  # fmt: skip
    distributed.fire_and_forget(future)
    end = time.monotonic() + _PATIENCE
    while future.status == "pending" and key not in detached(client):
        if time.monotonic() > end:
            raise ClusterError(
                f"The scheduler at {client.scheduler.address} has not taken the job within "
                f"{_PATIENCE:.0f} s: look at its log."
            )
        time.sleep(_LOOK / 4)
    if future.status == "error":
        with contextlib.suppress(Exception):
            future.result()
        raise ClusterError(f"The job could not begin: {future.exception()!r}.")


def detached(client: Any) -> list[str]:
    """The keys of the tasks that run or wait, first come first."""
    keys, _ = ask(client, "jobs")
    return list(keys)


def cancel(client: Any, key: str) -> None:
    """Drop a task, and wait until no worker drives it any more; then, with it, what it had
    submitted is gone."""
    future = distributed.Future(key, client)
    client.cancel([future], force=True)
    future.release()
    end = time.monotonic() + _PATIENCE
    while any(client.run(_drives, key, on_error="ignore").values()):
        if time.monotonic() > end:
            raise ClusterError(
                f"`{key}` was cancelled, but a worker is still at it after "
                f"{_PATIENCE:.0f} s, in compiled code: it ends with that. Cancel it again "
                "then, to remove what it kept."
            )
        time.sleep(_LOOK)
    restart_stuck(client)


def ask_workers(client: Any, function: Callable[..., Any], *args: Any) -> Mapping[str, Any]:
    """What ``function(*args)`` returns on each worker that is there, by its address."""
    found: Mapping[str, Any] = client.run(_aside, function, args)
    return found


def remember(client: Any, folder: str) -> None:
    """Have the scheduler know where the files of a job are."""
    client.set_metadata([_FOLDERS, folder], True)


def remembered(client: Any) -> list[str]:
    """The folders of jobs that this scheduler was told, in order."""
    told = client.get_metadata([_FOLDERS], default={})
    return [folder for folder, there in told.items() if there]


def forget(client: Any, folder: str) -> None:
    """Let the scheduler forget a job."""
    if folder in remembered(client):  # its key stays: others may be told of meanwhile
        client.set_metadata([_FOLDERS, folder], False)


def holds_futures(value: Any) -> bool:
    """Whether a Dask collection stands on values that a client holds."""
    return bool(futures_of(value))


def _drive(key: str, function: Callable[..., None], *args: Any) -> None:
    worker = distributed.get_worker()
    distributed.secede()  # what it submits needs the thread
    ident = threading.get_ident()
    _driven[key] = ident
    ended = threading.Event()
    try:
        client = distributed.Client(
            worker.scheduler.address,
            security=worker.security,
            set_as_default=False,
            direct_to_workers=True,
        )
        drive = Drive(client, worker, key)
        watch = threading.Thread(target=_watch, args=(drive, ident, ended), daemon=True)
        with client:
            watch.start()
            _wait_for_turn(drive)
            take_turns(client)
            with driving(client):
                function(drive, *args)
            ended.set()
    except Abandoned:
        let_go([ident])
    finally:
        ended.set()
        del _driven[key]


def _watch(drive: Drive, ident: int, ended: threading.Event) -> None:
    """End a driver that nobody wants: its waiting with its client, Python code at its next
    step."""
    while not ended.wait(_LOOK):
        if not drive.wanted:
            with contextlib.suppress(Exception):
                drive.client.close(timeout=_LOOK)
            raise_in(ident)
            while not ended.wait(_AGAIN):
                raise_in(ident)
            return


def _wait_for_turn(drive: Drive) -> None:
    """Until fewer drivers came before than there are workers: a share is one at least.

    One may run before the scheduler is told that it outlives its client: nothing says then
    who came before.
    """
    while True:
        keys, workers = ask(drive.client, "jobs")
        if drive._key in keys[: max(1, workers)]:
            return
        time.sleep(_TURN)


def _drives(key: str) -> bool:
    return key in _driven


async def _aside(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    # Not on the thread on which the worker talks to others: a disk may be slow.
    return await asyncio.to_thread(function, *args)
