"""What a gate decides, as a ledger: feeds and credits come in, what may go on goes out.

There are no threads, no clocks and no waiting here; `mlopt.streaming.gate` adds them. A
**batch** is the feeds of one request. A gate

* takes a feed of a batch that it does not know as the beginning of one (P3),
* opens a batch when it gives the first of its feeds, for which it needs a credit if it is
  linked to a gate downstream, and forgets it after the last (P4, P7),
* prefers batches in the order in which they came, and within a batch gives what came
  first (P5); an aggregate dequeue gives neighbours of one batch, by their numbers, so
  that what is together does not depend on what else is under way (P2, P6),
* lets only so many feeds be under way to the linked gate (P8): the source of the stream
  waits then, not a stage with a result in its hands.

The numbers are those of the rules of Whitlock, Larus, Bugnion, "Extending TensorFlow's
Semantics with Pipelined Execution", sections 3.2 to 3.5.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from heapq import heappop, heappush
from typing import Any, NamedTuple

from mlopt.errors import InputError

BARRIER = 1 << 62
"""An aggregate size that no batch reaches: all of its feeds together."""


class Taken(NamedTuple):
    """What a gate gives to a stage.

    Attributes
    ----------
    batch : hashable
    number : int
        Its place among the feeds that the gate gives of this batch, from 0.
    feed : object
        Of an aggregate dequeue a list.
    held : int
        Feeds that were under way for it.
    """

    batch: Any
    number: int
    feed: Any
    held: int


class Allowance:
    """The credits of a gate: what may be under way to the gate that it is linked to.

    Parameters
    ----------
    batches : int
        Open at once.
    feeds : int, optional
        Under way at once, of all open batches together. By default any number.
    least : int
        Feeds that an open batch may have under way whatever others have: what is gathered
        in aggregates must not wait for what may not come.
    shared : bool
        Whether a batch may use more than its ``feeds / batches`` while others do not.

    Raises
    ------
    InputError
        A number below 1, or fewer feeds than ``batches * least``.
    """

    def __init__(
        self, batches: int, feeds: int | None = None, least: int = 1, shared: bool = True
    ) -> None:
        if batches < 1 or least < 1:
            raise InputError(
                f"Credits must be at least 1, got {batches} for open requests, {least} for "
                "feeds of each: nothing would ever begin."
            )
        if feeds is not None and feeds < batches * least:
            raise InputError(
                f"{batches} open requests with at least {least} feeds under way need "
                f"{batches * least} credits for feeds, got {feeds}: let fewer be open "
                "(`open=`), give more `feeds` or `memory`, or aggregate fewer of them."
            )
        self._shared = shared
        self.used: dict[Hashable, int] = {}
        self.total = self._borrowed = 0
        self.least = least
        self.change(batches, feeds)

    def change(self, batches: int, feeds: int | None) -> None:
        """Other numbers from now on; what is under way already stays."""
        self.batches, self.feeds = batches, feeds
        if feeds is not None and not self._shared:
            self.least = feeds // batches
        self._borrowed = sum(max(0, used - self.least) for used in self.used.values())

    @property
    def may_open(self) -> bool:
        """Whether there is a credit for one more batch."""
        return len(self.used) < self.batches

    def may_feed(self, batch: Hashable) -> bool:
        """Whether one more feed of an open batch may be under way."""
        if self.feeds is None or self.used[batch] < self.least:
            return True
        return self._borrowed < self.feeds - self.batches * self.least

    def open(self, batch: Hashable) -> None:
        """Spend a credit."""
        self.used[batch] = 0

    def feed(self, batch: Hashable) -> None:
        """One more feed is under way."""
        used = self.used[batch]
        self._borrowed += used >= self.least
        self.used[batch] = used + 1
        self.total += 1

    def back(self, batch: Hashable, feeds: int) -> int:
        """So many are not any more; gives how many of the batch still are."""
        used = self.used[batch]
        left = self.used[batch] = used - feeds
        self._borrowed -= max(0, used - self.least) - max(0, left - self.least)
        self.total -= feeds
        return left

    def close(self, batch: Hashable) -> None:
        """The linked gate has closed the batch: its credit is back."""
        self.back(batch, self.used[batch])
        del self.used[batch]


class _Batch:
    """What a gate knows of a batch."""

    __slots__ = (
        "arity", "entitled", "given", "got", "group", "id", "listed", "next", "pending",
        "ready", "turn",
    )  # fmt: skip

    def __init__(self, id_: Hashable, turn: int) -> None:
        self.id, self.turn = id_, turn
        self.arity: int | None = None
        self.got = self.given = self.next = 0
        self.ready: deque[tuple[int, Any]] = deque()
        self.pending: dict[int, Any] = {}
        self.group: list[Any] = []
        self.listed = self.entitled = False


class Ledger:
    """The state of one gate.

    Laws: a feed that was put is taken exactly once; aggregates of a batch are those of the
    batch alone; with an allowance no more is open or under way than it says; ``take`` gives
    None only where nothing may go on. Each call takes time that does not grow with the
    number of batches, but for the logarithm of a heap.

    Parameters
    ----------
    size : int, optional
        Feeds in an aggregate, `BARRIER` for all of a batch; by default feeds go on one by
        one, in the order in which they came.
    allowance : Allowance, optional
        If the gate is linked to one downstream.
    """

    def __init__(self, size: int | None = None, allowance: Allowance | None = None) -> None:
        if size is not None and size < 1:
            raise InputError(f"An aggregate must have at least 1 feed, got {size}.")
        self.size, self.allowance = size, allowance
        self.batches: dict[Hashable, _Batch] = {}
        self.buffered = self.peak = self.rounds = 0
        self._turn = 0
        # Lists, never scans: of batches that have something to give.
        self._ready: list[tuple[int, _Batch]] = []
        self._entitled: list[tuple[int, _Batch]] = []
        self._unopened: list[tuple[int, _Batch]] = []

    def put(self, batch: Hashable, index: int, feed: Any) -> bool:
        """A feed arrives.

        Parameters
        ----------
        batch : hashable
        index : int
            Its number within the batch, from 0; each comes once, in any order.
        feed : object

        Returns
        -------
        bool
            Whether there is more to take than before.

        Raises
        ------
        InputError
            The batch has a feed of that number, or as many as it said.
        """
        one = self.batches.get(batch) or self._begin(batch)
        if one.got == one.arity:
            raise InputError(f"A batch of {one.got} feeds got one more, number {index}.")
        if index < one.next or index in one.pending:
            raise InputError(f"Feed {index} of a batch came twice.")
        one.got += 1
        self.buffered += 1
        if self.buffered > self.peak:
            self.peak = self.buffered
        if self.size is None:
            one.ready.append((index, feed))
            self._list(one)
            return True
        one.pending[index] = feed
        return self._assemble(one)

    def end(self, batch: Hashable, feeds: int) -> int:
        """A batch has so many feeds and no more, those to come included.

        Returns
        -------
        int
            How many the gate gives of it in all.
        """
        one = self.batches.get(batch) or self._begin(batch)
        if one.got > feeds:
            raise InputError(f"A batch of {feeds} feeds got {one.got}.")
        one.arity = feeds
        if self.size is not None:
            self._assemble(one)
        self._forget_if_done(one)
        return feeds if self.size is None else -(-feeds // self.size)

    def take(self) -> Taken | None:
        """What goes on next, or None while nothing may."""
        one = self._first(self._ready) if self.allowance is None else self._allowed()
        return None if one is None else self._give(one)

    def take_of(self, batch: Hashable) -> Taken | None:
        """What goes on next of one batch: for an egress, which has no allowance."""
        one = self.batches.get(batch)
        return None if one is None or not one.ready else self._give(one)

    def stalled(self, batch: Hashable) -> int:
        """Feeds of a batch that wait for others of it."""
        one = self.batches.get(batch)
        if one is None or one.ready or one.arity is not None:
            return 0
        return one.got - self._gone(one)

    def back(self, batch: Hashable, feeds: int) -> int:
        """The linked gate has done with ``feeds`` of a batch; gives how many are left."""
        assert self.allowance is not None
        left = self.allowance.back(batch, feeds)
        if (one := self.batches.get(batch)) is not None and one.ready:
            self._entitle(one)
        return left

    def drop(self, batch: Hashable) -> int:
        """Forget a batch; gives how many of its feeds were waiting here."""
        one = self.batches.pop(batch, None)
        if one is None:
            return 0
        waiting = one.got - self._gone(one)
        self.buffered -= waiting
        one.ready.clear()  # the lists let go of it when they come to it
        return waiting

    def _gone(self, one: _Batch) -> int:
        """Feeds that have gone on."""
        return one.given if self.size is None else min(one.given * self.size, one.got)

    def _begin(self, batch: Hashable) -> _Batch:
        one = self.batches[batch] = _Batch(batch, self._turn)
        self._turn += 1
        return one

    def _assemble(self, one: _Batch) -> bool:
        """Move what has all of its predecessors into aggregates."""
        assert self.size is not None
        before = len(one.ready)
        while True:
            group = one.group
            if group and (len(group) == self.size or one.next == one.arity):
                one.ready.append(((one.next - 1) // self.size, group))
                one.group = []
            if one.next not in one.pending:
                break
            one.group.append(one.pending.pop(one.next))
            one.next += 1
        if one.ready:
            self._list(one)
        return len(one.ready) > before

    def _list(self, one: _Batch) -> None:
        if one.listed:
            # It may stand behind others, and have been looked for where it had nothing.
            if self.allowance is not None and one.id in self.allowance.used:
                self._entitle(one)
            return
        one.listed = True
        entry = (one.turn, one)
        if self.allowance is None:
            heappush(self._ready, entry)
        elif one.id in self.allowance.used:
            heappush(self._ready, entry)
            self._entitle(one)
        else:
            heappush(self._unopened, entry)

    def _entitle(self, one: _Batch) -> None:
        assert self.allowance is not None
        if not one.entitled and self.allowance.used[one.id] < self.allowance.least:
            one.entitled = True
            heappush(self._entitled, (one.turn, one))

    @staticmethod
    def _first(batches: list[tuple[int, _Batch]]) -> _Batch | None:
        while batches:
            one = batches[0][1]
            if one.ready:
                return one
            heappop(batches)
            one.listed = False
        return None

    def _allowed(self) -> _Batch | None:
        """The first batch that may give a feed: an open one, else one that may open."""
        allowance = self.allowance
        assert allowance is not None
        one = self._first(self._ready)
        if one is not None and allowance.may_feed(one.id):
            return one
        while self._entitled:
            one = self._entitled[0][1]
            if one.ready and allowance.used[one.id] < allowance.least:
                return one
            heappop(self._entitled)
            one.entitled = False
        one = self._first(self._unopened)
        if one is None or not allowance.may_open:
            return None
        heappop(self._unopened)
        one.listed = False
        allowance.open(one.id)
        self._list(one)
        return one

    def _give(self, one: _Batch) -> Taken:
        index, feed = one.ready.popleft()
        held = 1 if self.size is None else len(feed)
        one.given += 1
        self.buffered -= held
        self.rounds += 1
        if self.allowance is not None:
            self.allowance.feed(one.id)
        if one.arity is not None:
            self._forget_if_done(one)
        return Taken(one.id, index, feed, held)

    def _forget_if_done(self, one: _Batch) -> None:
        if one.got == one.arity and not one.ready:
            del self.batches[one.id]
