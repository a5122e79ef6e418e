"""Work in this process, on threads that release the GIL inside kernels and BLAS.

That is where work runs unless there is a client of Dask: see `executor`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from numbers import Integral
from typing import Any

from mlopt.cluster.context import as_here
from mlopt.cluster.executor import Executor, Handle, Tree, called, resolve
from mlopt.cluster.graphs import after, is_chain, reads_of, settled
from mlopt.cluster.hands import most_processes
from mlopt.cluster.near import are_near
from mlopt.cluster.pool import Pool
from mlopt.cluster.processes import Processes
from mlopt.cluster.remote import bringing, cluster_of
from mlopt.errors import InputError
from mlopt.limits import (
    alone,
    between_passes,
    inside_task,
    keep_quiet,
    single_threaded,
)

_driver: ContextVar[Any] = ContextVar("driver", default=None)


class Threads(Executor):
    """A pool of threads in this process.

    Work that is started from inside one of its calls runs at once, in the calling thread:
    the slots are taken already, and waiting for one could wait for ever.

    Parameters
    ----------
    n_jobs : int, optional
        Threads: None or -1 for all cores that this process may use, -2 for all but one.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.threads = count_threads(n_jobs)
        self._beside: Processes | None = None

    @cached_property
    def _pool(self) -> Pool:  # few fits ask for one, and each fit has its executor
        return Pool(self.threads, "mlopt", keep_quiet)

    def map(
        self, function: Callable[..., Any], items: Iterable[Any], *shared: Any
    ) -> list[Any]:
        values, others = resolve(list(items)), resolve(shared)
        results: list[Any] = [None] * len(values)

        def work(number: int) -> None:
            results[number] = function(values[number], *others)

        self._run(work, len(values))
        return results

    def reduce(
        self,
        function: Callable[..., Any],
        combine: Callable[[Any, Any], Any],
        items: Sequence[Any],
        *shared: Any,
    ) -> Any:
        values, others = resolve(list(items)), resolve(shared)
        tree = Tree(combine, len(values))

        def work(number: int) -> None:
            tree.add(number, function(values[number], *others))

        self._run(work, len(values))
        return tree.root

    def fold(
        self,
        function: Callable[..., Any],
        items: Sequence[Any],
        states: Sequence[Any],
        *shared: Any,
    ) -> list[Any]:
        values, others = resolve(list(items)), resolve(shared)

        def through(state: Any) -> Any:
            for item in values:
                state = function(item, state, *others)
            return state

        return self.map(through, states)

    def put(self, value: Any) -> Handle:
        handle: futures.Future[Any] = futures.Future()
        handle.set_result(value)
        return handle

    def submit(self, function: Callable[..., Any], *args: Any) -> Handle:
        if inside_task():
            return self._at_once(function, *args)
        return self._queued(_awaited(args), called, function, args)

    def beside(self, function: Callable[..., Any], *args: Any) -> Handle:
        if self._beside is None or inside_task():
            return self.submit(function, *args)
        return self._queued(_awaited(args), self._beside.call, function, args)

    def apart_at_most(self) -> int:
        fits = most_processes(self.threads) == self.threads
        return self.threads if fits else 0

    def apart(self) -> int:
        count = self.apart_at_most()
        if self._beside is None and count:
            self._beside = Processes(count)
        return count

    def _queued(self, awaited: set[futures.Future[Any]], *job: Any) -> Handle:
        if not awaited:
            return self._pool.submit(*job)
        # A call that waits for another must not hold a thread meanwhile.
        return _Later(self._pool.submit, job, awaited)

    def derive(self, function: Callable[..., Any], *args: Any) -> Handle:
        if awaited := _awaited(args):
            return _Later(_here, (called, function, args), awaited)
        return self._at_once(function, *args)

    def _at_once(self, function: Callable[..., Any], *args: Any) -> Handle:
        handle: futures.Future[Any] = futures.Future()
        try:
            handle.set_result(called(function, args))
        except Exception as error:
            handle.set_exception(error)
        return handle

    def load(self, delayed: Sequence[Any]) -> list[Handle]:
        import dask

        if (there := cluster_of(delayed)) is not None:
            values = there.results(there.load(delayed))
        else:
            values = dask.compute(*delayed, scheduler="threads", num_workers=self.threads)
        return [self.put(value) for value in values]

    def run_graph(
        self, graph: Any, keys: Sequence[Any], by_itself: Any = None
    ) -> list[Handle]:
        import dask
        from dask.optimization import cull

        graph = bringing(graph)
        tasks, _ = cull({key: settled(key, task) for key, task in graph.items()}, keys)
        if inside_task():
            values = dask.get(tasks, list(keys))
        elif by_itself in tasks and self.threads > 1:
            values = self._around(tasks, list(keys), by_itself)
        else:
            values = self._get(tasks, list(keys))
        return [self.put(value) for value in values]

    def _get(self, tasks: Mapping[Any, Any], keys: list[Any]) -> list[Any]:
        import dask
        from dask.threaded import get

        with between_passes():
            # Whoever waits may as well work where no two tasks could run at a time.
            if self.threads == 1 or is_chain(tasks):
                return list(dask.get(tasks, keys))
            return list(get(tasks, keys, pool=self._pool))

    def _around(self, tasks: Mapping[Any, Any], keys: list[Any], lone: Any) -> list[Any]:
        """As `_get`, the ``lone`` task in the calling thread, with nothing beside it."""
        from dask.task_spec import DataNode

        reads = reads_of(tasks)
        behind = after(reads, lone)
        before = {key: task for key, task in tasks.items() if key not in behind}
        rest = {key: tasks[key] for key in behind - {lone}}
        later = before.keys() & {*keys, *(one for key in rest for one in reads[key])}
        wanted = list(reads[lone] | later)
        found = dict(zip(wanted, self._get(before, wanted), strict=True))
        with alone():
            value = tasks[lone]({key: found[key] for key in reads[lone]})
        found = {key: found[key] for key in later} | {lone: value}
        have = {key: DataNode(key, one) for key, one in found.items()}
        return self._get(have | rest, keys)

    def as_completed(
        self, handles: Iterable[Handle], timeout: float | None = None
    ) -> Iterator[Handle]:
        return futures.as_completed(list(handles), timeout)

    def result(self, handle: Handle) -> Any:
        return handle.result()

    def release(self, handle: Handle) -> None:
        handle.cancel()

    def abandon(self, handles: Iterable[Handle]) -> None:
        for handle in handles:
            handle.cancel()
        if pool := vars(self).pop("_pool", None):
            pool.abandon()
        if self._beside is not None:
            self._beside.close()
            self._beside = Processes(self.threads)

    def close(self) -> None:
        if self._beside is not None:
            self._beside.close()
        if pool := vars(self).get("_pool"):
            pool.shutdown(cancel_futures=True)

    def _run(self, work: Callable[[int], None], count: int) -> None:
        """Call ``work`` with 0 ... count-1; the calling thread does its share."""
        crew = _Crew(work, count)
        helpers: list[futures.Future[None]] = []
        if not inside_task():
            size = min(self.threads, count) - 1
            helpers = [self._pool.submit(crew.work) for _ in range(size)]
        try:
            crew.work()
        finally:
            crew.stop.set()
            for helper in helpers:
                helper.cancel()
            if helpers:
                futures.wait(helpers)
        if crew.errors:
            raise crew.errors[min(crew.errors)]


class _Crew:
    """Threads that take the next number until none is left or one of them fails."""

    def __init__(self, call: Callable[[int], None], count: int) -> None:
        self.call = call
        self.numbers = iter(range(count))
        self.stop = threading.Event()
        self.errors: dict[int, BaseException] = {}

    def work(self) -> None:
        with single_threaded():
            # No two threads get the same number: the iterator advances under the GIL.
            for number in self.numbers:
                try:
                    self.call(number)
                except BaseException as error:
                    self.errors[number] = error
                    self.stop.set()
                if self.stop.is_set():
                    return


class _Later(futures.Future[Any]):
    """A call that joins the queue when the last handle among its arguments is there.

    Its variables of the context are those of who asked for it, not of who came last.
    """

    def __init__(
        self,
        queue: Callable[[Callable[[], None]], Any],
        job: tuple[Any, ...],
        awaited: set[futures.Future[Any]],
    ) -> None:
        super().__init__()
        self._queue, self._job = queue, (as_here(), *job)
        self._left, self._counting = len(awaited), threading.Lock()
        for handle in awaited:
            handle.add_done_callback(self._arrived)

    def _arrived(self, handle: futures.Future[Any]) -> None:
        if handle.cancelled():
            # The pool that cancels holds its lock: to queue anything now would wait for it.
            self.cancel()
            return
        with self._counting:
            self._left -= 1
            if self._left:
                return
        try:
            self._queue(self._run)
        except RuntimeError:  # the pool was closed meanwhile
            self.cancel()

    def _run(self) -> None:
        (call, *args), self._job = self._job, (_nothing,)  # a result outlives its causes
        if not self.set_running_or_notify_cancel():
            return
        try:
            self.set_result(call(*args))
        except BaseException as error:
            self.set_exception(error)


def _here(run: Callable[[], None]) -> None:
    """In the thread whose call is the last to be waited for."""
    run()


def _nothing() -> None:
    """What is left of a call that has run."""


def _awaited(args: Sequence[Any]) -> set[futures.Future[Any]]:
    return {handle for handle in _handles(args) if not handle.done()}


def _handles(value: Any) -> Iterator[futures.Future[Any]]:
    if isinstance(value, futures.Future):
        yield value
    elif type(value) in (list, tuple):
        for item in value:
            yield from _handles(item)
    elif type(value) is dict:
        for item in value.values():
            yield from _handles(item)


def count_threads(n_jobs: int | None) -> int:
    """How many threads ``n_jobs`` means, as in joblib; None means all cores."""
    if not isinstance(n_jobs, Integral | None):
        raise InputError(f"`n_jobs` must be a whole number or None, got {n_jobs!r:.60}.")
    if n_jobs == 0:
        raise InputError("`n_jobs` must not be 0: give a number of threads, or -1 for all.")
    if n_jobs is not None and n_jobs > 0:
        return int(n_jobs)
    from joblib import cpu_count

    return max(1, int(cpu_count()) + 1 + (n_jobs or -1))


def executor(
    client: Any = None, n_jobs: int | None = None, *, rows: Iterable[Any] = ()
) -> Executor:
    """Where to run: on the given client, else on an active one, else in this process.

    For who drives a detached job, the active client is that of the job (`driving`), and its
    process has one thread to spare: the other cores are those of tasks.

    Parameters
    ----------
    client : distributed.Client, optional
    n_jobs : int, optional
        Threads when there is no client; None or -1 for all cores. Inside a call of an
        executor or a Dask task it is always one: the other cores have their work already.
    rows : iterable, optional
        What is read: where it is in memory, and little, an active client is left alone.
    """
    if client is not None:
        from mlopt.cluster.workers import Cluster

        return Cluster(client)
    if inside_task():
        return Threads(1)
    if (own := _driver.get()) is not None:
        return Threads(1) if are_near(rows) else executor(own)
    # Whoever has an active client has imported distributed; nobody else should pay for it.
    return _active(n_jobs, rows) if "distributed" in sys.modules else Threads(n_jobs)


def threads_here(n_jobs: int | None = None) -> Threads:
    """Threads for rows that came to this process: one within a task, or beside tasks."""
    busy = inside_task() or _driver.get() is not None or _on_worker()
    return Threads(1 if busy else n_jobs)


def threads_beside(
    where: Executor, client: Any, n_jobs: int | None, rows: Iterable[Any]
) -> Threads | None:
    """Threads of this process beside an active client, ``where``, for rows that are few.

    None where the user gave the ``client``.
    """
    if client is not None or isinstance(where, Threads) or not are_near(rows):
        return None
    return threads_here(n_jobs)


@contextmanager
def driving(client: Any) -> Iterator[None]:
    """In the block, and on this thread, ``client`` is the active one.

    For a task of Dask that has left its worker's threads, to submit work of its own.
    """
    before = _driver.set(client)
    try:
        yield
    finally:
        _driver.reset(before)


def computed(delayed: Iterable[Any]) -> Sequence[Any]:
    """What delayed values of Dask are, computed where Dask computes in this process.

    For who drives a detached job that is on the job's client: in a worker Dask's own choice
    is what any other task there has set last.
    """
    import dask

    delayed = [*delayed]
    where = cluster_of(delayed) or _holder()
    found: Sequence[Any] = (
        where.results(where.load(delayed)) if where else dask.compute(*delayed)
    )
    return found


def persisted(collections: Sequence[Any], client: Any = None) -> Sequence[Any]:
    """Dask collections of one kind, held where Dask computes, or on the given client."""
    import dask

    if client is None and (where := cluster_of(collections) or _holder()):
        client = where.client
    found: Sequence[Any] = (
        client.persist([*collections]) if client else dask.persist(*collections)
    )
    return found


def _holder() -> Any:
    """The cluster on which Dask computes for this thread, if there is one."""
    from dask.base import get_scheduler

    client = _driver.get() or getattr(get_scheduler(), "__self__", None)
    if not hasattr(client, "scheduler_info"):  # which would wait for workers for ever
        return None
    from mlopt.cluster.workers import Cluster

    return Cluster(client)


def _on_worker() -> bool:
    """Whether the calling thread is that of a task of Dask."""
    if "distributed" not in sys.modules:
        return False
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return False
    return True


def _active(n_jobs: int | None, rows: Iterable[Any]) -> Executor:
    from distributed import default_client

    if _on_worker():
        return Threads(1)
    try:
        client = default_client()
    except ValueError:
        return Threads(n_jobs)
    # Who awaits its answers does so elsewhere: what is called here waits for none.
    near = client.asynchronous or are_near(rows)
    return Threads(n_jobs) if near else executor(client)
