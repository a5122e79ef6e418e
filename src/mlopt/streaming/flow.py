"""The gates of a whole stream and the link from its end to its beginning, still pure.

::

    ingress -> [source] -> gate 0 -> [stage 0] -> gate 1 -> ... -> [last stage] -> egress
       ^                                                                             |
       +------------------ credits: requests open, feeds under way ------------------+

The ingress holds requests: its "feeds" are turns of a source to make one more feed of a
request. So a request of any length takes no more than its credits allow (P8, P9).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from mlopt.streaming.credits import BARRIER, Allowance, Ledger, Taken


class Flow:
    """Which feed goes where; every method is one event.

    Laws: what a request gives does not depend on the others (P2); every request that was
    submitted ends, unless its source or a stage does not; when all have ended nothing is
    held and all credits are there.

    Parameters
    ----------
    sizes : sequence of int or None
        For each stage what its gate aggregates: None for single feeds.
    allowance : Allowance
    whole : bool
        Whether results are given request by request; else feed by feed, in order.
    """

    def __init__(
        self, sizes: Sequence[int | None], allowance: Allowance, whole: bool = True
    ) -> None:
        self.allowance = allowance
        self.whole = whole
        self.ingress = Ledger(allowance=allowance)
        self.gates = [Ledger(size) for size in sizes]
        self.egress = Ledger(BARRIER if whole else 1)
        self._path = [*self.gates, self.egress]
        self.dead: set[Hashable] = set()
        """Requests that are over, of which stages still hold feeds."""

    def submit(self, request: Hashable) -> None:
        """A request waits for a credit."""
        self.ingress.put(request, 0, None)

    def turn(self) -> Taken | None:
        """Whose source makes its next feed; the feed is under way from now on."""
        return self.ingress.take()

    def produced(self, turn: Taken, feed: Any) -> bool:
        """The source has made its feed of number ``turn.number``; gives whether the first
        stage has more to take.
        """
        if not self._alive(turn):
            return False
        self.ingress.put(turn.batch, turn.number + 1, None)
        return self._path[0].put(turn.batch, turn.number, feed)

    def exhausted(self, turn: Taken) -> bool:
        """The source has no feed of that number; gives whether nothing can come out."""
        if not self._alive(turn):
            return False
        # The turn that has found the end counts as one; what it held is free.
        self.ingress.end(turn.batch, turn.number + 1)
        self.ingress.back(turn.batch, 1)
        feeds = turn.number
        for ledger in self._path:
            feeds = ledger.end(turn.batch, feeds)
        return turn.number == 0

    def take(self, stage: int) -> Taken | None:
        """What a stage works on next."""
        return self.gates[stage].take()

    def done(self, stage: int, taken: Taken, result: Any) -> bool:
        """A stage has made ``result``, one feed, of what it took; gives whether the next
        one, or the end, has more to take.
        """
        if not self._alive(taken):
            return False
        last = stage + 1 == len(self.gates)
        # Of an aggregate one feed is left; what is whole at the end is the caller's.
        free = taken.held if last and self.whole else taken.held - 1
        if free:
            self.ingress.back(taken.batch, free)
        return self._path[stage + 1].put(taken.batch, taken.number, result)

    def whole_result(self) -> Taken | None:
        """A request all of whose results are there, in order."""
        return self.egress.take()

    def next_result(self, request: Hashable) -> Taken | None:
        """The next result of a request, in order; `consumed` gives its credit back."""
        return self.egress.take_of(request)

    def consumed(self, taken: Taken) -> None:
        """A result of `next_result` is needed no more."""
        if self._alive(taken):
            self.ingress.back(taken.batch, taken.held)

    def complete(self, request: Hashable) -> bool:
        """Whether all results of an open request have been taken."""
        return request not in self.ingress.batches and request not in self.egress.batches

    def too_large(self, request: Hashable) -> bool:
        """Whether a request has spent all its credits on feeds that wait for more of it.

        That happens where all feeds of a request are aggregated, and there only.
        """
        used = self.allowance.used.get(request, 0)
        if self.allowance.feeds is None or used < self.allowance.least:
            return False
        return used == sum(ledger.stalled(request) for ledger in self.gates)

    def close(self, request: Hashable) -> None:
        """A request is answered, failed, cancelled or late: free what it holds.

        What stages are working on is held until they give it up: only then its credits are
        back.
        """
        waiting = sum(gate.drop(request) for gate in self.gates)
        results = self.egress.drop(request)
        waiting += 0 if self.whole else results  # whole ones are the caller's already
        self.ingress.drop(request)
        if request not in self.allowance.used:
            return  # not opened yet
        if self.ingress.back(request, waiting):
            self.dead.add(request)
        else:
            self.allowance.close(request)

    def given_up(self, taken: Taken) -> None:
        """A stage or a source has dropped what it took, of a request that is over."""
        self._alive(taken)

    def _alive(self, taken: Taken) -> bool:
        """Whether the request is still wanted; if not, what was taken of it is free."""
        if taken.batch not in self.dead:
            return True
        if not self.ingress.back(taken.batch, taken.held):
            self.dead.discard(taken.batch)
            self.allowance.close(taken.batch)
        return False


def least_feeds(sizes: Sequence[int | None]) -> int:
    """Feeds of one request that must be able to be under way, for aggregates to fill.

    One less than an aggregate may wait at each aggregating gate while one more comes.
    """
    return 1 + sum(size - 1 for size in sizes if size is not None and size < BARRIER)
