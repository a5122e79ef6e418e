"""One BLAS and one OpenMP thread inside parallel work.

Parallelism comes from mlopt's own threads or from Dask. A library that starts threads of
its own inside a task fights with them for the cores, and its sums depend on how many it
starts.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any

from threadpoolctl import OpenBLASController, ThreadpoolController

from mlopt.locking import in_forks, open_in_forks

_MODULES = tuple(suffix for suffix in EXTENSION_SUFFIXES if suffix.count(".") > 1)
"""How compiled modules of Python end, and libraries do not: `.cpython-311-....so`."""


class _Pools(ThreadpoolController):
    """The thread pools of the libraries here, in which no module of Python is looked for.

    Nine of ten loaded files are such modules; threadpoolctl would follow the path of each
    to its real name first.
    """

    def _make_controller_from_path(self, filepath: str) -> None:
        if not filepath.endswith(_MODULES):
            super()._make_controller_from_path(filepath)


@dataclass(frozen=True)
class _Libraries:
    """The thread pools here: of BLAS one for the process, of OpenMP one a thread."""

    blas: ThreadpoolController
    openmp: ThreadpoolController


class _Search:
    """Finds the libraries, again only after new imports.

    A search takes milliseconds; a library can only appear together with a module.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.modules = -1
        self.files: list[str] = []
        self.libraries: _Libraries | None = None

    def find(self) -> _Libraries:
        with self.lock:
            if self.libraries is None or self.modules != len(sys.modules):
                self.modules = len(sys.modules)
                found = _Pools()
                files = [library["filepath"] for library in found.info()]
                if self.libraries is None or files != self.files:
                    self.files = files
                    self.libraries = _Libraries(
                        found.select(user_api="blas"), found.select(user_api="openmp")
                    )
            return self.libraries


class _Blas:
    """The limit on BLAS: it holds for the whole process, so its users are counted."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users: dict[object, int] = {}
        """Each with the number of its thread."""
        self.limited: list[tuple[ThreadpoolController, Any]] = []

    @contextmanager
    def used(self, controller: ThreadpoolController) -> Iterator[None]:
        """Keep BLAS to one thread for as long."""
        user = object()
        with self.lock:
            self.users[user] = threading.get_ident()
            if not self.limited or not self._holds(controller):
                limiter = _in_charge(lambda: controller.limit(limits=1))
                self.limited.append((controller, limiter))
        try:
            yield
        finally:
            self.leave([user])

    def leave(self, users: Iterable[object]) -> None:
        """Lift the limit once nobody is left."""
        with self.lock:
            for user in users:
                self.users.pop(user, None)
            while not self.users and self.limited:
                _in_charge(self.limited.pop()[1].restore_original_limits)

    def _holds(self, controller: ThreadpoolController) -> bool:
        """Whether the last limit is one of ``controller``, and nobody has set another."""
        libraries = controller.lib_controllers
        same = self.limited[-1][0] is controller
        return same and all(library.num_threads == 1 for library in libraries)


def _in_charge(change: Callable[[], Any]) -> Any:
    # threadpoolctl lets one thread alone change OpenBLAS, until that thread gives it up;
    # here the first to come sets the limit and the last to go, maybe another, lifts it.
    OpenBLASController.clear_controlling_thread(force=True)
    try:
        return change()
    finally:
        OpenBLASController.clear_controlling_thread(force=True)


class _Thread(threading.local):
    """What holds for the calling thread: depth of tasks, and OpenMP kept to one thread."""

    depth = 0
    quiet: ThreadpoolController | None = None
    own = False


_thread = _Thread()
_blas = _Blas()
_search = _Search()
LOOKING = open_in_forks(_search.lock)
"""Held while libraries are looked for: who is disturbed then leaves a file open."""
open_in_forks(_blas.lock)
# A fork has the calling thread alone: limits of others would stay for good.
in_forks(lambda: let_go({*_blas.users.values()} - {threading.get_ident()}))


def inside_task() -> bool:
    """Whether the calling thread is at work for an executor."""
    return _thread.depth > 0


@contextmanager
def single_threaded() -> Iterator[None]:
    """Keep BLAS (in the process) and OpenMP (in this thread) to one thread."""
    if inside_task():
        yield
        return
    libraries = _search.find()
    _thread.depth += 1
    try:
        with _blas.used(libraries.blas), _openmp_quiet(libraries.openmp):
            yield
    finally:
        _thread.depth -= 1


@contextmanager
def alone(*, briefly: bool = False) -> Iterator[None]:
    """The calling thread does all the work, so that libraries may start what they like.

    As they do where nobody has parallel work: no library is looked for. But BLAS is kept to
    one thread for what asks it ``briefly``, as for small products or sums of vectors: its
    threads would wait for each other at each of many, for longer than all of these take.
    """
    _thread.depth += 1
    try:
        with _blas.used(_search.find().blas) if briefly else nullcontext():
            yield
    finally:
        _thread.depth -= 1


def let_go(threads: Iterable[int]) -> None:
    """Lift the limit that threads which never end would keep for the whole process."""
    ended = set(threads)
    _blas.leave([user for user, thread in list(_blas.users.items()) if thread in ended])


def keep_quiet() -> None:
    """Say that the calling thread runs nothing but tasks: OpenMP may stay at one thread."""
    _thread.own = True


@contextmanager
def _openmp_quiet(openmp: ThreadpoolController) -> Iterator[None]:
    if _thread.quiet is openmp:
        yield
        return
    earlier, limiter = _thread.quiet, openmp.limit(limits=1)
    _thread.quiet = openmp
    try:
        yield
    finally:
        if not _thread.own:
            _thread.quiet = earlier
            limiter.restore_original_limits()


@contextmanager
def between_passes() -> Iterator[None]:
    """Keep BLAS and OpenMP to one thread around a loop of parallel calls and short steps.

    Threads that BLAS wakes for a short step go on waiting for more while the next call
    needs the cores. Unlike within `single_threaded`, calls stay parallel.
    """
    libraries = _search.find()
    with _blas.used(libraries.blas), _openmp_quiet(libraries.openmp):
        yield
