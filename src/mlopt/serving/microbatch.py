"""Which rows of which requests go into the next call, and which requests are let in.

::

    admit -> waiting, a queue a group -> take -> a call of the model -> ended
      |                                                                   |
      no credit: refused at once            credits come back <-----------+

Decisions only: no clock, no thread, no model. A request holds credits for the rows that it
has in the queue or in a call, from `admit` until it is over, and for the bytes of its body.
A call of n rows takes ``a n + b`` seconds with all that is done for its requests
(`CallCost`). Rows gather while one runs. When none does, all that has arrived is read, and
clients that have just been answered may come back (`wait`): as many rows are expected as
were open when the last call ended. No client waits for others when it is alone, none longer
than the ``b`` seconds of another call, and none where waiting has lost more than it gained.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlopt.costs import Fit
from mlopt.serving.waits import REMEMBERED, TIMES, Measured, Waits

MOST_ROWS = 1 << 12
"""Rows a call while more seem to cost nothing: to read and answer so many requests takes
the event loop .1 ms each (`benchmarks/serving.py`), together .4 s."""
KEPT = 0.75
"""Part of what waiting has gained before that counts at the next wait: 1 / (1 - .75), about
four waits. One alone is chance, and clients change within a second, which is some 50."""
AGAIN = 16
"""Calls after which a wait is tried again where it has lost: others may ask by now. A wait
is at most the fixed cost of a call: one in 17 adds less than 6% to what calls take."""


class CallCost:
    """What a call of n rows takes, with all that is done for its requests: ``a n + b``.

    The time of a call alone is tried before the first request. What is done beside it for a
    row (to read, to write) is the least of processor seconds that the event loop took, of
    `REMEMBERED` calls together: until so many were seen it counts as nothing. How
    much longer both take now, with refusals and all else that the machine does, is measured
    whole: the seconds that calls took lately from end to end, over those that they would
    have taken. So refusals never make few rows a call seem best, which would mean more.
    """

    def __init__(self) -> None:
        self._tried: defaultdict[int, list[float]] = defaultdict(list)
        self._seen: deque[tuple[int, float, float]] = deque(maxlen=REMEMBERED)
        self._least = math.inf
        self._alone = Fit(0.0, 0.0)
        self.line = Fit(0.0, 0.0)

    @property
    def usual(self) -> float:
        """Seconds of a call that has half of the best speed, when nothing else is done."""
        return 2 * self._alone.b

    def tried(self, rows: int, seconds: float) -> None:
        """A call of ``rows`` took ``seconds`` when the service did nothing else."""
        self._tried[rows].append(seconds)
        least = [min(times) for times in self._tried.values()]
        self.line = self._alone = Fit.of(list(self._tried), least)

    def saw(self, rows: int, seconds: float, beside: float = 0.0) -> None:
        """A call of ``rows`` took ``seconds`` with all that was done meanwhile.

        They count from the end of the call before it, or from when its first row came, but
        for those in which it waited for rows: all calls' add up to the time in which there
        was anything to do. The event loop worked ``beside`` seconds since the call before:
        for rows of this one and of others, so only many calls together say what one takes.
        """
        self._seen.append((rows, seconds, beside))
        counts, taken, worked = map(sum, zip(*self._seen, strict=True))
        if len(self._seen) == REMEMBERED:
            self._least = min(self._least, worked / counts)
        growing = self._alone.a + (0.0 if math.isinf(self._least) else self._least)
        alone = growing * counts + self._alone.b * len(self._seen)
        if alone > 0:  # multiplied first: a ratio to the least of numbers is infinite
            self.line = Fit(taken * growing / alone, taken * self._alone.b / alone)
        else:
            self.line = Fit(growing, self._alone.b)

    def rows(self, latency: float) -> int:
        """Rows that a call should take at most.

        As many as are read, predicted and answered within half of ``latency``: a request
        may wait for one call and be in the next. Where hardly any are, as many as make it
        take twice as long as an empty call: so many rows have at least half of the speed
        that any number would have.
        """
        growing, fixed = self.line.a, self.line.b
        if growing <= 0:
            return MOST_ROWS
        most = max(fixed, latency / 2 - fixed) / growing
        return max(1, math.floor(min(most, MOST_ROWS)))


@dataclass(eq=False)
class Request:
    """Rows that one client wants to be predicted.

    Parameters
    ----------
    group : hashable
        Only rows of one group may share a call.
    rows : int
    content : object
        What the caller keeps with it.
    """

    group: Hashable
    rows: int
    content: Any = None
    begun: int = field(default=0, init=False)
    ended: int = field(default=0, init=False)
    running: bool = field(default=False, init=False)
    credits: int = field(default=0, init=False)
    among: int = field(default=0, init=False)
    """Rows that were open when it was let in, with its own."""
    given_up: bool = field(default=False, init=False)


@dataclass(frozen=True, eq=False)
class Part:
    """Rows ``begin`` to ``end`` of a request, in one call."""

    request: Request
    begin: int
    end: int

    @property
    def rows(self) -> int:
        """How many."""
        return self.end - self.begin


class Microbatches:
    """The queue in front of a model.

    Parameters
    ----------
    latency : float
        Seconds within which what is let in should be answered.
    most_bytes : int
        Of all bodies that are open.
    """

    def __init__(self, latency: float, most_bytes: int) -> None:
        self.waits = Waits(latency)
        self.most_bytes = most_bytes
        self.cost = CallCost()
        self.open_rows = 0
        self.open_bytes = 0
        self.open_requests = 0
        self.waiting_rows = 0
        self._waiting_credits = 0
        self.expected_rows = 0
        """Rows in the last call, or waiting when it ended: their clients are there."""
        self._gained = 0.0
        """Seconds of clients that waiting for others has gained lately."""
        self._since = 0
        """Calls without a wait since it was last tried."""
        self._first: int | None = None
        """Rows that were there when the next call began to wait."""
        self._tried: tuple[float, int, int] | None = None
        """Of the call that runs: seconds waited, rows there before, rows that came."""
        self._known: tuple[Any, Any] = (None, None)
        self._rows_a_call = 0
        # In the order in which they are served: the first has waited longest.
        self._waiting: dict[Hashable, deque[Request]] = {}

    @property
    def rows_a_call(self) -> int:
        """Rows that the next call may take: half of those that are answered in time.

        A request waits for one call, and is in the next. How many these are is measured,
        but never so few that the speed would fall below half of the best. While nobody is
        refused it says little of more clients than there are: then what calls cost says it
        for as many as that speed needs, and for any as long as nothing was measured.
        """
        known = line, measured = self.cost.line, self.waits.measured
        if self._known[0] is not line or self._known[1] is not measured:
            # asked for at each refusal, and of these there are more than of all else
            self._known, self._rows_a_call = known, self._in_time(measured)
        return self._rows_a_call

    def _in_time(self, measured: Measured) -> int:
        latency, usual = self.waits.latency, self.cost.usual
        if not measured.throughput:
            return self.cost.rows(latency)
        most = math.floor(measured.throughput * self.waits.allowed(usual) / 2)
        least = self.cost.rows(0.0 if measured.pressed else min(latency, TIMES * usual))
        return min(MOST_ROWS, max(least, most))

    @property
    def credits(self) -> int:
        """Rows that may be open: those of a call that runs and of one that gathers.

        More would only wait longer (Pipelined TensorFlow, section 6: two open batches
        keep two balanced phases busy).
        """
        return 2 * self.rows_a_call

    @property
    def full(self) -> bool:
        """Whether not even one row has a credit."""
        return self.full_with(0)

    def full_with(self, coming: int) -> bool:
        """The same once ``coming`` rows more are let in."""
        return self._without_credit(1, coming)

    def _without_credit(self, needed: int, coming: int = 0) -> bool:
        """Behind a call that runs only one other may gather, however few rows that has."""
        held, waiting = self.open_rows + coming, self._waiting_credits + coming
        most = self.rows_a_call if held > waiting else self.credits
        return held > 0 and (held + needed > self.credits or waiting + needed > most)

    @property
    def retry_after(self) -> int:
        """Seconds, at least 1, after which what is open now has been answered."""
        line, calls = self.cost.line, math.ceil(self.open_rows / self.rows_a_call)
        return max(1, math.ceil(calls * line.b + self.open_rows * line.a))

    def refuse(self) -> int:
        """Somebody has no credit; gives `retry_after`."""
        self.waits.refused()
        return self.retry_after

    def reserve(self, number: int) -> bool:
        """Take credits for ``number`` bytes of a body; False where there are none.

        One body alone is always let in: how large it may be is for others to say.
        """
        if self.open_bytes and self.open_bytes + number > self.most_bytes:
            return False
        self.open_bytes += number
        return True

    def release(self, number: int) -> None:
        """Give credits for bytes back."""
        self.open_bytes -= number

    def admit(self, request: Request) -> bool:
        """Let a request in; False, and nothing else, where there is no credit.

        A request with more rows than a call takes holds credits for one call: its rows
        go into several calls, one at a time behind the others'.
        """
        needed = min(request.rows, self.rows_a_call)
        if self._without_credit(needed):
            return False
        request.credits = needed
        self.open_rows += needed
        request.among = self.open_rows
        self.open_requests += 1
        self._wait(request)
        return True

    @property
    def gathered(self) -> bool:
        """Whether the next call has all rows that it may take, or that are expected."""
        return self.waiting_rows >= min(self.rows_a_call, self.expected_rows)

    def wait(self, seconds: float, quiet: float) -> float:
        """Seconds for which the next call may still wait for a row; 0 to start it.

        Rows that wait lose the time of waiting, the one that comes gains the fixed cost of
        a call of its own: it is waited for until these are equal.

        Parameters
        ----------
        seconds : float
            Since no call runs and rows wait.
        quiet : float
            Since the last row came.
        """
        fixed = self.cost.line.b
        if self.gathered or not self.waiting_rows:
            return 0.0
        if self._gained < 0 and self._since < AGAIN:
            return 0.0
        wait = max(0.0, min(fixed - seconds, fixed / self.waiting_rows - quiet))
        if wait and self._first is None:
            self._first = self.waiting_rows
        return wait

    def take(self, waited: float = 0.0) -> list[Part]:
        """The rows of the next call, all of one group; empty where nothing waits.

        Parameters
        ----------
        waited : float
            Seconds that it waited for rows.
        """
        first, self._first, self._tried = self._first, None, None
        if not self._waiting:
            return []
        if first is None:
            self._since += 1
        else:
            self._tried, self._since = (waited, first, self.waiting_rows - first), 0
        group = next(iter(self._waiting))
        queue, room, parts = self._waiting.pop(group), self.rows_a_call, []
        while queue and room:
            request = queue.popleft()
            self.waiting_rows -= request.rows - request.begun
            self._waiting_credits -= request.credits
            end = min(request.rows, request.begun + room)
            parts.append(Part(request, request.begun, end))
            room -= end - request.begun
            request.begun = end
            request.running = True
        if queue:
            self._waiting[group] = queue  # behind the other groups
        return parts

    def ended(self, parts: Sequence[Part]) -> list[Request]:
        """A call has ended: the requests that are complete now, or were given up.

        Rows that had no room in the call wait again, behind all that came meanwhile.
        """
        over = []
        if self._tried is not None:
            waited, first, came = self._tried
            lost = waited * (first + self.waiting_rows)
            gained = came * (self.cost.line.b - waited) - lost
            self._gained = KEPT * self._gained + gained
            self._tried = None
        self.expected_rows = self.waiting_rows + sum(part.rows for part in parts)
        for part in parts:
            request = part.request
            request.running = False
            request.ended += part.rows
            if request.given_up or request.ended == request.rows:
                self._close(request)
                over.append(request)
            else:
                self._wait(request)
        return over

    def give_up(self, request: Request) -> None:
        """Its client is gone, or its time is up: no row of it is begun any more.

        What is in a call already keeps its credits until the call has ended.
        """
        if request.given_up or request.ended == request.rows:
            return
        request.given_up = True
        queue = self._waiting.get(request.group)
        if queue is not None and request in queue:
            queue.remove(request)
            self.waiting_rows -= request.rows - request.begun
            self._waiting_credits -= request.credits
            if not queue:
                del self._waiting[request.group]
        if not request.running:
            self._close(request)

    def _wait(self, request: Request) -> None:
        self.waiting_rows += request.rows - request.begun
        self._waiting_credits += request.credits
        self._waiting.setdefault(request.group, deque()).append(request)

    def _close(self, request: Request) -> None:
        self.open_rows -= request.credits
        self.open_requests -= 1
        request.credits = 0
