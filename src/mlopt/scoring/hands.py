"""Processes of this machine that predict whole files, each with a lock of its own.

To read and to predict small files is Python's work for the most part: threads wait for its
lock. A process takes seconds to start; whether it pays, the first files tell.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

from mlopt.cluster import single_threaded
from mlopt.errors import InputWarning
from mlopt.plan import Alternative, Choice, format_bytes
from mlopt.prices import count, price

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


class Hand:
    """What a process has: it works on one core, and is told nothing twice."""

    def __init__(self, scorer: Any) -> None:
        self._scorer = scorer
        warnings.simplefilter("ignore", InputWarning)  # it is told, with the rows

    def score_file(self, given: Any) -> Any:
        with single_threaded():
            return self._scorer.score_file(given)
