"""A stream at work: threads at the gates, under one lock."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from mlopt.cluster.context import as_here
from mlopt.errors import (
    DeadlineError,
    RequestError,
    StageError,
    StreamClosedError,
    TooLargeError,
)
from mlopt.events import Event, GateWaited, Observer, RequestDone
from mlopt.limits import single_threaded
from mlopt.plan import format_bytes
from mlopt.resources.sizes import memory_of
from mlopt.streaming.answer import Answer, Request
from mlopt.streaming.credits import BARRIER, Allowance, Taken
from mlopt.streaming.deadlines import Deadlines
from mlopt.streaming.flow import Flow, least_feeds
from mlopt.streaming.gate import Gate
from mlopt.streaming.gathering import Gathering
from mlopt.streaming.stage import SAMPLES, Measured, Stage, check_result, clocks
from mlopt.streaming.tune import OPEN, Room, Timed, Tuned, tune

_log = logging.getLogger(__name__)

TOLD = 0.1
"""Seconds of a wait at a gate from which on there is an event of it."""
SOURCE = "requests"
"""What the stage is called that makes the feeds of requests."""
PATIENCE = 10.0
"""Seconds that a stream which is told to end gives each stage to come back."""


class ElsewhereError(Exception):
    """What a request failed of in another stream, which has said all there is to say."""

    def __init__(self, error: RequestError) -> None:
        super().__init__(str(error))
        self.error = error


class Running:
    """Threads that move requests through a `Flow`.

    Parameters
    ----------
    stages : sequence of Stage
    gather : Stage or None
        What makes one result of those of a request.
    room : Room
    observer : callable
        Called with events, one at a time, from threads of the stream.
    """

    partition = 1  # feeds that go through the gates as one

    def __init__(
        self,
        stages: Sequence[Stage],
        gather: Stage | None,
        room: Room,
        observer: Observer,
    ) -> None:
        self.stages, self.room = tuple(stages), room
        self.measured = [Measured() for _ in range(len(stages) + 1)]  # the source first
        self.tuned: Tuned | None = None
        self.arity = Measured()  # feeds of requests, as if they were seconds
        self.latency = Measured()
        self.began = time.monotonic()
        self.busy_since = self.busy = 0.0
        self.peak = self.longest = 0
        # One that hears of a request may cancel another, which is an event, too.
        self._observer, self._telling = observer, threading.RLock()
        self.lock = threading.Lock()
        self._changed = threading.Condition(self.lock)
        self.flow = Flow(
            [stage.size for stage in stages], self._first_credits(), gather is None
        )
        self._source = Gate(self.flow.ingress, SOURCE, self.lock)
        self.gates = [
            Gate(ledger, stage.name, self.lock, self._waiter(stage.name))
            for stage, ledger in zip(stages, self.flow.gates, strict=True)
        ]
        self._barrier = any(stage.size == BARRIER for stage in stages)
        self._fused = [False] * len(stages)
        self._threads: list[threading.Thread] = []
        self._number = 0
        self._open: set[Request] = set()
        self._closing = self._sized = False
        self._unfit: TooLargeError | None = None  # what stages make is more than the memory
        self._deadlines = Deadlines(
            self.lock, self._start, lambda late, error: self._finish(late, error=error)
        )
        self.gathering = None if gather is None else self._gathering(gather)
        for _ in range(OPEN):
            self._start(self._make_feeds, SOURCE)
        for at, stage in enumerate(stages):
            for _ in range(stage.replicas or 1):
                self._start(self._work, stage.name, at)

    def submit(self, given: Any, deadline: float | None = None) -> Answer:
        """A request joins those that wait for a credit."""
        with self.lock:
            if self._closing:
                raise StreamClosedError("The stream is closed: make another one.")
            self._number += 1
            due = None if deadline is None else time.monotonic() + deadline
            request = Request(self._number, given, due, self.lock, self._cut)
            answer = request.answer = Answer(lambda: self._give_up(request))
            if not self._open:
                self.busy_since = time.monotonic()
            self._open.add(request)
            self.flow.submit(request)
            self._source.wake()
            if due is not None:
                self._deadlines.add(due, request)
        return answer

    def close(self, drain: bool, timeout: float | None) -> None:
        """Answer what was submitted, or cancel it; then end all threads.

        Raises
        ------
        DeadlineError
            What was submitted was not answered in ``timeout``, or a stage did not end.
        """
        with self.lock:
            self._closing = True
            answered = drain and self._changed.wait_for(lambda: not self._open, timeout)
            left = list(self._open)
        for request in left:
            error = StreamClosedError("The stream was closed before this was answered.")
            self._finish(request, error=error)
        with self.lock:
            self._deadlines.end()
            if self.gathering is not None:
                self.gathering.end()
        for gate in [self._source, *self.gates]:
            gate.close()
        self._end()
        ends = time.monotonic() + PATIENCE
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, ends - time.monotonic()))
        stuck = sorted({t.name.partition(" ")[2] for t in self._threads if t.is_alive()})
        if stuck:
            raise DeadlineError(
                f"The stages {', '.join(stuck)} did not come back within "
                f"{PATIENCE:.0f} s of the end of the stream: each must end by itself."
            )
        if drain and not answered:
            raise DeadlineError(
                f"{len(left)} requests were not answered within {timeout} s: they failed."
            )

    def gauges(self) -> dict[str, dict[str, float]]:
        """Of each gate what waits there; of the whole the credits that are in use."""
        found = {gate.name: gate.gauges() for gate in [self._source, *self.gates]}
        with self.lock:
            allowance = self.flow.allowance
            found["stream"] = {
                "open": len(allowance.used),
                "open credits": allowance.batches,
                "feeds": allowance.total,
                "feed credits": allowance.feeds or 0,
                "peak": self.peak,
                "waiting": len(self._open) - len(allowance.used),
            }
        return found

    # --- what threads do

    def _make_feeds(self) -> None:
        while (turn := self._taken(self._source)) is not None:
            request = turn.batch
            try:
                if turn.number == 0:
                    self._opened(request)
                early = len(self.measured[0].sizes) < SAMPLES
                began = clocks(early)
                feed = request.next_feed()
                self._check_size(feed)
            except StopIteration:
                self._exhausted(turn)
            except BaseException as error:
                self._failed(turn, SOURCE, error)
            else:
                self._sampled(0, feed, began, early)
                with self.lock:
                    self.longest = max(self.longest, turn.number + 1)
                    self.peak = max(self.peak, self.flow.allowance.total)
                    if self.flow.produced(turn, feed):
                        self.gates[0].wake()
                    elif self._barrier and self.flow.too_large(request):
                        self._refuse(request)
                    self._source.wake()
            del turn, request

    def _work(self, at: int) -> None:
        gate = self.gates[at]
        while (taken := self._taken(gate)) is not None:
            self._process(at, taken)
            del taken

    def _process(self, at: int, taken: Taken) -> None:
        """One feed through a stage, and through those that are fused with it."""
        feed = taken.feed
        while True:
            stage = self.stages[at]
            if taken.batch.over:
                with self.lock:
                    self.flow.given_up(taken)
                    self._source.wake()
                return
            early = len(self.measured[at + 1].sizes) < SAMPLES
            began = clocks(early)
            try:
                with single_threaded():
                    feed = stage.function(feed)
                check_result(stage.name, feed)
            except BaseException as error:
                self._failed(taken, stage.name, error)
                return
            self._sampled(at + 1, feed, began, early)
            if not self._fused[at]:
                break
            at += 1
        with self.lock:
            if self.flow.done(at, taken, feed):
                self._passed_on(at, taken)
            elif self._barrier and self.flow.too_large(taken.batch):
                self._refuse(taken.batch)
            else:
                self._source.wake()

    def _passed_on(self, at: int, taken: Taken) -> None:
        """Wake who may go on; the lock is held."""
        self._source.wake()
        if at + 1 < len(self.gates):
            self.gates[at + 1].wake()
        elif self.gathering is not None:
            taken.batch.arrived.notify()
        elif (whole := self.flow.whole_result()) is not None:
            self._settle(whole.batch, self._joined(whole.feed))

    def _exhausted(self, turn: Taken) -> None:
        request = turn.batch
        with self.lock:
            request.feeds = turn.number
            nothing = self.flow.exhausted(turn)
            for gate in self.gates:
                gate.wake()
            request.arrived.notify()
            self._source.wake()
            if self.gathering is not None or request.over:
                return
            if (whole := self.flow.whole_result()) is not None:
                self._settle(whole.batch, self._joined(whole.feed))
            elif nothing:
                self._settle(request, [])

    def _gathering(self, stage: Stage) -> Gathering:
        def failed(request: Request, error: BaseException) -> None:
            if error is not request.error:  # what it heard from here
                self._fail(request, stage.name, error)

        return Gathering(
            stage,
            self.flow,
            self.lock,
            self._start,
            self._source.wake,
            self._finish,
            failed,
        )

    # --- how requests begin and end

    def _opened(self, request: Request) -> None:
        with self.lock:
            request.opened = time.monotonic()
            if self.gathering is None or request.over:
                return
            self.gathering.opened(request)

    def _failed(self, taken: Taken, stage: str, error: BaseException) -> None:
        self._fail(taken.batch, stage, error)
        with self.lock:
            self.flow.given_up(taken)
            self._source.wake()

    def _fail(self, request: Request, stage: str, error: BaseException) -> None:
        if isinstance(error, ElsewhereError):
            error = error.error
        elif not isinstance(error, TooLargeError):
            reason = str(error) or type(error).__name__
            told = StageError(f"The stage `{stage}` failed: {reason}", stage)
            told.__cause__ = error
            error = told
        self._finish(request, error=error)

    def _give_up(self, request: Request) -> None:
        """The caller has cancelled it."""
        self._finish(request, error=StreamClosedError("The request was cancelled."))

    def _finish(
        self, request: Request, result: Any = None, error: BaseException | None = None
    ) -> None:
        with self.lock:
            self._settle(request, result, error)

    def _settle(
        self, request: Request, result: Any = None, error: BaseException | None = None
    ) -> None:
        """Free what a request holds and tell; the lock is held, and let go of meanwhile."""
        if request.over:
            return
        request.over, request.error = True, error
        if isinstance(error, RequestError):
            error.request = request.given
        self.flow.close(request)
        now = time.monotonic()
        opened = request.opened or now
        if error is None:
            self.arity.add(max(1, request.feeds), 0.0)
            self.latency.add(now - opened, 0.0)
        self._open.discard(request)
        if not self._open:
            self.busy += now - self.busy_since
        request.arrived.notify_all()
        self._changed.notify_all()
        self._source.wake()
        iterator, request.iterator = request.iterator, None
        answer, request.answer = request.answer, None  # a result is the caller's alone
        self.lock.release()
        try:
            # Callbacks of the caller may take their time, or submit more.
            del iterator
            if answer is not None:
                answer.settle(result, error)
            times = opened - request.submitted, now - opened
            self._tell(lambda at: RequestDone(at, request.number, *times, str(error or "")))
        finally:
            self.lock.acquire()

    def _refuse(self, request: Request) -> None:
        least = self.flow.allowance.least * self.partition
        error = TooLargeError(
            f"A request must have less than {least} feeds where all are aggregated, as so "
            "many may be under way of each that is open: give the stream more memory or "
            "feeds, or let fewer be open."
        )
        self._settle(request, error=error)

    def _check_size(self, feed: Any) -> None:
        """Hold feeds to the memory, from the first one on."""
        if self.room.memory is None:
            return
        if self._unfit is not None:
            raise TooLargeError(str(self._unfit))
        size = size_of(feed)
        allowance = self.flow.allowance
        most = self.room.memory // max(1, size)
        if most < (1 if self._sized else allowance.least):
            raise TooLargeError(
                f"{allowance.least} feeds must fit into the "
                f"{format_bytes(self.room.memory)} that the stream may take, but one has "
                f"{format_bytes(size)}: make feeds smaller, or give more memory."
            )
        if not self._sized:
            with self.lock:
                self._sized = True
                feeds = min(allowance.feeds or most, most)
                opened = min(allowance.batches, feeds // allowance.least)
                allowance.change(opened, feeds)

    # --- threads, and who wakes them

    def _start(self, function: Callable[..., None], name: str, *args: Any) -> None:
        name, work = f"mlopt-stream {name}", (function, *args)
        thread = threading.Thread(None, as_here(), name, work, daemon=True)
        thread.start()
        self._threads.append(thread)

    @staticmethod
    def _taken(gate: Gate) -> Taken | None:
        try:
            return gate.take()
        except StreamClosedError:
            return None

    # --- what is otherwise where stages run elsewhere

    def _cut(self, feeds: Iterator[Any]) -> Iterator[Any]:
        """What goes through the stages, of the feeds of a request."""
        return feeds

    def _joined(self, results: list[Any]) -> list[Any]:
        """The answer to a request, of what has come out of the last stage."""
        return results

    def _end(self) -> None:
        """Let go of what threads of the stream may wait for."""

    # --- measuring and choosing

    def _first_credits(self) -> Allowance:
        """Until stages are measured: room for each, and no more than there must be."""
        sizes = [stage.size for stage in self.stages]
        barrier = BARRIER in sizes
        least = least_feeds(sizes)
        opened = self.room.opened(OPEN, least)
        busy = 2 * sum(stage.replicas or 1 for stage in self.stages)
        feeds = self.room.feeds or (None if barrier else max(opened * least, busy))
        return Allowance(opened, feeds, least, not barrier)

    def _sampled(self, at: int, feed: Any, began: tuple[float, float], early: bool) -> None:
        measured, (ends, cpu) = self.measured[at], clocks(early)
        size = size_of(feed) if early else 0
        with self.lock:
            measured.add(ends - began[0], cpu - began[1])
            if early:
                measured.sizes.append(size)
        if self.tuned is None and at == len(self.stages):
            self.choose()

    def timed(self) -> list[Timed]:
        """The stages with what was measured of them so far."""
        timed = zip(self.stages, self.measured[1:], strict=True)
        return [
            Timed(SOURCE, *self.measured[0].usual()),
            *(Timed(s.name, *one.usual(), s.replicas, s.size) for s, one in timed),
        ]

    @property
    def usual_arity(self) -> float:
        """Feeds of a request: of those that were answered, or of the longest so far."""
        return self.arity.usual()[0] if self.arity.count else max(1.0, self.longest)

    def choose(self) -> None:
        """Choose replicas and credits, once enough was measured."""
        with self.lock:
            enough = all(
                one.count >= (SAMPLES if stage.size is None else 1)
                for one, stage in zip(self.measured[1:], self.stages, strict=True)
            )
            if self.tuned is not None or not enough:
                return
            try:
                self.tuned = tune(self.timed(), self.room, self.usual_arity)
            except TooLargeError as error:
                self._unfit = error
                return
            self._apply(self.tuned)

    def _apply(self, tuned: Tuned) -> None:
        self._fused = list(tuned.fused[1:])
        allowance = self.flow.allowance
        allowance.change(tuned.open, None if allowance.feeds is None else tuned.feeds)
        for _ in range(tuned.open):
            self._source.wake()
        with suppress(RuntimeError):  # no more threads: it goes on with those that it has
            for _ in range(min(tuned.replicas[0], tuned.open) - OPEN):
                self._start(self._make_feeds, SOURCE)
            for at, stage in enumerate(self.stages):
                for _ in range(tuned.replicas[at + 1] - (stage.replicas or 1)):
                    self._start(self._work, stage.name, at)

    def _waiter(self, name: str) -> Callable[[float], None]:
        def tell(seconds: float) -> None:
            if seconds >= TOLD:
                self._tell(lambda at: GateWaited(at, name, seconds))

        return tell

    def _tell(self, event: Callable[[float], Event]) -> None:
        with self._telling:
            try:
                self._observer(event(time.monotonic() - self.began))
            except Exception:  # of somebody who looks on: the stream goes on
                _log.exception("An observer of a stream failed.")


def size_of(feed: Any) -> int:
    """Bytes of a feed, about."""
    try:
        return memory_of(feed)
    except Exception:  # what objects of users say of themselves
        return 0
