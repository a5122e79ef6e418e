"""Random schedules of a stream's ledgers, and what must hold after each event.

What runs when is drawn; there are no threads and no clocks, so a schedule is its seed. The
judge is brute force: each request alone, as a list.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.streaming.fates import is_idle

from mlopt.streaming.credits import BARRIER, Allowance, Taken
from mlopt.streaming.flow import Flow, least_feeds

STEPS = 5000
"""Events of a schedule, far beyond what one of ours has."""


@dataclass(frozen=True)
class Case:
    """A stream, its requests, and by which seed things happen.

    ``fates``: of each request "fine", "fails" at its feed ``when``, is "cancelled" after
    ``when`` events, or its source "breaks" at feed ``when``.
    """

    sizes: tuple[int | None, ...]
    arities: tuple[int, ...]
    fates: tuple[tuple[str, int], ...]
    open: int
    spare: int
    replicas: int
    whole: bool
    seed: int


def alone(sizes: Sequence[int | None], request: int, arity: int) -> list[Any]:
    """What the stages make of one request that has the stream for itself."""
    feeds: list[Any] = [(request, k) for k in range(arity)]
    for stage, size in enumerate(sizes):
        if size is not None:
            feeds = [feeds[at : at + size] for at in range(0, len(feeds), size)]
        feeds = [(stage, feed) for feed in feeds]
    return feeds


@dataclass
class Run:
    """One schedule, step by step."""

    case: Case
    make: Callable[..., Flow] = Flow
    answers: dict[Hashable, list[Any]] = field(default_factory=dict)
    parts: dict[Hashable, list[Any]] = field(default_factory=dict)
    over: set[Hashable] = field(default_factory=set)

    def __post_init__(self) -> None:
        case = self.case
        barrier = any(size == BARRIER for size in case.sizes)
        least = max([least_feeds(case.sizes)] + [a + 1 for a in case.arities if barrier])
        feeds = case.open * least + (0 if barrier else case.spare)
        self.flow = self.make(
            case.sizes, Allowance(case.open, feeds, least, not barrier), case.whole
        )
        self.random = random.Random(case.seed)
        self.turns: list[Taken] = []
        self.working: list[list[Taken]] = [[] for _ in case.sizes]
        self.gathering: dict[Hashable, Taken] = {}
        self.waiting = list(range(len(case.arities)))

    def go(self) -> None:
        """Until nothing can happen; then everything must have."""
        for step in range(STEPS):
            self._cancel_at(step)
            actions = self._actions()
            if not actions:
                break
            self.random.choice(actions)()
            self._check_bounds()
        self._check_end()

    def _actions(self) -> list[Callable[[], None]]:
        """What could happen next; to look whether something may be taken takes it."""
        actions: list[Callable[[], None]] = []
        if not self.case.whole:
            for request in self.flow.allowance.used.keys() - self.over:
                self._gather(request)
        if self.waiting:
            actions.append(self._submit)
        if len(self.turns) < self.case.replicas:
            if turn := self.flow.turn():
                self.turns.append(turn)
            else:
                self._check_nothing_may_go_on()
        for stage, busy in enumerate(self.working):
            if len(busy) < self.case.replicas and (taken := self.flow.take(stage)):
                assert taken.batch not in self.over, "a request that is over went on"
                busy.append(taken)
        actions += [partial(self._produce, n) for n in range(len(self.turns))]
        for stage, busy in enumerate(self.working):
            actions += [partial(self._work, stage, n) for n in range(len(busy))]
        actions += [partial(self._consume, r) for r in self.gathering]
        return actions

    def _submit(self) -> None:
        self.flow.submit(self.waiting.pop(0))

    def _produce(self, number: int) -> None:
        turn = self.turns.pop(number)
        request = turn.batch
        fate, when = self.case.fates[request]
        if request in self.over:
            self.flow.given_up(turn)
        elif fate == "breaks" and turn.number == when:
            self._end(request)
            self.flow.given_up(turn)
        elif turn.number < self.case.arities[request]:
            self.flow.produced(turn, (request, turn.number))
        elif self.flow.exhausted(turn) and self.case.whole:
            self._answer(request, [])
        self._collect()

    def _work(self, stage: int, number: int) -> None:
        taken = self.working[stage].pop(number)
        fate, when = self.case.fates[taken.batch]
        if taken.batch in self.over:
            self.flow.given_up(taken)
        elif fate == "fails" and stage == 0 and taken.number == when:
            self._end(taken.batch)
            self.flow.given_up(taken)
        else:
            self.flow.done(stage, taken, (stage, taken.feed))
        self._collect()

    def _collect(self) -> None:
        while self.case.whole and (whole := self.flow.whole_result()):
            self._answer(whole.batch, whole.feed)

    def _gather(self, request: Hashable) -> None:
        if request in self.gathering:
            return
        if taken := self.flow.next_result(request):
            self.gathering[request] = taken
        elif self.flow.complete(request):
            self._answer(request, self.parts.pop(request, []))

    def _consume(self, request: Hashable) -> None:
        taken = self.gathering.pop(request)
        self.parts.setdefault(request, []).extend(taken.feed)
        self.flow.consumed(taken)

    def _answer(self, request: Hashable, results: list[Any]) -> None:
        assert request not in self.over, "a request was answered twice"
        self.answers[request] = results
        self._end(request)

    def _end(self, request: Hashable) -> None:
        self.over.add(request)
        self.flow.close(request)

    def _cancel_at(self, step: int) -> None:
        for request, (fate, when) in enumerate(self.case.fates):
            begun = request not in self.waiting and request not in self.over
            if fate == "cancelled" and when <= step and begun:
                self._end(request)
                if taken := self.gathering.pop(request, None):
                    self.flow.given_up(taken)

    def _check_bounds(self) -> None:
        allowance, flow = self.flow.allowance, self.flow
        assert len(allowance.used) <= self.case.open, "more open than credits"
        assert allowance.feeds is not None
        assert allowance.total <= allowance.feeds, "more feeds under way than credits"
        held = sum(taken.held for busy in self.working for taken in busy)
        held += len(self.turns) + len(self.gathering)
        held += sum(gate.buffered for gate in flow.gates)
        if not self.case.whole:  # whole results are the caller's
            held += flow.egress.buffered
        assert held == allowance.total, "credits are not those of the feeds held"

    def _check_nothing_may_go_on(self) -> None:
        allowance = self.flow.allowance
        for request, batch in self.flow.ingress.batches.items():
            opened = request in allowance.used
            may = allowance.may_feed(request) if opened else allowance.may_open
            assert not (batch.ready and may), "what may go on waits"

    def _check_end(self) -> None:
        flow, case = self.flow, self.case
        assert not self.waiting
        assert self.over == set(range(len(case.arities))), "a request waits for ever"
        for request, (fate, when) in enumerate(case.fates):
            arity = case.arities[request]
            worked_on = -(-arity // (case.sizes[0] or 1))
            dies = {"fails": when < worked_on, "breaks": when <= arity}.get(fate, False)
            if fate != "cancelled":
                assert (request in self.answers) != dies, "the wrong request failed"
            if request in self.answers:
                right = alone(case.sizes, request, arity)
                assert self.answers[request] == right, "not what it gives alone"
        assert is_idle(flow), "credits did not come back"
        assert not flow.dead
        assert all(
            not one.batches and not one.buffered for one in [*flow.gates, flow.egress]
        )
        assert flow.allowance.total == 0
