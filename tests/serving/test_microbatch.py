"""The queue in front of a model: credits, order, and the size of calls."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlopt.serving.microbatch import MOST_ROWS, CallCost, Microbatches, Part, Request


def queue_of(rows_a_call: int, most_bytes: int = 100) -> Microbatches:
    """A queue whose calls take a second a row, within as many seconds as are needed."""
    queue = Microbatches(2.0 * rows_a_call, most_bytes)
    for rows in (1, 64):
        queue.cost.tried(rows, float(rows))
    assert queue.rows_a_call == rows_a_call
    return queue


def test_a_call_takes_as_many_rows_as_half_of_the_latency_allows() -> None:
    cost = CallCost()
    for rows in (1, 64, 1024):
        cost.tried(rows, 0.010 + 0.001 * rows)
    assert cost.line.b == pytest.approx(0.010)
    assert cost.rows(latency=0.101) == 40  # .010 + .001 * 40 = .05
    cost.saw(64, 2 * 0.074)  # with all that was done meanwhile
    assert cost.rows(latency=0.1001) == 15  # .020 + .002 * 15 = .05
    for _ in range(9):
        cost.saw(64, 9 * 0.074)
    assert cost.rows(latency=0.1) == 10  # never fewer than half of the best speed needs


def test_where_even_an_empty_call_is_late_half_of_the_best_speed_is_kept() -> None:
    cost = CallCost()
    for rows in (1, 64, 1024):
        cost.tried(rows, 1.0 + 0.01 * rows)
    rows = cost.rows(latency=0.1)
    assert rows / cost.line.at(rows) == pytest.approx(0.5 / 0.01, rel=0.02)


def test_a_cost_that_does_not_grow_still_bounds_a_call() -> None:
    cost = CallCost()
    cost.tried(1, 0.01)
    cost.tried(100, 0.01)
    assert cost.rows(0.1) == MOST_ROWS


def test_without_a_credit_a_request_is_refused_and_nothing_changes() -> None:
    queue = queue_of(4)
    requests = [Request("a", 3) for _ in range(3)]
    assert [queue.admit(request) for request in requests] == [True, True, False]
    assert (queue.open_rows, queue.open_requests, queue.waiting_rows) == (6, 2, 6)
    assert queue.admit(Request("a", 2))
    assert queue.full
    assert queue.retry_after == 8  # seconds that the 8 open rows take


def test_behind_a_call_of_few_rows_only_as_many_gather_as_the_next_one_takes() -> None:
    queue = queue_of(4)
    assert queue.admit(Request("a", 1))
    call = queue.take()
    assert [queue.admit(Request("a", 2)) for _ in range(3)] == [True, True, False]
    assert queue.full  # though 3 of its 8 credits are left
    queue.ended(call)
    assert not queue.full


def test_bytes_are_bounded_but_one_body_is_always_let_in() -> None:
    queue = queue_of(4, most_bytes=10)
    assert queue.reserve(50)
    assert not queue.reserve(1)
    queue.release(50)
    assert queue.reserve(6)
    assert not queue.reserve(5)
    assert queue.reserve(4)


def test_rows_of_different_groups_never_share_a_call_and_none_waits_for_ever() -> None:
    queue = queue_of(3)
    for group in "abab":
        assert queue.admit(Request(group, 1))
    groups = [{part.request.group for part in queue.take()} for _ in range(2)]
    assert groups == [{"a"}, {"b"}]
    assert queue.take() == []


def test_a_large_request_leaves_room_for_small_ones_between_its_calls() -> None:
    queue = queue_of(4)
    large, small = Request("a", 10), Request("a", 1)
    assert queue.admit(large)
    first = queue.take()
    assert queue.admit(small)
    assert [part.rows for part in first] == [4]
    assert queue.ended(first) == []
    second = queue.take()
    assert queue.open_rows == 5
    assert [(part.request, part.rows) for part in second] == [(small, 1), (large, 3)]
    over = queue.ended(second)
    while parts := queue.take():
        over += queue.ended(parts)
    assert over == [small, large]
    assert queue.open_rows == queue.open_requests == queue.waiting_rows == 0


def test_a_call_waits_for_clients_that_were_there_but_not_longer_than_it_gains() -> None:
    queue = Microbatches(1.0, 100)
    queue.cost.tried(1, 0.011)
    queue.cost.tried(64, 0.010 + 0.064)
    first, second = Request("a", 1), Request("a", 3)
    queue.admit(first)
    assert queue.wait(0.0, 0.0) == 0.0  # nobody else is known
    call = queue.take()
    queue.admit(second)
    queue.ended(call)  # there were four rows, and the client of one was just answered
    assert queue.wait(0.0, 0.0) == pytest.approx(0.010 / 3)  # three wait for one
    assert queue.wait(0.008, 0.0) == pytest.approx(0.002)
    assert queue.wait(0.0, 0.004) == 0.0
    queue.admit(Request("a", 1))
    assert queue.gathered
    assert queue.wait(0.0, 0.0) == 0.0
    queue.ended(queue.take())
    queue.admit(Request("a", 2))
    assert queue.wait(0.0, 0.0) > 0.0
    queue.ended(queue.take())
    queue.admit(Request("a", 2))
    assert queue.wait(0.0, 0.0) == 0.0  # those who did not come back are not expected


class Played:
    """A queue that is used at random, and what came of it."""

    def __init__(self, rows_a_call: int) -> None:
        self.queue = queue_of(rows_a_call)
        self.live: list[Request] = []
        self.ran: dict[Request, list[int]] = {}
        self.over: list[Request] = []
        self.calls: list[list[Part]] = []

    def admit(self, group: str, rows: int) -> None:
        request = Request(group, rows)
        if self.queue.admit(request):
            self.live.append(request)
            self.ran[request] = []

    def take(self) -> bool:
        parts = self.queue.take()
        assert len({part.request.group for part in parts}) <= 1
        assert sum(part.rows for part in parts) <= self.queue.rows_a_call
        self.calls += [parts] if parts else []
        return bool(parts)

    def end(self, number: int) -> None:
        parts = self.calls.pop(number)
        for part in parts:
            self.ran[part.request] += range(part.begin, part.end)
        self.over += self.queue.ended(parts)

    def check(self) -> None:
        queue = self.queue
        assert queue.open_rows == sum(request.credits for request in self.live)
        assert queue.open_rows <= queue.credits
        waits = (r.rows - r.begun for r in self.live if not (r.given_up or r.running))
        assert queue.waiting_rows == sum(waits)


@given(st.integers(0, 1 << 30), st.integers(1, 6))
def test_no_schedule_loses_a_row_or_a_credit(seed: int, rows_a_call: int) -> None:
    draw, played = random.Random(seed), Played(rows_a_call)
    for _ in range(60):
        act = draw.randrange(7)
        if act < 2:
            played.admit(draw.choice("ab"), draw.randint(1, 9))
        elif act < 4 and len(played.calls) < 2:
            played.take()
        elif act < 6 and played.calls:
            played.end(draw.randrange(len(played.calls)))
        elif act == 6 and played.live:
            played.queue.give_up(draw.choice(played.live))
        played.check()
    while played.calls or played.take():
        played.end(0)
    queue = played.queue
    assert (queue.open_rows, queue.open_requests, queue.waiting_rows) == (0, 0, 0)
    for request in played.live:
        rows = sorted(played.ran[request])
        assert len(rows) == len(set(rows))
        assert request.given_up or rows == list(range(request.rows))
        assert request.given_up or played.over.count(request) == 1
