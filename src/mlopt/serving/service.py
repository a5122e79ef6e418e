"""Requests in, answers out: the queue, the one call of the model at a time, new models.

All decisions happen in the event loop, so nothing is locked. One call runs at a time: the
rows of many requests in one is what makes it fast, and the libraries within a call have
threads of their own.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mlopt.errors import ClusterError, InputError, MemberLostError
from mlopt.serving.answering import Answering, Caller
from mlopt.serving.bodies import Rows
from mlopt.serving.metrics import Metrics
from mlopt.serving.microbatch import Microbatches, Part, Request
from mlopt.serving.model import ServedModel, stamp_of
from mlopt.serving.turns import SHARE

TRIED = (1, 1, 1, 64, 64, 64, 1024, 1024, 1024)
"""Rows of the calls that show, before the first request, how the time of a call grows: a
client alone, as many as there may be, and so many that only their number counts. Of three
the least is taken: anything else that the machine does makes a call longer, never shorter.
"""

PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds until another process for the models is tried where one has not begun, doubled
each time: it takes about 2 s of CPU, and what it lacks, as memory, may be back at once.
"""

TURNS = 3
"""Turns of the event loop in which what has arrived becomes a request: one receives it, one
runs its task, and one is theirs who came between."""

LOOK = 0.01
"""Seconds between two looks at whether all is answered: nobody sees so short a wait."""


class NoCreditError(Exception):
    """Refused: try again in `seconds`."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"All credits are taken: try again in {seconds} s.")
        self.seconds = seconds

    def content(self) -> bytes:
        """What is answered, as JSON."""
        return json.dumps({"error": str(self)}).encode()


@dataclass(frozen=True)
class Answer:
    """Predictions for the rows of one request.

    Parameters
    ----------
    columns : mapping of str to list
        ``prediction``, and ``probability_<class>`` if asked for.
    remarks : tuple of str
        Which cells could not be read, and count as missing.
    token : str
        Of the model that answered.
    """

    columns: Mapping[str, list[Any]]
    remarks: tuple[str, ...]
    token: str


@dataclass(eq=False)
class _Asked:
    """What goes with a request through the queue."""

    answering: Answering
    rows: Rows
    proba: bool
    future: asyncio.Future[Answer]
    since: float
    answers: list[tuple[int, dict[str, list[Any]]]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


class Service:
    """A model behind a queue.

    Parameters
    ----------
    path : path
        Of the model; a file that changes is loaded anew by `watch`.
    latency : float
        Seconds within which what is let in should be answered: less, where it takes less
        while nobody is refused (`waits.TIMES`).
    most_bytes : int
        Of the bodies of all requests that are open; eight of the largest, by default.
    gather : bool
        False to call the model once a request: what a benchmark compares with.
    apart : bool
        Whether the model has a process of its own.
    tell : callable
        Called with sentences for the log.

    Raises
    ------
    InputError
        The model cannot be loaded or does not answer.
    """

    def __init__(
        self,
        path: Path,
        *,
        latency: float = 0.1,
        most_bytes: int = 64 << 20,
        gather: bool = True,
        apart: bool = False,
        tell: Callable[[str], object] = lambda text: None,
    ) -> None:
        if not path.exists():  # before a process starts that loads libraries
            raise InputError(f"{path} cannot be read: there is no such file or folder.")
        self.path = path
        self.tell = tell
        self._caller, self._is_apart = Caller(apart), apart
        self.metrics = Metrics()
        self.queue = Microbatches(latency, most_bytes)
        self.draining = False
        self.lost = False
        """Whether the model's process has ended, and there is no other one yet."""
        self.failed = ""
        self.arrived: Callable[[], float] = time.monotonic
        """When a request was there that begins in this turn of the event loop."""
        self._alone = not gather
        self._busy = False
        self._coming = 0
        self._came = self._idle = 0.0
        self._before = time.thread_time()
        self._timer: asyncio.TimerHandle | None = None
        self._reviving: asyncio.Task[None] | None = None
        self._wake: Callable[[], None] = lambda: None
        self._thread = ThreadPoolExecutor(1, "mlopt-serve")
        self._loading = asyncio.Lock()
        try:
            self._answering = self._caller.load(path)
            for number in TRIED:
                self.queue.cost.tried(number, self._answering.tried(number))
        except BaseException:
            self._caller.close()
            raise
        self._seen = self.model.stamp

    @property
    def model(self) -> ServedModel:
        """What answers requests that come now."""
        return self._answering.model

    @property
    def answering(self) -> Answering:
        """The same, to be called."""
        return self._answering

    @property
    def process(self) -> int:
        """The number of the process that has the models."""
        return self._caller.number

    @property
    def ready(self) -> bool:
        """Whether requests are let in."""
        return not (self.draining or self.lost)

    def check_credit(self) -> None:
        """Refuse what cannot be let in before any work is done for it.

        Raises
        ------
        NoCreditError
        """
        if not self.ready or self.queue.full:
            raise self.refused()

    def expect(self) -> bool:
        """Whether there is a credit for one more that comes in this turn of the loop."""
        if self.queue.full_with(self._coming):
            return False
        if not self._coming:
            asyncio.get_running_loop().call_soon(self._came_in)  # before their tasks
        self._coming += 1
        return True

    def _came_in(self) -> None:
        self._coming = 0

    def refused(self) -> NoCreditError:
        """What is raised where there is no credit."""
        return NoCreditError(self.queue.refuse())

    async def predict(
        self, rows: Rows, answering: Answering, *, proba: bool, since: float = -math.inf
    ) -> Answer:
        """Predictions, once a call had room for the rows.

        Parameters
        ----------
        rows : Rows
            Read for the model that answers them, even if there is a new one by then.
        answering : Answering
        proba : bool
        since : float
            When the request was there, of the event loop's clock; by default now.

        Raises
        ------
        NoCreditError
            At once.
        ValueError, TypeError
            What the model says of these rows.
        """
        loop = asyncio.get_running_loop()
        alone = object() if self._alone else None
        since, now = loop.time() if math.isinf(since) else since, loop.time()
        asked = _Asked(answering, rows, proba, loop.create_future(), since)
        group = answering.model.token, proba, rows.kinds, alone
        request = Request(group, rows.length, asked)
        if not self.ready or not self.queue.admit(request):
            raise self.refused()
        self.metrics.accepted += 1
        self._came = now
        if not self._busy:
            self._busy = True
            self._gather(now)
        elif self._timer is not None and self.queue.gathered:
            self._timer.cancel()
            self._wake()
        try:
            return await asked.future
        finally:
            self.metrics.answered += asked.future.done() and not asked.future.cancelled()
            self.queue.give_up(request)

    def _gather(self, since: float, accepted: int = -1, quiet: int = 0) -> None:
        """Start a call once all that has arrived is read, and nobody else is waited for."""
        loop, queue = asyncio.get_running_loop(), self.queue
        now, self._timer = loop.time(), None
        quiet = quiet + 1 if accepted == self.metrics.accepted else 0
        full = queue.waiting_rows >= queue.rows_a_call or now - since >= queue.cost.line.b
        if not full and quiet < TURNS:
            self._came = now  # until answers are written nobody can come back
            loop.call_soon(self._gather, since, self.metrics.accepted, quiet)
            return
        if not full and (wait := queue.wait(now - since, now - self._came)):
            self._wake = partial(self._woken, since, now)
            self._timer = loop.call_later(wait, self._wake)
            return
        waited, self._idle = self._idle, 0.0
        parts = self.queue.take(waited)
        self._busy = bool(parts)
        if not parts:
            return
        for part in parts:
            if part.begin == 0:
                self.metrics.waited.saw(now - part.request.content.since)
        asked: _Asked = parts[0].request.content
        pieces = [(p.request.content.rows.between(p.begin, p.end), p.begin) for p in parts]
        call = loop.run_in_executor(self._thread, asked.answering.call, pieces, asked.proba)
        call.add_done_callback(partial(self._ended, parts, since + waited))

    def _woken(self, since: float, asleep: float) -> None:
        """Go on to gather; the time of waiting is nobody's cost."""
        self._idle += asyncio.get_running_loop().time() - asleep
        self._gather(since)

    def _ended(self, parts: Sequence[Part], busy: float, call: asyncio.Future[Any]) -> None:
        """Give the rows of a call back to their requests."""
        now, error = asyncio.get_running_loop().time(), call.exception()
        seconds, results = call.result() if error is None else (0.0, [error] * len(parts))
        # A late request may still have asked the process before.
        current = parts[0].request.content.answering is self._answering
        if isinstance(error, MemberLostError) and current:
            self._revive()
        rows = sum(part.rows for part in parts)
        before, self._before = self._before, time.thread_time()
        self.queue.cost.saw(rows, now - busy, self._before - before)
        self.metrics.ran.saw(seconds)
        self.metrics.gathered.saw(rows)
        for part, result in zip(parts, results, strict=True):
            asked = part.request.content
            if isinstance(result, Exception):
                if not asked.future.done():
                    asked.future.set_exception(result)
                self.queue.give_up(part.request)
            else:
                columns, remarks = result
                self.metrics.rows += part.rows
                asked.answers.append((part.begin, columns))
                asked.remarks += remarks
        over = self.queue.ended(parts)
        self._answer([one.content for one in over if one.ended == one.rows], parts)
        self._gather(now)

    def _answer(self, whole: Sequence[_Asked], parts: Sequence[Part]) -> None:
        """Wake requests whose rows are all there, some in each turn of the event loop."""
        for asked in whole[:SHARE]:
            if not asked.future.done():
                asked.future.set_result(_joined(asked))
        again = self._took if not whole else partial(self._answer, whole[SHARE:])
        asyncio.get_running_loop().call_soon(again, parts)

    def _took(self, parts: Sequence[Part]) -> None:
        """All of a call are answered; those that were in others too took as many calls."""
        single = [p.request for p in parts if p.rows == p.request.rows]
        if single and not self._alone:  # calls of a row say nothing of larger ones
            first = min(request.content.since for request in single)
            among = max(request.among for request in single)
            seconds = asyncio.get_running_loop().time() - first
            self.queue.waits.took(among, seconds)

    def _revive(self) -> None:
        """The process of models has ended in a call, whose requests fail: get another."""
        if self.lost:
            return
        self.lost = True
        self.tell("the process of the models has ended: another one begins")

        async def revive() -> None:
            pause = PAUSE
            while self.lost:  # a new file may have been loaded meanwhile
                self._caller.close()
                try:
                    self._caller = await asyncio.to_thread(Caller, self._is_apart)
                    if await self.reload():
                        return
                except (ClusterError, OSError) as error:
                    self.tell(f"the models have no process, in {pause:g} s again: {error}")
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

        self._reviving = asyncio.get_running_loop().create_task(revive())

    async def reload(self) -> bool:
        """Load the model's file anew; requests that are open are answered by the old one.

        A file that cannot be loaded, or does not answer a row, changes nothing: it is said
        in the log and in `failed`.
        """
        async with self._loading:
            self._seen = stamp_of(self.path)
            try:
                answering = await asyncio.to_thread(self._caller.load, self.path)
            except (InputError, ClusterError, OSError) as error:
                self.failed = str(error)
                self.metrics.reloads["failed"] += 1
                goes_on = (
                    "nothing is answered" if self.lost else f"{self.model.token} goes on"
                )
                self.tell(f"the new model is not used, {goes_on}: {error}")
                return False
            self._answering, self.failed, self.lost = answering, "", False
            self.metrics.reloads["done"] += 1
            self.tell(f"model {self.model.token} answers from now on")
            return True

    async def watch(self, every: float = 1.0) -> None:
        """Reload whenever the file has changed, and is no longer being written to."""
        before = self._seen
        while True:
            await asyncio.sleep(every)
            now = stamp_of(self.path)
            if now and now == before != self._seen:
                await self.reload()
            before = now

    async def drain(self) -> None:
        """Let nothing in any more, and wait until all that was is answered."""
        self.draining = True
        while self.queue.open_requests or self.queue.open_bytes:
            await asyncio.sleep(LOOK)

    def close(self) -> None:
        """End the model's process, whatever it is at, and the thread that calls it."""
        self.lost = True  # and it needs no other one
        self._caller.close()
        self._thread.shutdown(wait=True, cancel_futures=True)

    def gauges(self) -> dict[str, tuple[str, float]]:
        """What holds at this moment."""
        queue, line = self.queue, self.queue.cost.line
        return {
            "mlopt_open_requests": ("Requests with credits.", queue.open_requests),
            "mlopt_open_rows": ("Credits of rows that are taken.", queue.open_rows),
            "mlopt_credit_rows": ("Credits of rows in all.", queue.credits),
            "mlopt_open_bytes": ("Bytes of bodies that are held.", queue.open_bytes),
            "mlopt_credit_bytes": ("Bytes of bodies that may be.", queue.most_bytes),
            "mlopt_rows_a_call": ("Rows that a call may take.", queue.rows_a_call),
            "mlopt_call_fixed_seconds": ("Of a call, whatever its rows.", line.b),
            "mlopt_call_row_seconds": ("Of a call, for each row more.", line.a),
            "mlopt_draining": ("1 while it ends.", self.draining),
        }


def _joined(asked: _Asked) -> Answer:
    parts = [columns for _, columns in sorted(asked.answers, key=lambda pair: pair[0])]
    if len(parts) == 1:
        joined = parts[0]
    else:
        joined = {name: [v for part in parts for v in part[name]] for name in parts[0]}
    return Answer(joined, tuple(asked.remarks), asked.answering.model.token)
