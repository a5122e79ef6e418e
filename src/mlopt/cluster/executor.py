"""Where work runs: one interface, in process or on a Dask cluster."""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from mlopt.cluster.memory import Memory
from mlopt.errors import TaskError
from mlopt.limits import single_threaded

Handle = Any
"""A value that an executor holds or is working on: opaque, to be given back to it."""


class Executor(ABC):
    """Runs functions in parallel, each on one thread with one BLAS thread.

    Functions are pure: they leave their arguments alone, so that a lost result can be made
    again. Results never depend on how many threads or workers there are.

    Attributes
    ----------
    threads : int
        How many calls run at the same time.
    memory : int or None
        Bytes that one call may hold at most; None when nobody set a limit.
    """

    threads: int
    memory: int | None = None

    @abstractmethod
    def map(
        self, function: Callable[..., Any], items: Iterable[Any], *shared: Any
    ) -> list[Any]:
        """Call ``function(item, *shared)`` for every item; results in the items' order.

        Items and shared arguments may be handles. Of several errors the first in the
        items' order is raised.
        """

    @abstractmethod
    def reduce(
        self,
        function: Callable[..., Any],
        combine: Callable[[Any, Any], Any],
        items: Sequence[Any],
        *shared: Any,
    ) -> Any:
        """Combine ``function(item, *shared)`` of all items in the order of a `Tree`."""

    @abstractmethod
    def fold(
        self,
        function: Callable[..., Any],
        items: Sequence[Any],
        states: Sequence[Any],
        *shared: Any,
    ) -> list[Any]:
        """Take each state through all items in order: ``state = function(item, state,
        *shared)``; several states go in parallel. Returns the last states."""

    def group(self, count: int, nbytes: int) -> int:
        """How many neighbouring items one call should see to: a power of two.

        One, unless a call costs more than the work it spreads.

        Parameters
        ----------
        count : int
            Items in all.
        nbytes : int
            Bytes in all.
        """
        del count, nbytes
        return 1

    @abstractmethod
    def put(self, value: Any) -> Handle:
        """Hold ``value`` where the work is; it travels once, however many calls use it.

        It must not be changed afterwards.
        """

    @abstractmethod
    def submit(self, function: Callable[..., Any], *args: Any) -> Handle:
        """Start ``function(*args)``.

        Handles stand for their values, in lists, tuples and dicts of the arguments too.
        """

    def beside(self, function: Callable[..., Any], *args: Any) -> Handle:
        """As `submit`, for what runs long in Python and changes no argument but a model.

        Among these ``args`` no handle is inside of a container.
        """
        return self.submit(function, *args)

    def apart(self) -> int:
        """From now on calls of `beside` run in processes of their own: so many.

        0 where there is no room for them, or calls are in other processes anyway.
        """
        return 0

    def apart_at_most(self) -> int:
        """How many processes `apart` would start."""
        return 0

    def derive(self, function: Callable[..., Any], *args: Any) -> Handle:
        """As `submit`, for what takes no longer than to hand it to a thread."""
        return self.submit(function, *args)

    @abstractmethod
    def load(self, delayed: Sequence[Any]) -> list[Handle]:
        """Start the given `dask.delayed` values, all in one graph."""

    @abstractmethod
    def run_graph(
        self, graph: Any, keys: Sequence[Any], by_itself: Any = None
    ) -> list[Handle]:
        """Start what the ``keys`` of a Dask graph need, each task on one thread.

        Values of the graph may be handles. On a cluster, what has a key that is held
        already is not computed again.

        Parameters
        ----------
        graph : dask.highlevelgraph.HighLevelGraph or dict
        keys : sequence of key
        by_itself : key, optional
            Of a task that all others come before or after, or take no time beside: in this
            process it may start threads.
        """

    @abstractmethod
    def as_completed(
        self, handles: Iterable[Handle], timeout: float | None = None
    ) -> Iterator[Handle]:
        """The handles again, each when its value is there or has failed.

        Raises
        ------
        TimeoutError
            After ``timeout`` seconds; None to wait for ever.
        """

    @abstractmethod
    def result(self, handle: Handle) -> Any:
        """Wait for the value; raises what the call raised."""

    def results(self, handles: Sequence[Handle]) -> list[Any]:
        """As `result`, of several at once."""
        return [self.result(handle) for handle in handles]

    @abstractmethod
    def release(self, handle: Handle) -> None:
        """Forget a handle; a call that has not begun is dropped."""

    @abstractmethod
    def abandon(self, handles: Iterable[Handle]) -> None:
        """Give up on calls that may never end: the ``handles`` and what they wait for.

        Nobody waits for them from then on, `close` neither. Threads cannot be killed: what
        hangs in compiled code goes on in the background. Workers that are still at it are
        started anew, by their nannies.
        """

    def memories(self, load: Callable[[], None]) -> Sequence[Memory]:
        """Of each worker with a limit what it has, after ``load``; none in this process.

        Parameters
        ----------
        load : callable
            Loads what calls need, which takes memory too.
        """
        del load
        return ()

    def listen(self, topic: str, told: Callable[[Any], None]) -> None:
        """Call ``told`` with what tasks in other processes log under a topic of Dask.

        What a task logged was told by the time that its result is there.
        """
        del topic, told  # there are no other processes

    @abstractmethod
    def close(self) -> None:
        """Drop what has not begun and let go of the threads; a client stays open."""


class Added:
    """A `combine`: the sum of two arrays, and in the place of one that is nobody else's."""

    def __call__(self, a: Any, b: Any) -> Any:
        return a + b

    def into(self, a: Any, b: Any) -> Any:
        """``a``, with ``b`` added to it."""
        a += b
        return a


added = Added()


class Tree:
    """Partial results on their way up one fixed binary tree.

    ::

        0   1   2   3   4
        └─┬─┘   └─┬─┘   │
          └───┬───┘     │
              └────┬────┘

    Which partials meet depends on their number alone, never on who is ready first; so a sum
    of floats is the same to the last bit whatever the threads. At most one partial waits at
    each place, so few are alive at a time.

    Parameters
    ----------
    combine : callable
        From two partials to one; `added` makes one where the other was.
    leaves : int
    own : bool, default=True
        Whether partials are made for this tree alone. Those that a cluster holds are not:
        when a worker is lost they are combined once more.
    """

    def __init__(
        self, combine: Callable[[Any, Any], Any], leaves: int, *, own: bool = True
    ) -> None:
        self._combine = combine.into if own and isinstance(combine, Added) else combine
        self._leaves = leaves
        self._waiting: dict[tuple[int, int], Any] = {}
        self._lock = threading.Lock()

    def add(self, leaf: int, value: Any) -> None:
        """Bring in one partial and combine whatever that makes ready; thread-safe."""
        level, place, width = 0, leaf, self._leaves
        while width > 1:
            if place ^ 1 < width:
                with self._lock:
                    if (level, place ^ 1) not in self._waiting:
                        self._waiting[level, place] = value
                        return
                    other = self._waiting.pop((level, place ^ 1))
                pair = (other, value) if place & 1 else (value, other)
                value = self._combine(*pair)
            level, place, width = level + 1, place >> 1, (width + 1) >> 1
        self._waiting[level, 0] = value

    @property
    def root(self) -> Any:
        """The combination of all partials, once all are in."""
        ((_, value),) = self._waiting.items()
        return value


def tree_reduce(combine: Callable[[Any, Any], Any], partials: Iterable[Any]) -> Any:
    """Combine ``partials`` in the order of a `Tree`, one after the other."""
    values = list(partials)
    tree = Tree(combine, len(values), own=False)
    for leaf, value in enumerate(values):
        tree.add(leaf, value)
    return tree.root


_layer: ContextVar[tuple[str, str]] = ContextVar("layer", default=("", ""))


@contextmanager
def calls_of(layer: str, step: str) -> Iterator[None]:
    """Calls that are started in the block show on Dask's pages as work of this step."""
    before = _layer.set((layer, step))
    try:
        yield
    finally:
        _layer.reset(before)


def layer_at_work() -> tuple[str, str]:
    """The name and the step that `calls_of` gives here; empty where nothing does."""
    return _layer.get()


def tell(topic: str, message: Any) -> None:
    """From a task on a worker: log it for those who `Executor.listen`; else, nothing."""
    if "distributed" in sys.modules:
        from distributed import get_worker

        with suppress(ValueError):  # no worker's thread
            get_worker().log_event(topic, message)


@contextmanager
def contained() -> Iterator[None]:
    """Turn what would end the process into an error of the one call that raised it.

    Raises
    ------
    TaskError
        Where the block raises `SystemExit` or `KeyboardInterrupt`. In the main thread the
        latter comes from a person, and both go on as they are.
    """
    try:
        yield
    except (SystemExit, KeyboardInterrupt) as error:
        if threading.current_thread() is threading.main_thread():
            raise
        raise TaskError(f"the call raised {error!r}, which must not end a run") from error


def called(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """``function`` of the values of ``args`` here and now, on one thread of BLAS."""
    values = resolve(args)
    with single_threaded(), contained():
        return function(*values)


def resolve(value: Any) -> Any:
    """Handles replaced by their values, in lists, tuples and dicts too."""
    if isinstance(value, futures.Future):
        return value.result()
    if type(value) in (list, tuple):
        return type(value)(resolve(item) for item in value)
    if type(value) is dict:
        return {key: resolve(item) for key, item in value.items()}
    return value
