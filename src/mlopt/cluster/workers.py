"""Work on the workers of a Dask cluster, so that losing one changes nothing.

Every value is the result of a task: what a lost worker held is made again from its task,
and that from the tasks before it. So nothing is scattered: a value that comes from the
driver travels inside the task that makes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import contextmanager
from typing import Any, NoReturn, cast

import dask
import distributed
from distributed.threadpoolexecutor import thread_state

from mlopt.cluster.at_scheduler import DRIVERS
from mlopt.cluster.executor import (
    Executor,
    Handle,
    contained,
    layer_at_work,
    tree_reduce,
)
from mlopt.cluster.lost_calls import PUT, Forgiven, revive
from mlopt.cluster.memory import Memory, Paused, measure, no_room
from mlopt.cluster.parcel import Parcel, pack, unpack, usable
from mlopt.cluster.pool import Pool
from mlopt.cluster.turns import priority
from mlopt.errors import ClusterError, TaskKilledError
from mlopt.limits import single_threaded
from mlopt.locking import open_in_forks
from mlopt.parameters import check_client
from mlopt.resources import identity

# More partials than these are combined eight at a time on the workers; the driver does the
# rest. Another round of tasks takes longer than to send sixteen.
_FEW, _GROUP = 16, 8
# Bytes, over all calls of a map, up to which a value goes along with each of them.
_SMALL = 1 << 20
# Bytes that neighbouring items may have to be given to one call.
_LARGEST = 1 << 30

# Seconds that calls have to end after nobody wants them, and that workers have to restart.
_LAST_WORDS, _RESTART = 0.5, 20.0
# Seconds for which a search that is out of time waits for them: a nanny starts a worker
# anew in 2 to 4.
_PATIENCE = 5.0

# What Dask says of calls that have not ended, and of those whose results were lost.
_OPEN = frozenset({"pending", "lost"})

_changing = open_in_forks(threading.RLock())
_heard: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()


class Cluster(Executor):
    """The workers behind a `distributed.Client`.

    Parameters
    ----------
    client : distributed.Client
    patience : float, default=45
        Seconds to wait for a worker to appear when there is none, and for one to take up
        work when none does.

    Raises
    ------
    ClusterError
        From any call that waits: the scheduler is gone, or all workers are, or none of them
        does any work (those that have some are paused, without memory left, or Dask lost
        track of a call as workers died).
    TaskKilledError
        From any call that waits: a call killed every worker that tried it.
    """

    def __init__(self, client: Any, *, patience: float = 45.0) -> None:
        check_client(client)
        if getattr(thread_state, "proceed", False):
            distributed.secede()  # a task: what it submits needs the thread that it holds
        self.client = client
        self.patience = patience
        self._forgiven = Forgiven()
        workers = self._workers().values()
        limits = [worker["memory_limit"] for worker in workers if worker["memory_limit"]]
        self.threads = max(1, sum(worker["nthreads"] for worker in workers))
        self.memory = min(limits, default=None)

    def map(
        self, function: Callable[..., Any], items: Iterable[Any], *shared: Any
    ) -> list[Any]:
        return self.results(self._start(function, list(items), *shared))

    def reduce(
        self,
        function: Callable[..., Any],
        combine: Callable[[Any, Any], Any],
        items: Sequence[Any],
        *shared: Any,
    ) -> Any:
        partials = self._start(function, items, *shared)
        if len(partials) > _FEW:
            # Eight neighbours are a whole subtree: the order is that of one big tree.
            groups = [partials[i : i + _GROUP] for i in range(0, len(partials), _GROUP)]
            partials = self._start(functools.partial(tree_reduce, combine), groups)
        values = self.results(partials)
        with single_threaded():
            return tree_reduce(combine, values)

    def fold(
        self,
        function: Callable[..., Any],
        items: Sequence[Any],
        states: Sequence[Any],
        *shared: Any,
    ) -> list[Any]:
        if not items:
            return list(states)
        calls = len(items) * len(states)
        code, *others = self._arguments((function, *shared), calls)
        handles = self._arguments(states, 1)
        for item in items:
            handles = [
                self._submit(_name(function), code, item, state, *others)
                for state in handles
            ]
        return self.results(handles)

    def group(self, count: int, nbytes: int) -> int:
        # A task costs milliseconds: two for each slot keep all busy, more are a waste. But
        # what a task holds must be easy to move, and to lose.
        most = min(_LARGEST, self.memory / 16) if self.memory else _LARGEST
        least = max(2 * self.threads, nbytes / most)
        size = 1
        while -(-count // (2 * size)) >= least:
            size *= 2
        return size

    def put(self, value: Any) -> Handle:
        return self._put(pack(value))

    def submit(self, function: Callable[..., Any], *args: Any) -> Handle:
        code, *values = self._arguments((function, *args), 1)
        return self._submit(_name(function), code, *values)

    def submit_to(self, worker: str, function: Callable[..., Any], *args: Any) -> Handle:
        """As `submit`, on the worker of this address alone."""
        code, *values = self._arguments((function, *args), 1)
        return self._submit(_name(function), code, *values, worker=worker)

    def load(self, delayed: Sequence[Any]) -> list[Handle]:
        with self._sending(len(delayed)):
            return list(self.client.compute(list(delayed)))

    def run_graph(
        self, graph: Any, keys: Sequence[Any], by_itself: Any = None
    ) -> list[Handle]:
        del by_itself  # Dask gives a task as many threads as any other
        with self._sending(len(graph)):
            return list(self.client.get(graph, list(keys), sync=False))

    def as_completed(
        self, handles: Iterable[Handle], timeout: float | None = None
    ) -> Iterator[Handle]:
        waiting = list(handles)
        end = math.inf if timeout is None else time.monotonic() + timeout
        while waiting:
            self._wait(waiting, "FIRST_COMPLETED", end)
            ended = {handle for handle in waiting if handle.status not in _OPEN}
            done = [handle for handle in waiting if handle in ended]
            waiting = [handle for handle in waiting if handle not in ended]
            yield from done

    def result(self, handle: Handle) -> Any:
        return self.results([handle])[0]

    def release(self, handle: Handle) -> None:
        handle.release()

    def abandon(self, handles: Iterable[Handle]) -> None:
        unwanted = list(handles)
        if not unwanted or self._closed:
            return
        # A cluster that is gone has nothing to give up on.
        with contextlib.suppress(OSError, TimeoutError, distributed.CancelledError):
            self.client.cancel(unwanted, force=True)
            restart = Pool(1, "mlopt-stuck", lambda: None).submit(
                restart_stuck, self.client
            )
            # What is submitted meanwhile would be lost with the workers; but nobody who is
            # out of time waits for long.
            futures.wait([restart], timeout=_PATIENCE)

    def memories(self, load: Callable[[], None]) -> Sequence[Memory]:
        found = self.client.run(measure, load, on_error="ignore")
        return [memory for memory in found.values() if memory is not None]

    def listen(self, topic: str, told: Callable[[Any], None]) -> None:
        with _changing:
            topics = _heard.setdefault(self.client, set())
            if topic not in topics:
                # For good: runs that follow each other, or overlap, listen to one topic.
                self.client.subscribe_topic(topic, lambda event: told(event[1]))
                topics.add(topic)

    def close(self) -> None:
        """Nothing to let go of: the client belongs to who made it."""

    def _start(
        self, function: Callable[..., Any], items: Sequence[Any], *shared: Any
    ) -> list[Handle]:
        if not items:
            return []
        name, count = _name(function), len(items)
        code, *others = self._arguments((function, *shared), count)
        with self._sending(count):
            return list(
                self.client.map(
                    _call,
                    [code] * count,
                    self._arguments(items, 1),
                    *([other] * count for other in others),
                    key=[_key(name) for _ in range(count)],
                    pure=False,
                )
            )

    def _submit(
        self, name: str, code: Any, *args: Any, worker: str | None = None
    ) -> Handle:
        with self._sending():
            return self.client.submit(
                _call, code, *args, key=_key(name), pure=False, workers=worker
            )

    def _put(self, parcel: Parcel) -> Handle:
        with self._sending():
            return self.client.submit(unpack, parcel, key=_key(PUT), pure=False)

    @contextmanager
    def _sending(self, calls: int = 1) -> Iterator[None]:
        if self._closed:
            raise self._lost("for good")
        _, step = layer_at_work()
        told: dict[str, Any] = {"mlopt": {"steps": [step]}} if step else {}
        told |= priority(self.client, calls)
        with _any_graph_size(), dask.annotate(**told) if told else contextlib.nullcontext():
            yield

    def _arguments(self, values: Sequence[Any], calls: int) -> list[Any]:
        """Parcels of the values, or handles where that is too much to send along."""
        return [
            value if _holds_handle(value) else self._sent(value, calls) for value in values
        ]

    def _sent(self, value: Any, calls: int) -> Any:
        parcel = pack(value)
        return parcel if parcel.nbytes * calls <= _SMALL else self._put(parcel)

    def results(self, handles: Sequence[Handle]) -> list[Any]:
        """As `result`, of several at once."""
        self._wait(handles, "ALL_COMPLETED")
        with _in_our_words():
            for handle in handles:
                if handle.status == "error":
                    handle.result()
            try:
                return self._gathered(handles)
            except (distributed.CancelledError, asyncio.CancelledError, OSError) as error:
                raise self._lost("while it sent results") from error

    def _gathered(self, handles: Sequence[Handle]) -> list[Any]:
        """What ended calls gave. What is lost meanwhile may kill who makes it again.

        And it may never be made again: Dask's own `gather` would wait for ever.
        """
        look = self.patience / 12
        sending, done = self.client.sync(_sent, self.client, list(handles), look)
        try:
            while not done:
                self._wait(handles, "ALL_COMPLETED")
                done = self.client.sync(_ended, sending, look)
            return list(sending.result())
        except distributed.KilledWorker:
            if not self._forgiven.again(handles):
                raise
            return self.results(handles)
        finally:
            if not done:
                self.client.loop.add_callback(_forget, sending, list(handles))

    def _wait(self, handles: Sequence[Handle], until: str, end: float = math.inf) -> None:
        """Wait, and look every few seconds whether somebody still works."""
        seen, paused, idle = time.monotonic(), Paused(), set[str]()
        revived = False
        while True:
            if self._closed:  # it has no loop any more that could tell
                raise self._lost("for good")
            look = max(0.0, min(self.patience / 12, end - time.monotonic()))
            try:
                with self.client.as_current():  # which need not be the active one
                    done = self.client.sync(_finished, list(handles), look, until)
                if done:
                    if self._forgiven.again(handles):
                        continue
                    return
                if time.monotonic() >= end:
                    raise TimeoutError
                work = self._work()
                idle = paused.idle(self._workers())
                if any(calls for address, calls in work.items() if address not in idle):
                    seen, revived = time.monotonic(), False
                elif not revived and time.monotonic() - seen > self.patience / 6:
                    revived = self._revive(handles)
            except distributed.CancelledError as error:
                raise self._lost("and dropped the work") from error
            if time.monotonic() - seen > self.patience:
                self._nobody_works(idle)

    def _revive(self, handles: Sequence[Handle]) -> bool:
        keys = [handle.key for handle in handles if handle.status in _OPEN]
        # of a scheduler that cannot import mlopt: what is lost is named in the end
        with contextlib.suppress(ImportError):
            self.client.run_on_scheduler(revive, keys)
        return True

    def _nobody_works(self, paused: set[str]) -> NoReturn:
        workers = self._workers()
        if paused & workers.keys():
            raise no_room({a: workers[a] for a in paused & workers.keys()}, self.patience)
        if workers:
            raise ClusterError(
                f"None of the {len(workers)} Dask workers has had any work for "
                f"{self.patience:.0f} s, yet calls are waiting: no worker may run them "
                "(what does `dask.annotate` say of workers?), or the scheduler lost "
                "track of a call when workers died. Look at the logs of the scheduler at "
                f"{self.client.scheduler.address}, and run again."
            )
        raise ClusterError(
            f"No Dask worker has been there for {self.patience:.0f} s: start some "
            f"for the scheduler at {self.client.scheduler.address}, and run again."
        )

    def _work(self) -> Mapping[str, Sequence[Any]]:
        """What the workers are at, by their addresses."""
        try:
            return cast("Mapping[str, Sequence[Any]]", self.client.processing())
        except (OSError, distributed.CancelledError) as error:
            raise self._lost("and does not answer") from error

    def _workers(self) -> Mapping[str, Mapping[str, Any]]:
        """What the scheduler knows of the workers, by their addresses."""
        found: Mapping[str, Mapping[str, Any]] = identity(self.client)["workers"]
        return found

    @property
    def _closed(self) -> bool:
        return self.client.status in ("closed", "closing")

    def _lost(self, how: str) -> ClusterError:
        return ClusterError(
            f"The Dask scheduler went away {how} (client status: {self.client.status}): "
            "start the cluster, then run again."
        )


def restart_stuck(client: Any) -> None:
    """Start workers anew that are still at calls which nobody wants any more.

    Their slots are lost otherwise: a thread of a worker cannot be ended. A worker without a
    nanny is left as it is, and so is one that does not answer (`worker-ttl` sees to that),
    or that drives a job: its call ends by itself.
    """
    time.sleep(_LAST_WORDS)
    found = client.run(_is_stuck, on_error="ignore")
    if stuck := [address for address, is_stuck in found.items() if is_stuck]:
        client.restart_workers(stuck, timeout=_RESTART, raise_for_error=False)


def _is_stuck(dask_worker: Any) -> bool:
    state = dask_worker.state
    tasks = state.executing | state.long_running
    drives = any(t.state != "cancelled" and str(t.key).startswith(DRIVERS) for t in tasks)
    return not drives and any(task.state == "cancelled" for task in tasks)


async def _finished(handles: list[Handle], timeout: float, until: str) -> bool:
    """Whether the handles were done in time.

    The error of a wait on the calling thread is part of a cycle that holds the handles, and
    with them what the workers keep, until Python looks for cycles.
    """
    try:
        await distributed.wait(handles, timeout=timeout, return_when=until)
    except TimeoutError:
        return False
    return True


async def _sent(
    client: Any, handles: list[Handle], timeout: float
) -> tuple[asyncio.Task[Any], bool]:
    """The values of ended calls, and whether they have come in time."""
    task = asyncio.ensure_future(client.gather(handles, asynchronous=True))
    return task, await _ended(task, timeout)


async def _ended(task: asyncio.Task[Any], timeout: float) -> bool:
    return bool((await asyncio.wait([task], timeout=timeout))[0])


def _forget(task: asyncio.Task[Any], handles: list[Handle]) -> None:
    """End a wait for what is lost. What is on its way others may have asked for with it."""
    if any(handle.status in _OPEN for handle in handles):
        task.cancel()


@contextmanager
def _in_our_words() -> Iterator[None]:
    """Errors of Dask's own in mlopt's words; those of calls as they are."""
    try:
        yield
    except distributed.KilledWorker as error:
        raise TaskKilledError(
            f"The call `{error.task}` ended {error.allowed_failures + 1} workers, the last "
            f"at {getattr(error.last_worker, 'address', error.last_worker)}: it crashes "
            "its process or needs more memory than a worker has. Look at that worker's log."
        ) from error
    except distributed.scheduler.NoValidWorkerError as error:
        raise ClusterError(
            "No Dask worker was left to run on: start workers, then run again."
        ) from error


def _call(function: Any, *args: Any) -> Any:
    code = _code(function) if isinstance(function, Parcel) else function
    values = [unpack(arg) if isinstance(arg, Parcel) else usable(arg) for arg in args]
    with single_threaded(), contained():
        return code(*values)


def _code(parcel: Parcel) -> Any:
    return unpack(parcel) if parcel.arrays else _unpickled(parcel.pickled)


@functools.lru_cache(maxsize=64)
def _unpickled(pickled: bytes) -> Any:
    return unpack(Parcel(pickled, ()))


def _holds_handle(value: Any) -> bool:
    if type(value) in (list, tuple):
        return any(_holds_handle(item) for item in value)
    if type(value) is dict:
        return any(_holds_handle(item) for item in value.values())
    return isinstance(value, distributed.Future)


def _name(function: Any) -> str:
    """A short name for the dashboard."""
    while isinstance(function, functools.partial):
        # Of a helper that is given what to call, that is the name people know.
        inner = function.args[:1]
        function = inner[0] if inner and callable(inner[0]) else function.func
    return str(getattr(function, "__name__", type(function).__name__)).strip("_<>")


def _key(name: str) -> str:
    layer, _ = layer_at_work()
    return "-".join([*filter(None, [layer]), name, uuid.uuid4().hex])


@contextmanager
def _any_graph_size() -> Iterator[None]:
    # Data travel inside tasks on purpose; Dask's warning would say to scatter them. The
    # lock is there because overlapping changes would not be undone in order.
    setting = {"distributed.admin.large-graph-warning-threshold": "1 PiB"}
    with _changing, dask.config.set(setting):
        yield
