"""The ledgers of a stream keep their laws whatever happens when; and the tests notice where
they would not.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.streaming.schedules import Case, Run

from mlopt.streaming.credits import BARRIER, Allowance, Ledger, Taken
from mlopt.streaming.flow import Flow

SCHEDULES = 10_000 if "MLOPT_JUDGE_EXAMPLES" in os.environ else 300
"""All of them in `make compat`: half a minute."""

sizes = st.sampled_from([None, None, 1, 2, 3, BARRIER])
fates = st.sampled_from(["fine", "fine", "fine", "fails", "breaks", "cancelled"])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    arities = draw(st.lists(st.integers(0, 9), min_size=1, max_size=6))
    whens = [draw(st.integers(0, 9)) for _ in arities]
    return Case(
        sizes=tuple(draw(st.lists(sizes, min_size=1, max_size=3))),
        arities=tuple(arities),
        fates=tuple((draw(fates), when) for when in whens),
        open=draw(st.integers(1, 4)),
        spare=draw(st.integers(0, 5)),
        replicas=draw(st.integers(1, 3)),
        whole=draw(st.booleans()),
        seed=draw(st.integers(0, 1 << 32)),
    )


@settings(max_examples=SCHEDULES)
@given(cases())
def test_any_schedule_gives_each_request_what_it_gives_alone_within_its_credits(
    case: Case,
) -> None:
    Run(case).go()


class OpensWithoutCredit(Allowance):
    @property
    def may_open(self) -> bool:
        return True


class FeedsWithoutCredit(Allowance):
    def may_feed(self, batch: Hashable) -> bool:
        return True


class KeepsCredits(Allowance):
    """A batch that closes gives its credit back only if no feed was given back before."""

    def close(self, batch: Hashable) -> None:
        self.back(batch, self.used[batch])
        self.used[batch] = 0


class GroupsByArrival(Ledger):
    """Aggregates hold what comes first, whichever it is."""

    def put(self, batch: Hashable, index: int, feed: Any) -> bool:
        one = self.batches.get(batch)
        return super().put(batch, index if self.size is None or not one else one.got, feed)


class LosesTheRest(Ledger):
    """The last aggregate of a batch, which is not full, never goes on."""

    def end(self, batch: Hashable, arity: Any) -> Any:
        if self.size in (None, BARRIER):
            return super().end(batch, arity)
        assert self.size is not None
        return super().end(batch, arity // self.size * self.size)


class GivesTwice(Ledger):
    """The last feed of a batch that waits is given again."""

    def _give(self, one: Any) -> Taken:
        before = one.ready[0]
        taken = super()._give(one)
        if self.rounds == 3:
            one.ready.append(before)
            self.buffered += taken.held
        return taken


class ForgetsToList(Ledger):
    """A batch that had nothing to give for a while is not listed again."""

    @staticmethod
    def _first(batches: Any) -> Any:
        while batches:
            one = batches[0][1]
            if one.ready:
                return one
            batches.pop(0)
        return None


class ForgetsToEntitle(Ledger):
    """A batch behind others that had nothing to give is not asked for what it may give."""

    def _list(self, one: Any) -> None:
        if not one.listed:
            super()._list(one)


class LeaksAFailure(Flow):
    """What is under way of a request that failed keeps its credits."""

    def given_up(self, taken: Taken) -> None:
        del taken


class TakesInTheDead(Flow):
    """A result of a request that is over begins it anew."""

    def _alive(self, taken: Taken) -> bool:
        super()._alive(taken)
        return True


class CountsAggregatesOnce(Flow):
    """Feeds that were aggregated are under way for ever but one."""

    def done(self, stage: int, taken: Taken, result: Any) -> bool:
        return super().done(stage, taken._replace(held=1), result)


def _flow(
    ledger: type[Ledger] = Ledger,
    allowance: type[Allowance] = Allowance,
    flow: type[Flow] = Flow,
) -> Any:
    def make(sizes: Any, given: Allowance, whole: bool) -> Flow:
        assert given.feeds is not None
        swapped = allowance(given.batches, given.feeds, given.least)
        made = flow(sizes, swapped, whole)
        made.ingress = ledger(allowance=swapped)
        made.gates = [ledger(size) for size in sizes]
        made.egress = ledger(made.egress.size)
        made._path = [*made.gates, made.egress]
        return made

    return make


MUTANTS = {
    "opens without a credit": _flow(allowance=OpensWithoutCredit),
    "feeds without a credit": _flow(allowance=FeedsWithoutCredit),
    "keeps credits of what closed": _flow(allowance=KeepsCredits),
    "groups by arrival": _flow(GroupsByArrival),
    "loses the last aggregate": _flow(LosesTheRest),
    "gives a feed twice": _flow(GivesTwice),
    "forgets to list a batch again": _flow(ForgetsToList),
    "forgets what a batch may give": _flow(ForgetsToEntitle),
    "leaks credits of failures": _flow(flow=LeaksAFailure),
    "takes in the dead": _flow(flow=TakesInTheDead),
    "keeps credits of aggregates": _flow(flow=CountsAggregatesOnce),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_ledger_is_found(mutant: str) -> None:
    found: list[BaseException] = []

    @settings(max_examples=300, derandomize=True, database=None)
    @given(cases())
    def hunt(case: Case) -> None:
        if found:
            return
        try:
            Run(case, MUTANTS[mutant]).go()
        except Exception as error:
            found.append(error)

    hunt()
    assert found, f"no schedule tells that a ledger {mutant}"
    assert not isinstance(found[0], AttributeError | NameError | TypeError), found
