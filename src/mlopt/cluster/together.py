"""Algorithms on threads of their own, whose calls over the same items go together.

::

    split 0   reduce(f0, items 0) ──┐
    split 1   reduce(f1, items 1) ──┼── one reduce of (f0, f1, f2): one task an item
    split 2   reduce(f2, items 2) ──┘

At every `reduce` each waits for the others; one that has ended is waited for no more. What
they get is what calls of their own give, to the last bit. What `once` makes within such a
task is made once for all of them. A function with ``steps``, a generator of the same call,
is run step by step beside the others, and what `once` made is kept for a step.
"""

from __future__ import annotations

import threading
from collections.abc import (
    Callable,
    Generator,
    Hashable,
    Mapping,
    Sequence,
)
from concurrent import futures
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from mlopt.cluster.executor import Executor
from mlopt.cluster.pool import Pool
from mlopt.errors import ClusterError

_made: ContextVar[dict[Hashable, Any] | None] = ContextVar("made", default=None)


def once(key: Hashable, make: Callable[[], Any]) -> Any:
    """``make()``, or what it gave under this key to another algorithm in the same task."""
    if (made := _made.get()) is None:
        return make()
    if key not in made:
        made[key] = make()
    return made[key]


class Together:
    """Executors for algorithms that go over the same items.

    Parameters
    ----------
    executor : Executor
        Not of this process: its threads would wait for each other.
    count : int

    Attributes
    ----------
    members : tuple of Executor
        One an algorithm. Outside of `run` they do what ``executor`` does.
    """

    def __init__(self, executor: Executor, count: int) -> None:
        self.executor = executor
        # Each is an `Executor`, which it does not inherit from.
        self.members: tuple[Any, ...] = tuple(Member(self, executor) for _ in range(count))
        self._changing = threading.Condition()
        self._running: set[Member] = set()
        self._calls: dict[Member, _Call] = {}
        self._over = threading.Event()

    def run(self, jobs: Mapping[Any, Callable[[], Any]]) -> list[Any]:
        """What the jobs return, each on a thread of its own, with a member of its own.

        Of several errors the first in the jobs' order is raised.
        """
        self._running, self._over = set(jobs), threading.Event()
        pool = Pool(len(jobs), "mlopt-together", lambda: None)
        done = [pool.submit(self._work, member, job) for member, job in jobs.items()]
        try:
            futures.wait(done)
        except BaseException:  # a person ends it
            self._over.set()
            pool.abandon()
            raise
        pool.shutdown(wait=False)
        return [one.result() for one in done]

    def meet(self, member: Member, call: _Call) -> Any:
        """Wait until all who run have a call; then theirs are carried out as one."""
        if member not in self._running:
            return call.alone(self.executor)
        with self._changing:
            self._calls[member] = call
            self._proceed()
            while not call.done:
                self._changing.wait(1.0)
                if self._over.is_set():
                    raise futures.CancelledError("the others were ended")
        return call.result()

    def _work(self, member: Member, job: Callable[[], Any]) -> Any:
        try:
            return job()
        finally:
            with self._changing:
                self._running.discard(member)
                self._proceed()

    def _proceed(self) -> None:
        # Whoever comes last works for all, and holds the lock: the others wait anyway.
        if self._calls and self._calls.keys() == self._running:
            calls = [self._calls[m] for m in self.members if m in self._calls]
            self._calls = {}
            _carry_out(calls, self.executor)
            self._changing.notify_all()


class Member:
    """An executor for one of several algorithms: its `reduce` waits for theirs.

    In all else it is the executor that it is given.
    """

    def __init__(self, together: Together, executor: Executor) -> None:
        self.together, self._executor = together, executor

    def reduce(
        self,
        function: Callable[..., Any],
        combine: Callable[[Any, Any], Any],
        items: Sequence[Any],
        *shared: Any,
    ) -> Any:
        """As of `Executor`."""
        return self.together.meet(self, _Call(function, combine, items, shared))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)


Executor.register(Member)


@dataclass(eq=False)
class _Call:
    """One `reduce`, and what became of it."""

    function: Callable[..., Any]
    combine: Callable[[Any, Any], Any]
    items: Sequence[Any]
    shared: tuple[Any, ...]
    done: bool = False
    value: Any = None
    error: Exception | None = field(default=None)

    def alone(self, executor: Executor) -> Any:
        return executor.reduce(self.function, self.combine, self.items, *self.shared)

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


def _carry_out(calls: Sequence[_Call], executor: Executor) -> None:
    if len({len(call.items) for call in calls}) == 1 < len(calls):
        every = _Every(
            tuple(call.function for call in calls), tuple(len(c.shared) for c in calls)
        )
        combine = _Combine(tuple(call.combine for call in calls))
        items = list(zip(*(call.items for call in calls), strict=True))
        shared = [value for call in calls for value in call.shared]
        try:
            values = executor.reduce(every, combine, items, *shared)
        except ClusterError as error:
            for call in calls:
                call.error, call.done = error, True
            return
        except Exception:  # whose it is, calls of their own tell
            pass
        else:
            for call, value in zip(calls, values, strict=True):
                call.value, call.done = value, True
            return
    for call in calls:
        try:
            call.value = call.alone(executor)
        except Exception as error:
            call.error = error
        call.done = True


@dataclass(frozen=True)
class _Every:
    """A function for each item of a tuple, with arguments of its own."""

    functions: tuple[Callable[..., Any], ...]
    shared: tuple[int, ...]

    def __call__(self, items: Sequence[Any], *shared: Any) -> tuple[Any, ...]:
        runs, rest = {}, list(shared)
        jobs = zip(self.functions, items, self.shared, strict=True)
        for number, (function, item, count) in enumerate(jobs):
            runs[number] = _steps(function, item, *rest[:count])
            del rest[:count]
        found: dict[int, Any] = {}
        while runs:
            before = _made.set({})
            try:
                for number, run in list(runs.items()):
                    try:
                        next(run)
                    except StopIteration as end:
                        found[number] = end.value
                        del runs[number]
            finally:
                _made.reset(before)
        return tuple(found[number] for number in range(len(found)))


def _steps(function: Callable[..., Any], *args: Any) -> Generator[None, None, Any]:
    if hasattr(function, "steps"):
        return (yield from function.steps(*args))
    return function(*args)


@dataclass(frozen=True)
class _Combine:
    functions: tuple[Callable[[Any, Any], Any], ...]

    def __call__(self, left: Sequence[Any], right: Sequence[Any]) -> tuple[Any, ...]:
        triples = zip(self.functions, left, right, strict=True)
        return tuple(function(one, other) for function, one, other in triples)
