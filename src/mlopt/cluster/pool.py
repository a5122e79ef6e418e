"""Threads that can be left behind when the work they are at never ends."""

from __future__ import annotations

import ctypes
import queue
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent import futures
from typing import Any

from mlopt.cluster.context import as_here
from mlopt.limits import LOOKING, let_go


class Abandoned(BaseException):
    """Raised in a thread that nobody waits for any more, so that Python code ends."""


class Pool(futures.Executor):
    """An executor of `concurrent.futures` that never keeps a process from ending.

    Those of the standard library are waited for at exit, so a call that hangs would hang
    the process. Calls have the context variables of who submits them, NumPy's `errstate`
    among them, and scikit-learn's configuration, as if they were called there; what they
    set they set for themselves.

    Parameters
    ----------
    size : int
        Threads at most; they start as they are needed.
    name : str
        What their names begin with.
    begin : callable
        Called first in each of them.
    """

    def __init__(self, size: int, name: str, begin: Callable[[], None]) -> None:
        self._max_workers = size  # the name that Dask asks for
        self._name, self._begin = name, begin
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._changing = threading.Lock()
        self._closed = False
        # A pool that is dropped without a word leaves no threads.
        weakref.finalize(self, self._jobs.put, None).atexit = False

    def submit(
        self, function: Callable[..., Any], /, *args: Any, **named: Any
    ) -> futures.Future[Any]:
        with self._changing:
            if self._closed:
                raise RuntimeError("the pool of threads is closed")
            job = _Job(futures.Future(), function, args, named)
            future = job.future
            self._jobs.put(job)
            if not self._idle.acquire(blocking=False):
                self._grow()
            return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._changing:
            self._closed = True
        if cancel_futures:
            # Without the lock: what is told of it may want to submit something.
            self._cancel()
        self._jobs.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def abandon(self) -> None:
        """Drop what has not begun, and wait for nothing.

        Calls that run are told to end: Python code does at its next step, compiled code
        when it comes back from where it is. In a profiled process of Python 3.11 they are
        left to themselves. None of them keeps BLAS to one thread any more.
        """
        self.shutdown(wait=False, cancel_futures=True)
        alive = [t.ident for t in self._threads if t.ident is not None and t.is_alive()]
        if not _watched():
            for thread in alive:
                raise_in(thread)
        let_go(alive)

    def _grow(self) -> None:
        if len(self._threads) >= self._max_workers:
            return
        thread = threading.Thread(
            target=_work,
            args=(self._jobs, self._idle, self._begin),
            name=f"{self._name}_{len(self._threads)}",
            daemon=True,
        )
        try:
            thread.start()
        except RuntimeError as error:
            if self._threads:  # those that run do the work
                return
            raise MemoryError(f"no thread can be started ({error})") from error
        self._threads.append(thread)

    def _cancel(self) -> None:
        while True:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return
            if job is not None:
                job.future.cancel()


class _Job:
    """A call, and the future that gets its result."""

    def __init__(
        self,
        future: futures.Future[Any],
        function: Callable[..., Any],
        args: tuple[Any, ...],
        named: dict[str, Any],
    ) -> None:
        self.future = future
        self._call, self._as_there = (function, args, named), as_here()

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        function, args, named = self._call
        try:
            value = self._as_there(function, *args, **named)
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(value)


def _work(
    jobs: queue.SimpleQueue[_Job | None],
    idle: threading.Semaphore,
    begin: Callable[[], None],
) -> None:
    try:
        begin()
        while (job := jobs.get()) is not None:
            job.run()
            del job  # a result lives as long as somebody wants it
            idle.release()
        jobs.put(None)  # for the others
    except Abandoned:
        pass  # between two calls


def _watched() -> bool:
    """Whether a profiler, a debugger or a measurement of coverage is at work.

    Python 3.11 then never goes on from the next call, until the other thread has taken what
    is raised in it.
    """
    tools = sys.gettrace, sys.getprofile, threading.gettrace, threading.getprofile
    return sys.version_info < (3, 12) and any(tool() for tool in tools)


def raise_in(ident: int) -> None:
    """Raise `Abandoned` in a thread, at its next step of Python."""
    with LOOKING:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(ident), ctypes.py_object(Abandoned)
        )
