"""Which member takes the next partition: each has room for a few at once."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable

from mlopt.errors import ClusterError, StreamClosedError

PATIENCE = 45.0
"""Seconds to wait for a member where there is none, as a `Cluster` waits for a worker."""


REST = 10.0
"""Seconds without partitions for a member that did not answer: as long as a line waits. One
that is lost is told of by then; one that was only busy is asked again."""


class Places:
    """The places of members; threads wait for one.

    Parameters
    ----------
    members : iterable of str
    each : int
        Partitions that a member has at once.
    """

    def __init__(self, members: Iterable[str], each: int) -> None:
        self.each = each
        self._taken = dict.fromkeys(members, 0)
        self._resting: dict[str, float] = {}
        self._changed = threading.Condition()
        self._ended = False

    def __len__(self) -> int:
        """How many members there are."""
        return len(self._taken)

    def take(self) -> str:
        """A place of the member that has most of them free; waits for one.

        Raises
        ------
        ClusterError
            There is no member, and none came for a while.
        StreamClosedError
        """
        alone_since = None
        with self._changed:
            while not self._ended:
                self._wake()
                until = min(self._resting.values(), default=math.inf) - time.monotonic()
                until = max(0.0, until)
                if self._taken:
                    alone_since = None
                    member = min(self._taken, key=self._taken.__getitem__)
                    if self._taken[member] < self.each:
                        self._taken[member] += 1
                        return member
                    self._changed.wait(until if math.isfinite(until) else None)
                    continue
                alone_since = alone_since or time.monotonic()
                left = alone_since + PATIENCE - time.monotonic()
                if left <= 0:
                    raise ClusterError(
                        f"All workers are lost, and none came within {PATIENCE:.0f} s."
                    )
                self._changed.wait(min(left, until))
        raise StreamClosedError("The stream is closed.")

    def free(self, member: str) -> None:
        """A place is not needed any more."""
        with self._changed:
            if self._taken.get(member, 0):
                self._taken[member] -= 1
            self._changed.notify_all()

    def rest(self, member: str) -> None:
        """A member did not answer: others are asked for a while."""
        with self._changed:
            if self._taken.pop(member, None) is not None:
                self._resting[member] = time.monotonic() + REST
            self._changed.notify_all()

    def _wake(self) -> None:
        now = time.monotonic()
        for member in [one for one, until in self._resting.items() if until <= now]:
            del self._resting[member]
            self._taken.setdefault(member, 0)

    def change(self, member: str, came: bool) -> None:
        """A member came, or went."""
        with self._changed:
            self._resting.pop(member, None)
            if came:
                self._taken.setdefault(member, 0)
            else:
                self._taken.pop(member, None)
            self._changed.notify_all()

    def end(self) -> None:
        """Whoever waits, or will, gets a `StreamClosedError`."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
