"""The queue in front of a model in simulated time: who is let in or waited for."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlopt.serving.microbatch import Microbatches, Request

LATENCY = 0.1
FIXED, ROW, ANSWER, REFUSE = 0.008, 5e-5, 2.5e-4, 3e-5
"""Seconds of a call, of a row in it, and of the event loop for an answer and a refusal."""
TURN = 32
"""Requests that the event loop answers before it looks for others."""


def queue_of(fixed: float = FIXED, row: float = ROW) -> Microbatches:
    queue = Microbatches(LATENCY, 100)
    for rows in (1, 64, 1024):
        queue.cost.tried(rows, fixed + row * rows)
    return queue


class Simulated:
    """A service in simulated time: an event loop, and one thread that calls.

    Parameters
    ----------
    slower : float
        How much longer all takes than when it was tried.
    waits : bool
        Whether calls wait for clients that may come back.
    again : callable or None
        Seconds until a client that was answered or refused asks again.
    """

    def __init__(
        self,
        *,
        slower: float = 1.0,
        waits: bool = True,
        again: Callable[[], float] | None = None,
    ) -> None:
        self.queue, self.slower, self.waits, self.again = queue_of(), slower, waits, again
        self.accepted: list[float] = []
        self.refused: list[float] = []
        self.now = self.worked = self.since = self.came = self.slept = 0.0
        self.slowest = 0.0
        self.running = False
        self.timer = 0
        self._events: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._number = 0

    def at(self, time: float, what: Callable[[Any], None], given: Any = None) -> None:
        self._number += 1
        heapq.heappush(self._events, (time, self._number, what, given))

    def run(self, seconds: float) -> None:
        """Events come in order; the loop may be late for them."""
        while self._events and self._events[0][0] < seconds:
            time, _, what, given = heapq.heappop(self._events)
            self.now = max(self.now, time)
            what(given if given is not None else time)

    def work(self, seconds: float) -> None:
        """The event loop is busy."""
        self.worked += seconds
        self.now += self.slower * seconds

    def begin(self) -> None:
        """A call begins to gather."""
        self.since, self.worked = self.now, 0.0

    def ask(self, since: float) -> None:
        if self.queue.full or not self.queue.admit(request := Request(0, 1, since)):
            self.queue.refuse()
            self.work(REFUSE)
            self.refused.append(self.now - since)
            self.back()
            return
        self.work(ANSWER / 2)
        self.came = self.now
        if not self.running:
            if self.queue.waiting_rows == request.rows:
                self.since = self.now
            self.start(None)

    def back(self) -> None:
        if self.again is not None:
            self.at(self.now + self.again(), self.ask)

    def start(self, timer: int | None) -> None:
        if self.running or timer not in (None, self.timer):
            return
        self.timer += 1
        wait = self.queue.wait(self.now - self.since, self.now - self.came)
        if self.waits and wait > 1e-9:
            self.slept = self.slept or self.now
            self.at(self.now + wait, self.start, self.timer)
            return
        waited, self.slept = self.now - self.slept if self.slept else 0.0, 0.0
        self.since += waited
        if parts := self.queue.take(waited):
            self.running = True
            taken = self.slower * (FIXED + ROW * sum(part.rows for part in parts))
            self.at(self.now + taken, self.ended, parts)

    def ended(self, parts: Any) -> None:
        self.running = False
        rows = sum(part.rows for part in parts)
        self.queue.cost.saw(rows, self.now - self.since, self.worked)
        self.begin()
        opened = max(part.request.among for part in parts)
        self.answer((opened, self.queue.ended(parts)))
        self.start(None)

    def answer(self, given: tuple[int, list[Request]]) -> None:
        """Some of those that a call was for, then others that have come meanwhile."""
        opened, requests = given
        for request in requests[:TURN]:
            self.work(ANSWER / 2)
            self.accepted.append(self.now - request.content)
            self.slowest = max(self.slowest, self.accepted[-1])
            self.back()
        self.came = self.now
        if requests[TURN:]:
            self.at(self.now, self.answer, (opened, requests[TURN:]))
        else:
            self.queue.waits.took(opened, self.slowest)
            self.slowest = 0.0


def p99(values: list[float]) -> float:
    return sorted(values)[int(0.99 * len(values))]


def arrive(
    simulated: Simulated, rate: float, seconds: float, seed: int = 0, begin: float = 0.0
) -> None:
    """Requests of clients that know nothing of each other, from ``begin`` on."""
    draw, time = random.Random(seed), begin
    while time < seconds:
        simulated.at(time, simulated.ask)
        time += draw.expovariate(rate)
    simulated.run(seconds)


def test_three_times_too_many_are_refused_at_once_and_those_let_in_are_in_time() -> None:
    for slower in (1.0, 2.0):
        simulated = Simulated(slower=slower)
        capacity = 1 / (slower * (ROW + ANSWER))
        arrive(simulated, 3 * capacity, 4.0)
        steady = simulated.accepted[len(simulated.accepted) // 2 :]
        assert p99(steady) < 1.2 * LATENCY
        assert p99(simulated.refused[len(simulated.refused) // 2 :]) < 0.05
        assert len(simulated.accepted) > 4.0 * capacity / 2


def test_three_times_too_many_make_those_let_in_wait_three_times_as_long_at_most() -> None:
    for clients, slower in ((64, 1.0), (64, 1.5), (100, 1.0)):
        simulated = Simulated(again=lambda: 0.001)
        for client in range(clients):
            simulated.at(1e-6 * client, simulated.ask)
        simulated.run(1.0)
        assert not simulated.refused
        usual, answered = p99(simulated.accepted), len(simulated.accepted)
        simulated.again, simulated.slower = None, slower
        arrive(simulated, 3 * answered, 1.5, begin=1.0)  # until it shows
        simulated.accepted, simulated.refused = [], []
        arrive(simulated, 3 * answered, 2.5, begin=1.5)
        assert p99(simulated.accepted) < 3 * usual
        assert p99(simulated.refused) < 0.05
        assert len(simulated.accepted) > 0.9 * answered / slower


def test_once_the_overload_is_over_as_many_are_let_in_as_before() -> None:
    simulated = Simulated()
    arrive(simulated, 1000.0, 2.0)
    before = simulated.queue.credits
    simulated.slower = 2.0
    arrive(simulated, 9000.0, 4.0, begin=2.0)
    assert simulated.queue.credits < 0.8 * before
    simulated.slower = 1.0
    arrive(simulated, 1000.0, 6.0, begin=4.0)
    assert simulated.queue.credits == pytest.approx(before, rel=0.1)


def test_as_many_clients_as_a_call_takes_are_all_let_in_from_the_first_request_on() -> None:
    simulated = Simulated(slower=4.0, again=lambda: 0.001)
    for client in range(40):
        simulated.at(1e-6 * client, simulated.ask)
    simulated.run(10.0)
    assert len(simulated.accepted) > 1000
    assert not simulated.refused


def test_a_service_that_is_slower_than_it_was_tried_lets_fewer_in() -> None:
    credits = []
    for slower in (1.0, 2.0, 4.0):
        simulated = Simulated(slower=slower)
        arrive(simulated, 3 / (slower * (ROW + ANSWER)), 4.0)
        credits.append(simulated.queue.credits)
    assert credits[0] > 1.25 * credits[1] > 1.5 * credits[2]
    assert credits[2] > 8  # late anyhow, but calls of few rows would make it later


@given(
    st.lists(
        st.tuples(st.integers(1, 5000), st.floats(0, 1e3), st.floats(0, 1e3)), max_size=20
    ),
    st.floats(0, 10),
    st.floats(0, 1),
    st.integers(1, 100_000),
)
@example([(1, 1.0, 0.0)], 0.0, 5e-324, 1)
def test_a_client_alone_is_never_refused(
    calls: list[tuple[int, float, float]], fixed: float, row: float, rows: int
) -> None:
    queue = queue_of(fixed, row)
    for call in calls:
        queue.cost.saw(*call)
        assert not queue.full
    assert queue.admit(Request(0, rows))


def test_waiting_adds_next_to_nothing_where_clients_do_not_come_back() -> None:
    for rate in (20, 100, 300, 1000):
        taken = []
        for waits in (True, False):
            simulated = Simulated(waits=waits)
            arrive(simulated, rate, 3000 / rate)
            assert not simulated.refused
            taken.append(sum(simulated.accepted) / len(simulated.accepted))
        assert taken[0] < 1.06 * taken[1]


def test_waiting_answers_a_third_more_to_clients_that_come_back_at_once() -> None:
    done = []
    for waits in (True, False):
        draw = random.Random(0)
        again = partial(draw.expovariate, 2000.0)
        simulated = Simulated(waits=waits, again=again)
        for client in range(8):
            simulated.at(0.01 * draw.random() + client * 1e-6, simulated.ask)
        simulated.run(5.0)
        done.append(len(simulated.accepted))
    assert done[0] > 1.3 * done[1]
