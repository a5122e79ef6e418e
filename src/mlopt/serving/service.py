"""Requests in, answers out: the queue, the one thread that calls the model, new models.

All decisions happen in the event loop, so nothing is locked. One thread predicts: the rows
of many requests in one call is what makes it fast, and the libraries within a call have
threads of their own.
"""

from __future__ import annotations

import asyncio
import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mlopt.errors import InputError, InputWarning
from mlopt.serving.bodies import Rows, frame_of
from mlopt.serving.metrics import Metrics
from mlopt.serving.microbatch import Microbatches, Part, Request
from mlopt.serving.model import ServedModel, load_served, stamp_of
from mlopt.sweep.cells import unreadable
from mlopt.sweep.predict import predictions

TRIED = (1, 1, 1, 64, 64, 64, 1024, 1024, 1024)
"""Rows of the calls that show, before the first request, how the time of a call grows."""

TURNS = 3
"""Turns of the event loop in which what has arrived becomes a request: one receives it, one
runs its task, and one is theirs who came between."""


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

    model: ServedModel
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
        Seconds within which what is let in should be answered.
    most_bytes : int
        Of the bodies of all requests that are open.
    gather : bool
        False to call the model once a request: what a benchmark compares with.
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
        tell: Callable[[str], object] = lambda text: None,
    ) -> None:
        self.path = path
        self.tell = tell
        self.model = load_served(path)
        self.metrics = Metrics()
        self.queue = Microbatches(latency, most_bytes)
        self.draining = False
        self.failed = ""
        self._alone = not gather
        self._busy = False
        self._came = self._idle = 0.0
        self._before = self._counted()
        self._timer: asyncio.TimerHandle | None = None
        self._wake: Callable[[], None] = lambda: None
        self._thread = ThreadPoolExecutor(1, "mlopt-serve")
        self._seen = self.model.stamp
        self._loading = asyncio.Lock()
        for number in TRIED:
            begin, worked = time.perf_counter(), time.process_time()
            predictions(self.model.estimator, self.model.example(number))
            taken = time.perf_counter() - begin, time.process_time() - worked
            self.queue.cost.tried(number, min(taken))  # others, or threads of its own

    def check_credit(self) -> None:
        """Refuse what cannot be let in before any work is done for it.

        Raises
        ------
        NoCreditError
        """
        if self.draining or self.queue.full:
            raise NoCreditError(self.queue.retry_after)

    async def predict(self, rows: Rows, model: ServedModel, *, proba: bool) -> Answer:
        """Predictions, once a call had room for the rows.

        Parameters
        ----------
        rows : Rows
            Read for ``model``, which answers them even if there is a new one by then.
        proba : bool

        Raises
        ------
        NoCreditError
            At once.
        ValueError, TypeError
            What the model says of these rows.
        """
        loop = asyncio.get_running_loop()
        alone = object() if self._alone else None
        asked = _Asked(model, rows, proba, loop.create_future(), loop.time())
        request = Request((model.token, proba, rows.kinds, alone), rows.length, asked)
        if self.draining or not self.queue.admit(request):
            raise NoCreditError(self.queue.retry_after)
        self.metrics.accepted += 1
        self._came = asked.since
        if not self._busy:
            self._busy = True
            self._gather(asked.since)
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
        call = loop.run_in_executor(self._thread, _call, parts)
        call.add_done_callback(partial(self._ended, parts, since + waited))

    def _woken(self, since: float, asleep: float) -> None:
        """Go on to gather; the time of waiting is nobody's cost."""
        self._idle += asyncio.get_running_loop().time() - asleep
        self._gather(since)

    def _ended(self, parts: Sequence[Part], busy: float, call: asyncio.Future[Any]) -> None:
        """Give the rows of a call back to their requests."""
        now, (seconds, results) = asyncio.get_running_loop().time(), call.result()
        rows = sum(part.rows for part in parts)
        before, self._before = self._before, self._counted()
        worked, came = (b - a for a, b in zip(before, self._before, strict=True))
        # about half of the work is before a row is let in, half after it was called
        self.queue.cost.saw(rows, now - busy, 2 * worked / (rows + came))
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
        for request in self.queue.ended(parts):
            asked = request.content
            if not asked.future.done() and request.ended == request.rows:
                asked.future.set_result(_joined(asked))
        self._gather(now)

    def _counted(self) -> tuple[float, int]:
        """Processor seconds of the event loop, and requests that were let in."""
        return time.thread_time(), self.metrics.accepted

    async def reload(self) -> bool:
        """Load the model's file anew; requests that are open are answered by the old one.

        A file that cannot be loaded, or does not answer a row, changes nothing: it is said
        in the log and in `failed`.
        """
        async with self._loading:
            self._seen = stamp_of(self.path)
            try:
                model = await asyncio.to_thread(load_served, self.path)
            except InputError as error:
                self.failed = str(error)
                self.metrics.reloads["failed"] += 1
                self.tell(f"the new model is not used, {self.model.token} goes on: {error}")
                return False
            self.model, self.failed = model, ""
            self.metrics.reloads["done"] += 1
            self.tell(f"model {model.token} answers from now on")
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

    async def drain(self, every: float = 0.01) -> None:
        """Let nothing in any more, and wait until all that was is answered."""
        self.draining = True
        while self.queue.open_requests or self.queue.open_bytes:
            await asyncio.sleep(every)

    def close(self) -> None:
        """End the thread."""
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


Given = tuple[dict[str, list[Any]], list[str]]


def _call(parts: Sequence[Part]) -> tuple[float, list[Given | Exception]]:
    """Seconds of a call, and for each part columns and remarks, or an error."""
    begin = time.perf_counter()
    results: list[Given | Exception]
    try:
        results = list(_predicted(parts))
    except BaseException as error:  # a step may even want to end the process
        if len(parts) == 1:
            results = [error if isinstance(error, Exception) else RuntimeError(repr(error))]
        else:  # one request's rows must not fail the others'
            results = [_call([part])[1][0] for part in parts]
    return time.perf_counter() - begin, results


def _predicted(parts: Sequence[Part]) -> list[Given]:
    asked: _Asked = parts[0].request.content
    model = asked.model
    frame = frame_of([(p.request.content.rows, p.begin, p.end) for p in parts], model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # it is said, with the rows
        found = predictions(model.estimator, frame, proba=asked.proba)
    columns = {str(name): found[name].tolist() for name in found}
    ends = np.cumsum([part.rows for part in parts])
    strange = bool(_remarks(model, frame))
    given = []
    for part, end in zip(parts, ends.tolist(), strict=True):
        begin = end - part.rows
        said = _remarks(model, frame.iloc[begin:end]) if strange else []
        if part.begin:
            said = [f"counted from row {part.begin + 1:,}: {remark}" for remark in said]
        given.append(({n: values[begin:end] for n, values in columns.items()}, said))
    return given


def _remarks(model: ServedModel, frame: Any) -> list[str]:
    """Which cells the model takes as missing, since it cannot read them."""
    reads = model.reads
    if reads is None:
        return []
    return unreadable(frame, reads.numbers, reads.dates or {}, reads.decimals or {})


def _joined(asked: _Asked) -> Answer:
    parts = [columns for _, columns in sorted(asked.answers, key=lambda pair: pair[0])]
    if len(parts) == 1:
        joined = parts[0]
    else:
        joined = {name: [v for part in parts for v in part[name]] for name in parts[0]}
    return Answer(joined, tuple(asked.remarks), asked.model.token)
