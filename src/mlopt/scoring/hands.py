"""Processes of this machine that predict whole files, each with a lock of its own.

To read and to predict small files is Python's work for the most part: threads wait for its
lock. A process takes seconds to start; whether it pays, the first files tell.
"""

from __future__ import annotations

import queue
import resource
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

from mlopt.cluster import inside_task, single_threaded
from mlopt.cluster.apart import Apart
from mlopt.errors import InputWarning, MemberLostError
from mlopt.plan import Alternative, Choice, format_bytes
from mlopt.prices import count, price
from mlopt.resources.probe import memory_limit

LOST = 3
"""Processes that a file may take with it before it fails: as many as on workers."""
CALLS = 2
"""Files that each works on at once: while one is written out, the other is read."""
HERE = "threads of this process"


class Pace:
    """What files took so far, and what is left.

    The first one loads and compiles: it does not count.

    Parameters
    ----------
    left : int
        Bytes of all files.
    """

    def __init__(self, left: int) -> None:
        self.left, self.done, self.files = left, 0, 0
        self._began = (0.0, 0.0)

    def saw(self, size: int) -> None:
        """One more file, of ``size`` bytes, is there."""
        self.left -= size
        self.files += 1
        if self.files == 1:
            self._began = time.monotonic(), time.process_time()
        else:
            self.done += size

    def seconds(self) -> tuple[float, float]:
        """Of wall time and of CPU that what is left would take as it has gone so far."""
        began, share = self._began, self.left / max(1, self.done)
        return (
            (time.monotonic() - began[0]) * share,
            (time.process_time() - began[1]) * share,
        )


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


def where_to(pace: Pace, processes: int, largest: int, room: int) -> Choice | None:
    """Where the files that are left are predicted; None while too few were seen.

    Parameters
    ----------
    pace : Pace
    processes : int
        That may be started.
    largest : int
        Bytes of a file at most.
    room : int
        Bytes of a file that each of the processes could take whole, if it must.
    """
    if pace.files <= count("apart.files"):
        return None
    here, cpu = pace.seconds()
    there = f"{processes} processes"
    if largest > room:
        said = f"a file has {format_bytes(largest)}, and each may take {format_bytes(room)}"
        return Choice(
            "files", "those left", HERE, here, None, (Alternative(there, None, said),)
        )
    # They start while this process goes on, and all of them want the cores.
    start = price("apart.start") * (processes + 1) / processes
    seconds = {HERE: here, there: start + cpu / processes}
    chosen, other = sorted(seconds, key=seconds.__getitem__)
    rejected = Alternative(other, seconds[other])
    return Choice("files", "those left", chosen, seconds[chosen], None, (rejected,))


class Hands:
    """The processes.

    Parameters
    ----------
    scorer : object
        Predicts files by its method ``score_file``; must be picklable.
    processes : int
        How many `start` starts.
    """

    def __init__(self, scorer: Any, processes: int) -> None:
        self._scorer, self.processes = scorer, processes
        self._free: queue.SimpleQueue[Apart | None] = queue.SimpleQueue()
        self._all: set[Apart] = set()
        self._changing = threading.Lock()
        self._closed = False
        self._ready = 0
        self.failed: Exception | None = None
        self.given_up: Callable[[], bool] = lambda: self._closed

    def start(self) -> None:
        """Start them; nobody waits."""
        for number in range(self.processes):
            name = f"mlopt-hand-{number}"
            threading.Thread(target=self._come, name=name, daemon=True).start()

    @property
    def there(self) -> bool:
        """Whether all of them are ready."""
        return self._ready == self.processes

    def score_file(self, given: Any) -> Any:
        """Have one of them predict a file; waits until one is free.

        Raises
        ------
        MemberLostError
            Processes end whatever they are given, or no others can be started.
        """
        lost = 0
        while True:
            hand = self._free.get()
            if hand is None:  # and there will be none
                self._free.put(None)
                raise MemberLostError(f"No process is left: {self.failed}")
            try:
                return hand.call("score_file", given, given_up=self.given_up)
            except MemberLostError:
                lost, left, hand = lost + 1, hand, None
                self._leave(left)
                if lost == LOST or self.given_up():
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

    def _come(self) -> None:
        try:
            hand = Apart(_Hand, self._scorer, calls=CALLS)
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
        for _ in range(CALLS):
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


class _Hand:
    """What a process has: it works on one core, and is told nothing twice."""

    def __init__(self, scorer: Any) -> None:
        self._scorer = scorer
        warnings.simplefilter("ignore", InputWarning)  # it is told, with the rows

    def score_file(self, given: Any) -> Any:
        with single_threaded():
            return self._scorer.score_file(given)
