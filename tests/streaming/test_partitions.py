"""Partitions of requests join to what each gives alone."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlopt.errors import InputError
from mlopt.streaming.credits import BARRIER, Allowance, Ledger, Taken
from mlopt.streaming.flow import Flow, least_feeds
from mlopt.streaming.phases import check_partition

small = st.integers(1, 5)


def groups_of(feeds: int, size: int, inner: int) -> list[int]:
    """Of each partition of ``size`` feeds: how many aggregates of ``inner`` it holds."""
    parts = [min(size, feeds - at) for at in range(0, feeds, size)]
    return [-(-part // inner) for part in parts]


class World:
    """A global gate cuts requests into partitions; two local pipelines work on them; the
    next global gate joins them and gives credits back.
    """

    def __init__(self, arities: list[int], size: int, inner: int, seed: int) -> None:
        self.arities, self.size, self.inner = arities, size, inner
        self.random = random.Random(seed)
        self.allowance = Allowance(2)
        self.cutting = Ledger(size, self.allowance)
        self.join = Ledger(BARRIER)
        least = least_feeds([inner])
        self.locals = [Flow([inner], Allowance(2, 2 * least, least)) for _ in "ab"]
        self.busy: list[list[tuple[Any, Taken]]] = [[], []]
        self.feeds: dict[Any, list[Any]] = {}
        self.waiting = [(r, k) for r, n in enumerate(arities) for k in range(n)]
        self.random.shuffle(self.waiting)
        for request, arity in enumerate(arities):
            self.cutting.end(request, arity)
            self.join.end(request, sum(groups_of(arity, size, inner)))
        self.results: dict[int, list[Any]] = {}

    def step(self) -> bool:
        moves: list[Any] = [lambda: self._put(self.waiting.pop())] if self.waiting else []
        for number, local in enumerate(self.locals):
            if len(local.allowance.used) < 2 and (part := self.cutting.take()):
                self._enter(local, part)
            if turn := local.turn():
                self.busy[number].append((self._produce, turn))
            if taken := local.take(0):
                self.busy[number].append((self._work, taken))
            moves += [lambda n=number: self._go(n)] * bool(self.busy[number])
        if moves:
            self.random.choice(moves)()
        assert len(self.allowance.used) <= 2
        return bool(moves)

    def _put(self, feed: tuple[int, int]) -> None:
        self.cutting.put(feed[0], feed[1], feed)

    def _enter(self, local: Flow, part: Taken) -> None:
        # The partition is a batch of its own from here to the join.
        self.feeds[part.batch, part.number] = part.feed
        local.submit((part.batch, part.number))

    def _go(self, number: int) -> None:
        busy = self.busy[number]
        do, taken = busy.pop(self.random.randrange(len(busy)))
        local = self.locals[number]
        do(local, taken)
        while whole := local.whole_result():
            local.close(whole.batch)
            request, partition = whole.batch
            before = groups_of(self.arities[request], self.size, self.inner)[:partition]
            for k, result in enumerate(whole.feed):
                self.join.put(request, sum(before) + k, result)
        while joined := self.join.take():
            self.results[joined.batch] = joined.feed
            self.allowance.close(joined.batch)

    def _produce(self, local: Flow, turn: Taken) -> None:
        feeds = self.feeds[turn.batch]
        if turn.number < len(feeds):
            local.produced(turn, feeds[turn.number])
        else:
            local.exhausted(turn)

    def _work(self, local: Flow, taken: Taken) -> None:
        local.done(0, taken, tuple(taken.feed))


def run(arities: list[int], size: int, inner: int, seed: int) -> dict[int, list[Any]]:
    world = World(arities, size, inner, seed)
    for _ in range(4000):
        if not world.step():
            break
    assert not world.allowance.used, "a request never balances"
    return world.results


def alone(request: int, arity: int, size: int, inner: int) -> list[Any]:
    feeds = [(request, k) for k in range(arity)]
    parts = [feeds[at : at + size] for at in range(0, arity, size)]
    return [
        tuple(part[at : at + inner]) for part in parts for at in range(0, len(part), inner)
    ]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=4), small, small, st.integers(0))
def test_partitions_of_many_requests_join_to_what_each_gives_alone(
    arities: list[int], size: int, inner: int, seed: int
) -> None:
    results = run(arities, size, inner, seed)
    for request, arity in enumerate(arities):
        assert results[request] == alone(request, arity, size, inner)


def test_the_arity_of_the_paper_never_balances(monkeypatch: pytest.MonkeyPatch) -> None:
    def divided(feeds: int, size: int, inner: int) -> list[int]:
        return [-(-feeds // inner)]

    monkeypatch.setitem(run.__globals__, "groups_of", divided)
    with pytest.raises((AssertionError, InputError)):
        run([10], 3, 2, 0)


def test_partitions_that_would_change_aggregates_are_refused() -> None:
    check_partition(20, 10, 2)
    with pytest.raises(InputError, match="whole aggregates: 3 do not divide 10"):
        check_partition(10, 3)
    with pytest.raises(InputError, match="2 do not divide 3"):
        check_partition(30, 10, 2)


@pytest.mark.parametrize(
    "give",
    [
        lambda: Allowance(0),
        lambda: Allowance(2, 3, 2),
        lambda: Ledger(0),
    ],
)
def test_credits_below_what_is_needed_are_refused(give: Any) -> None:
    with pytest.raises(InputError, match="at least"):
        give()


def test_what_a_stage_must_not_send_is_named() -> None:
    ledger = Ledger(2)
    ledger.put("a", 0, "x")
    with pytest.raises(InputError, match="came twice"):
        ledger.put("a", 0, "x")
    ledger.end("a", 2)
    ledger.put("a", 1, "y")
    ledger.put("b", 0, "x")
    with pytest.raises(InputError, match="one more"):
        ledger.put("a", 2, "z")
    with pytest.raises(InputError, match="of 0 feeds got 1"):
        ledger.end("b", 0)
