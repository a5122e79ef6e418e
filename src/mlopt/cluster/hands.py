"""A few processes beside this one, each with an interpreter's lock of its own."""

from __future__ import annotations

import os
import queue
import resource
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlopt.cluster.apart import Apart
from mlopt.errors import MemberLostError
from mlopt.limits import inside_task
from mlopt.resources.probe import memory_limit

ENDS = 2.0
"""Seconds in which a process that still starts should be gone: many of the looks at
whether it is wanted (`apart.LOOK`), few enough for who waits at the end."""


def most_processes(cores: int) -> int:
    """How many there may be: of all cores, and of no more than half of the memory, with
    this one.
    """
    if inside_task() or cores < 2:  # others have work for the other cores
        return 0
    mine = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    mine *= 1 if sys.platform == "darwin" else 1024
    processes = min(cores, memory_limit() // 2 // max(1, mine) - 1)
    return processes if processes > 1 else 0


class Hands:
    """So many processes with an object each: a call goes to one that is free.

    Parameters
    ----------
    make : callable
        Makes the object in a process; what it is and takes must be picklable.
    *args : any
    processes : int
        How many `start` starts.
    calls : int, default=1
        Calls that each of them answers at once.
    lost : int, default=1
        Processes that a call may take with it before it fails.
    """

    def __init__(
        self,
        make: Callable[..., Any],
        *args: Any,
        processes: int,
        calls: int = 1,
        lost: int = 1,
    ) -> None:
        self._made, self.processes = (make, *args), processes
        self._calls, self._lost = calls, lost
        self._free: queue.SimpleQueue[Apart | None] = queue.SimpleQueue()
        self._all: set[Apart] = set()
        self._starting: list[threading.Thread] = []
        self._changing = threading.Lock()
        self._closed = False
        self._ready = 0
        self._began: object = None
        self.failed: Exception | None = None
        self.given_up: Callable[[], bool] = lambda: self._closed

    def start(self) -> None:
        """Start them; nobody waits."""
        self._began = _surroundings()
        for number in range(self.processes):
            name = f"mlopt-hand-{number}"
            coming = threading.Thread(target=self._come, name=name, daemon=True)
            self._starting.append(coming)
            coming.start()

    @property
    def there(self) -> bool:
        """Whether all of them are ready."""
        return self._ready == self.processes and all(hand.alive for hand in [*self._all])

    @property
    def up_to_date(self) -> bool:
        """Whether others that start now would find what these have found."""
        return self._began == _surroundings()

    def tell(self, method: str, *args: Any) -> None:
        """Call a method of every object; nobody else may be calling."""
        for hand in [*self._all]:
            hand.call(method, *args)

    def call(self, method: str, *args: Any) -> Any:
        """Have the object of one of them called; waits until one is free.

        Raises
        ------
        MemberLostError
            Processes end whatever they are given, or no others can be started.
        Exception
            What the method raised.
        """
        lost = 0
        while True:
            hand = self._free.get()
            if hand is None:  # and there will be none
                self._free.put(None)
                raise MemberLostError(f"No process is left: {self.failed or 'closed'}")
            try:
                return hand.call(method, *args, given_up=self.given_up)
            except MemberLostError:
                lost, left, hand = lost + 1, hand, None
                self._leave(left)
                if lost == self._lost or self.given_up():
                    raise
            finally:
                if hand is not None:
                    self._free.put(hand)

    def close(self) -> None:
        """End all of them, whatever they are at."""
        with self._changing:
            self._closed = True
            hands, self._all = list(self._all), set()
        for hand in hands:
            hand.close()
        for coming in self._starting:  # which import for seconds, and see it soon
            coming.join(ENDS)
        self._free.put(None)  # for who still waits

    def _come(self) -> None:
        try:
            hand = Apart(*self._made, calls=self._calls, given_up=lambda: self._closed)
        except Exception as error:  # what cannot be started or pickled: work goes on here
            self.failed = error
            self._free.put(None)
            return
        with self._changing:
            late = self._closed
            if not late:
                self._all.add(hand)
                self._ready += 1
        if late:
            hand.close()
            return
        for _ in range(self._calls):
            self._free.put(hand)

    def _leave(self, hand: Apart) -> None:
        """One has ended; another one comes in its place."""
        with self._changing:
            known = hand in self._all
            self._all.discard(hand)
            self._ready -= known
        if known:
            hand.close()
            if not self.given_up():
                self._come()


def _surroundings() -> object:
    """What a process takes over from this one when it starts."""
    try:
        folder = str(Path.cwd())
    except OSError:  # it is gone
        folder = ""
    return folder, [*sys.path], dict(os.environ)
