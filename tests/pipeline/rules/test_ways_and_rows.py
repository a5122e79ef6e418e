"""Ways and kept rows are one choice: a way is priced with what its passes make anew."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.graphs import DATA, scaled, union

from mlopt.costs import Fit as Line
from mlopt.pipeline.fits.base import Fit, Layout, ManyPasses, OnePass
from mlopt.pipeline.graph.operators import Learn, Operator
from mlopt.pipeline.graph.schedule import Timetable
from mlopt.pipeline.graph.walking import walk
from mlopt.pipeline.planning.optimizer import is_same
from mlopt.pipeline.profiling.profile import Measure, Option, Profile
from mlopt.pipeline.rules.base import Context, Draft
from mlopt.pipeline.rules.choose_ways import WaySearch, choose_ways, possible
from mlopt.pipeline.rules.convert_layouts import convert_layouts
from mlopt.pipeline.rules.engine import MARGIN, Engine
from mlopt.pipeline.rules.keep_results import keep_results
from mlopt.resources import Resources
from mlopt.stats import Stats

LAZY = replace(DATA, lazy=True)
ROWS = 1000


class Often(ManyPasses):
    """Reads again and again."""

    def __init__(self, name: str = "often", needs: Layout = "any") -> None:
        self.name, self.needs = name, needs

    def fit(self, *_: Any) -> Any:
        raise NotImplementedError


class Once(OnePass):
    """Adds up."""

    name = "once"

    def part(self, *_: Any) -> Any:
        raise NotImplementedError

    def merge(self, *_: Any) -> Any:
        raise NotImplementedError

    def finish(self, *_: Any) -> Any:
        raise NotImplementedError


def measured(
    sinks: Sequence[Operator],
    seconds: dict[str, float],
    sizes: dict[str, float],
    *,
    sparse: bool = False,
) -> Profile:
    """What each step's rows take, by its name; one block, no overhead of tasks."""
    found = Profile(ROWS, 1, 1, Resources(workers=1, threads=1, bandwidth=1e6, task=0.0))
    for op in walk(sinks):
        took, size = seconds.get(op.step, 0.0), sizes.get(op.step, 0.0)
        stats = Stats(ROWS, 100, sparse=sparse, density=0.01 if sparse else 1.0)
        lines = Line.of([ROWS], [took]), Line.of([ROWS], [size])
        found.measures[op.token] = Measure(*lines, stats)
    return found


def offered(found: Profile, op: Learn, *ways: tuple[Fit | None, float, float]) -> None:
    """Ways of learning: (way, own seconds, passes)."""
    found.options[op.token] = tuple(
        Option(way, way.name, seconds, passes)
        if way
        else Option(None, "scikit-learn", seconds, memory=16 * ROWS)
        for way, seconds, passes in ways
    )


FEATURES = scaled("features", LAZY)
LAST = Learn("last", object, FEATURES)
QUICK, SLOW = Often("ten quick passes"), Often("one slow pass")


def planned(budget: int, *ways: tuple[Fit | None, float, float]) -> Draft:
    found = measured([LAST], {"features": 4.0}, {"features": 8e6, "X": 8e6})
    offered(found, LAST, *ways)
    context = Context(found, budget, passes=found.passes)
    draft = Draft((LAST,))
    for rule in (choose_ways, convert_layouts, keep_results):
        draft = rule(draft, context)
        assert is_same(Draft((LAST,)), draft)
    return draft


def way_of(draft: Draft) -> Any:
    (last,) = draft.sinks
    assert isinstance(last, Learn)
    return last.way


BOTH = (QUICK, 0.2, 10.0), (SLOW, 1.5, 1.0)


def test_many_quick_passes_over_rows_made_anew_lose_to_one_slow_pass() -> None:
    draft = planned(0, *BOTH)
    assert way_of(draft) is SLOW
    assert draft.kept == frozenset()


def test_many_quick_passes_over_kept_rows_win() -> None:
    draft = planned(10**7, *BOTH)
    assert way_of(draft) is QUICK
    assert FEATURES.token in draft.kept


def test_rows_that_are_kept_in_part_count_in_part() -> None:
    """Whether passes are cheap enough depends on how much of their input is there."""
    found = measured([LAST], {"features": 4.0}, {"features": 8e6, "X": 8e6})
    found.blocks = 100
    offered(found, LAST, *BOTH)
    chosen = {}
    for budget in (4_000_000, 8_100_000):
        context = Context(found, budget, passes=found.passes)
        chosen[budget] = way_of(choose_ways(Draft((LAST,)), context))
    assert chosen == {4_000_000: SLOW, 8_100_000: QUICK}


def test_rows_are_not_gathered_where_the_budget_holds_none_and_need_not_be() -> None:
    gathered = (None, 0.1, 1.0)
    assert way_of(planned(10**7, BOTH[1], gathered)) is None
    assert way_of(planned(8_000, BOTH[1], gathered)) is SLOW
    assert way_of(planned(0, gathered)) is None


def test_a_price_is_what_the_way_adds_with_all_that_makes_its_input() -> None:
    draft = planned(0, *BOTH, (None, 3.0, 1.0))
    ((token, prices),) = draft.prices
    assert token == LAST.token
    # Ten passes and one, after a look at the rows.
    assert prices[:2] == pytest.approx((0.2 + 11 * 4.0, 1.5 + 2 * 4.0), rel=1e-3)
    assert prices[2] is None  # it would gather what may not be kept


@pytest.mark.parametrize(("factor", "expected"), [(1.0, "sparse"), (1e-4, "dense")])
def test_what_a_conversion_takes_counts_for_the_way_that_needs_it(
    factor: float, expected: str
) -> None:
    """.8 MB at 1 MB/s, to be read and written in each of eleven passes."""
    dense, any_ = Often("dense", "dense"), Often("sparse")
    found = measured([LAST], {}, {"features": 1e4}, sparse=True)
    found = replace(found, resources=replace(found.resources, bandwidth=1e6 / factor))
    offered(found, LAST, (dense, 1.0, 10.0), (any_, 2.0, 10.0))
    context = Context(found, 0, passes=found.passes)
    assert way_of(choose_ways(Draft((LAST,)), context)).name == expected


_times = st.sampled_from([0.0, 0.1, 1.0, 3.0])
_kinds = st.sampled_from([None, Once(), Often("a"), Often("b"), Often("c", "dense")])


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Operator, Profile]:
    """Up to five steps behind each other or side by side, a model behind the last."""
    rows: list[Operator] = [LAZY]
    for number in range(draw(st.integers(1, 4))):
        x = draw(st.sampled_from(rows))
        rows.append(scaled(f"s{number}", x))
    if draw(st.booleans()):
        rows.append(union(*rows[-2:]))
    last = Learn("last", object, rows[-1])
    steps = {op.step for op in walk([last])}
    seconds = {step: draw(_times) for step in sorted(steps)}
    sizes = {step: draw(st.sampled_from([10.0, 20.0, 40.0])) for step in sorted(steps)}
    found = measured([last], seconds, sizes, sparse=draw(st.booleans()))
    for op in walk([last]):
        if isinstance(op, Learn):
            kinds = draw(st.lists(_kinds, min_size=1, max_size=3, unique_by=id))
            ways = [(k, draw(_times), draw(st.sampled_from([1.0, 9.0]))) for k in kinds]
            offered(found, op, *ways)
    return last, found


def subsets(count: int) -> Iterator[frozenset[int]]:
    for size in range(count + 1):
        yield from map(frozenset, itertools.combinations(range(count), size))


@given(case=graphs(), budget=st.sampled_from([0, 15, 30, 45, 80, 1000]))
def test_no_ways_with_no_kept_rows_are_faster(case: Any, budget: int) -> None:
    last, found = case
    context = Context(found, budget, passes=found.passes)
    options = {
        op.token: possible(op, found.options[op.token], found, 10**9)
        for op in walk([last])
        if isinstance(op, Learn)
    }
    engine = Engine((last,), context, found, options)
    search = WaySearch(engine, options, context)
    at, chosen = search.best()

    best = float("inf")
    for ways in itertools.product(*options.values()):
        run = engine.run(dict(zip(options, ways, strict=True)))
        for nodes in subsets(len(engine.ops)):
            kept = run.price(nodes)
            if not nodes or kept.bytes <= MARGIN * budget:
                best = min(best, kept.seconds)
    assert chosen.kept.seconds == pytest.approx(best)
    assert search.run(at).price(chosen.kept.nodes).seconds == pytest.approx(best)


def behind_each_other(count: int, seconds: float) -> tuple[Operator, Profile]:
    """So many steps that take so many seconds each, and a model behind the last."""
    rows: Operator = LAZY
    for number in range(count):
        rows = scaled(f"s{number}", rows)
    last = Learn("last", object, rows)
    steps = sorted({op.step for op in walk([last])})
    times, sizes = dict.fromkeys(steps, seconds), dict.fromkeys(steps, 10.0)
    return last, measured([last], times, sizes)


def test_ways_that_take_nothing_are_not_left_out_where_there_are_many() -> None:
    last, found = behind_each_other(7, 0.0)
    models = [op for op in walk([last]) if isinstance(op, Learn)]
    for op in models:
        offered(found, op, (None, 1.0, 1.0), (Once(), 0.0, 1.0))
    context = Context(found, 16 * ROWS, passes=found.passes)
    draft = choose_ways(Draft((last,)), context)
    chosen = [op.way for op in walk(draft.sinks) if isinstance(op, Learn)]
    assert [type(way) for way in chosen] == [Once] * len(models)


def test_many_models_take_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty models in four ways each, and room for a few rows only."""
    last, found = behind_each_other(29, 1.0)
    for op in walk([last]):
        if isinstance(op, Learn):
            ways = [
                (Once(), 3.0, 1.0),
                (QUICK, 0.1, 9.0),
                (SLOW, 1.0, 2.0),
                (None, 2.0, 1.0),
            ]
            offered(found, op, *ways)
    runs = []
    follow = Timetable.follow

    def counted(table: Timetable, kept: Iterable[int]) -> Any:
        runs.append(table)
        return follow(table, kept)

    monkeypatch.setattr(Timetable, "follow", counted)
    context = Context(found, 10**5, passes=found.passes)
    draft = choose_ways(Draft((last,)), replace(context, budget=45))
    assert len(runs) < 6000
    assert is_same(Draft((last,)), draft)
    engine = Engine((last,), replace(context, budget=45), found)
    plain = engine.run().best(45).kept.seconds
    changed = Engine(draft.sinks, replace(context, budget=45), found).run().best(45)
    assert changed.kept.seconds < plain
