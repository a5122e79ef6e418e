"""One BLAS and one OpenMP thread inside parallel work.

Parallelism comes from mlopt's own threads or from Dask. A library that starts threads of
its own inside a task fights with them for the cores, and its sums depend on how many it
starts.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController


class _Thread(threading.local):
    depth = 0


class _Blas:
    """The limit on BLAS: it holds for the whole process, so its users are counted."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.limited: list[tuple[ThreadpoolController, Any]] = []

    def enter(self, controller: ThreadpoolController) -> None:
        with self.lock:
            self.users += 1
            if not self.limited or self.limited[-1][0] is not controller:
                limiter = controller.limit(limits=1, user_api="blas")
                self.limited.append((controller, limiter))

    def leave(self) -> None:
        with self.lock:
            self.users -= 1
            while self.users == 0 and self.limited:
                self.limited.pop()[1].restore_original_limits()


class _Libraries:
    """The thread pools of this process, looked up again only after new imports.

    A lookup takes milliseconds; a library can only appear together with a module.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.modules = -1
        self.controller: ThreadpoolController | None = None

    def find(self) -> ThreadpoolController:
        with self.lock:
            if self.controller is None or self.modules != len(sys.modules):
                self.modules = len(sys.modules)
                found = ThreadpoolController()
                if self.controller is None or found.info() != self.controller.info():
                    self.controller = found
            return self.controller


_thread = _Thread()
_blas = _Blas()
_libraries = _Libraries()


def inside_task() -> bool:
    """Whether the calling thread is at work for an executor."""
    return _thread.depth > 0


@contextmanager
def single_threaded() -> Iterator[None]:
    """Keep BLAS (in the process) and OpenMP (in this thread) to one thread."""
    if inside_task():
        yield
        return
    controller = _libraries.find()
    _blas.enter(controller)
    # OpenMP counts its threads per calling thread, unlike BLAS.
    openmp = controller.limit(limits=1, user_api="openmp")
    _thread.depth += 1
    try:
        yield
    finally:
        _thread.depth -= 1
        openmp.restore_original_limits()
        _blas.leave()
