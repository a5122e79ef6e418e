"""A task that runs on one member of a mesh, and there alone, to its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent import futures
from typing import Any

LOST = 3
"""Members, workers or processes that may be lost with the same piece of work before that is
taken for what ends them: the number of deaths that Dask allows a task by default."""


class Resident:
    """A resident task.

    Attributes
    ----------
    member : str
        Where it runs.
    """

    def __init__(self, member: str, stop: Callable[[], None]) -> None:
        self.member = member
        self._stop = stop
        self._done: futures.Future[Any] = futures.Future()
        self._settling = threading.Lock()

    @property
    def alive(self) -> bool:
        """Whether it has neither ended nor been lost."""
        return not self._done.done()

    def result(self, timeout: float | None = None) -> Any:
        """Wait for what the function returns; raises what it raises.

        Raises
        ------
        MemberLostError
            Its member is gone.
        TimeoutError
            After ``timeout`` seconds; None to wait for ever.
        """
        return self._done.result(timeout)

    def stop(self) -> None:
        """Set its ``site.stop``; it ends when it looks."""
        if self.alive:
            self._stop()

    def settle(self, call: Callable[[], Any]) -> None:
        """Let what ``call`` returns or raises be the result, unless there is one."""
        try:
            value, error = call(), None
        except BaseException as raised:
            value, error = None, raised
        with self._settling:
            if self._done.done():
                return
            if error is None:
                self._done.set_result(value)
            else:
                self._done.set_exception(error)
