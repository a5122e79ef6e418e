"""Which rows are kept: the set with the shortest run as the engine runs it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from tests.pipeline.graphs import DATA, OTHER, scaled, union

from mlopt.costs import Fit as Line
from mlopt.errors import InputError
from mlopt.pipeline.fits.base import ManyPasses, OnePass
from mlopt.pipeline.fits.registry import ways_of
from mlopt.pipeline.graph.operators import Learn, Operator
from mlopt.pipeline.graph.walking import walk
from mlopt.pipeline.profiling.profile import Measure, Profile
from mlopt.pipeline.rules.base import Context, Draft
from mlopt.pipeline.rules.engine import Engine, Run
from mlopt.pipeline.rules.keep_results import KEEPERS, keep_results
from mlopt.resources import Resources
from mlopt.stats import Stats

LAZY = replace(DATA, lazy=True)
ROWS, BLOCKS = 1000, 10


def after(step: str, x: Operator, estimator: Any = None) -> Any:
    made: Any = scaled(step, x, estimator)
    way = next(w for w in ways_of(made.model.estimator) if isinstance(w, OnePass))
    return replace(made, model=replace(made.model, way=way))


def classified(x: Operator) -> Learn:
    model = Learn("classify", LogisticRegression(), x, OTHER)
    way = next(w for w in ways_of(model.estimator) if isinstance(w, ManyPasses))
    return replace(model, way=way)


def context(
    sinks: tuple[Operator, ...],
    budget: int,
    sizes: dict[str, float],
    keep: str = "best",
    seconds: dict[str, float] | None = None,
) -> Context:
    """What each step takes: a second, unless said otherwise; bytes by step."""
    found = Profile(ROWS, BLOCKS, 1, Resources(workers=1, threads=1, memory=2**34))
    for op in walk(sinks):
        took, size = (seconds or {}).get(op.step, 1.0), sizes.get(op.step, 0.0)
        lines = Line.of([ROWS], [took]), Line.of([ROWS], [size])
        found.measures[op.token] = Measure(*lines, Stats(ROWS, 1))
    return Context(found, budget, passes=lambda _: 9.0, keep=keep)


def kept(sink: Operator, *args: Any, **kwargs: Any) -> set[str]:
    draft = keep_results(Draft((sink,)), context((sink,), *args, **kwargs))
    steps = {op.token: op.step for op in walk((sink,)) if op.gives_rows}
    return {steps[token] for token in draft.kept}


A = after("a", LAZY)
B, C = after("b", A), after("c", A, MinMaxScaler())
DIAMOND = union(B, C)
SIZES = {"X": 9e6, "a": 1e5, "b": 2e5, "c": 2e5, "union": 9e5}


def test_what_the_last_model_reads_is_kept_where_it_fits() -> None:
    assert "union" in kept(classified(DIAMOND), 10**6, SIZES)


def test_both_sides_of_a_diamond_are_kept_before_what_they_share() -> None:
    assert kept(classified(DIAMOND), 405_000, SIZES) == {"b", "c"}


def test_memory_that_one_set_leaves_serves_the_next() -> None:
    """What is let go of before something else is made needs no room beside it."""
    b = after("b", A)
    both = kept(classified(b), 310_000, {"X": 9e6, "a": 2e5, "b": 2e5, "c": 0.0})
    assert "b" in both


def test_without_memory_nothing_is_kept() -> None:
    assert kept(classified(DIAMOND), 0, SIZES) == set()


def priced(sink: Operator, found: Context) -> tuple[Run, list[Operator]]:
    assert found.profile is not None
    engine = Engine((sink,), found, found.profile)
    return engine.run(), engine.ops


def test_more_memory_never_makes_the_predicted_run_slower() -> None:
    sink = classified(DIAMOND)
    run, _ = priced(sink, context((sink,), 0, SIZES))
    times = [run.best(budget).kept.seconds for budget in range(0, 1_500_000, 30_000)]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize("keep", [name for name in KEEPERS if name != "best"])
def test_no_other_way_of_choosing_runs_faster(keep: str) -> None:
    sink = classified(DIAMOND)
    for budget in range(0, 1_500_000, 100_000):
        found = context((sink,), budget, SIZES, keep)
        run, ops = priced(sink, found)
        draft = keep_results(Draft((sink,)), found)
        other = run.price(
            frozenset(v for v, op in enumerate(ops) if op.token in draft.kept)
        )
        if other.bytes <= 0.98 * budget:
            assert run.best(budget).kept.seconds <= other.seconds


def test_what_has_room_in_part_is_kept_in_part() -> None:
    sink = classified(after("a", LAZY))
    found = context((sink,), 50_000, {"X": 9e6, "a": 1e5})
    draft = keep_results(Draft((sink,)), found)
    assert draft.partly is not None
    assert draft.partly[1] == pytest.approx(0.4)


def test_rows_that_are_there_from_before_are_kept_for_nothing() -> None:
    sink = classified(DIAMOND)
    found = context((sink,), 10**6, SIZES)
    found = replace(found, there=frozenset({A.token}))
    draft = keep_results(Draft((sink,)), found)
    assert A.token in draft.kept


def test_a_budget_below_a_block_of_one_column_is_refused() -> None:
    with pytest.raises(InputError, match=r"`memory_budget` must be 0, .* got 100 B"):
        kept(classified(DIAMOND), 100, SIZES)


def test_random_rows_are_always_kept_and_refused_by_name_where_they_do_not_fit() -> None:
    noisy = replace(scaled("noise", LAZY, StandardScaler()), random=True, scope="all")
    sink = classified(noisy)
    assert "noise" in kept(sink, 10**6, {"noise": 1e5})
    with pytest.raises(InputError, match="Rows of `noise` may not be the same"):
        kept(sink, 10_000, {"noise": 1e5})


def test_without_a_profile_everything_is_kept_that_fits() -> None:
    draft = keep_results(Draft((classified(DIAMOND),)), Context(None, 77))
    assert draft.budget == 77
    assert DIAMOND.token in draft.kept


def test_where_one_graph_makes_all_rows_once_none_are_kept() -> None:
    context = Context(None, 77, at_once=True)
    draft = keep_results(Draft((classified(DIAMOND),)), context)
    assert draft.at_once
    assert draft.kept == frozenset()
