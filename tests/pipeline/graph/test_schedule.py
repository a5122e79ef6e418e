"""Jobs in their order, and how often they compute what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from tests.pipeline.graphs import DATA, OTHER, ranged, scaled, union

from mlopt.pipeline.fits.base import Fit, ManyPasses, OnePass
from mlopt.pipeline.fits.registry import ways_of
from mlopt.pipeline.graph.operators import Fused, Learn, Operator, Outcome
from mlopt.pipeline.graph.schedule import Job, Timetable, executions, schedule

LAZY = replace(DATA, lazy=True)


def by(kind: type[Fit], op: Learn) -> Learn:
    """The model learnt in one pass, or in many."""
    return replace(op, way=next(w for w in ways_of(op.estimator) if isinstance(w, kind)))


def one_pass(step: str, x: Operator, estimator: Any = None) -> Learn:
    return by(OnePass, Learn(step, estimator or StandardScaler(), x))


def iterative(x: Operator) -> Learn:
    return by(ManyPasses, Learn("classify", LogisticRegression(), x, OTHER))


def after(step: str, x: Operator, estimator: Any = None) -> Any:
    return replace(scaled(step, x), model=one_pass(step, x, estimator))


def nine(_: Learn) -> float:
    return 9.0


def counts(sinks: tuple[Operator, ...], kept: set[Operator]) -> dict[str, float]:
    jobs = schedule(sinks, nine)
    return executions(jobs, {op.token for op in kept})


def test_models_of_one_depth_that_take_one_pass_are_learnt_together() -> None:
    both = union(after("a", DATA), after("b", after("c", DATA, MinMaxScaler())))
    jobs = schedule((iterative(both),), nine)
    steps = [sorted(end.step for end in job.ends) for job in jobs]
    assert steps == [["a", "c"], ["b"], ["classify"]]


def test_a_fit_of_many_passes_looks_at_its_rows_once_before() -> None:
    assert [job.passes for job in schedule((iterative(DATA),), nine)] == [10.0]


def test_a_gathered_fit_reads_its_rows_once() -> None:
    assert [job.passes for job in schedule((Learn("fit", object, DATA),), nine)] == [1.0]


def test_what_is_not_kept_is_computed_in_every_pass() -> None:
    a = after("a", LAZY)
    found = counts((iterative(a),), set())
    assert found[a.token] == 10.0
    assert found[LAZY.token] == 11.0  # once more to learn the scale


def test_what_is_kept_is_computed_once() -> None:
    a = after("a", LAZY)
    found = counts((iterative(a),), {a})
    assert (found[a.token], found[LAZY.token]) == (1.0, 2.0)


def test_a_diamond_is_computed_once_a_pass_whatever_its_paths() -> None:
    a = after("a", LAZY)
    both = union(after("b", a), after("c", a, MinMaxScaler()))
    found = counts((iterative(both),), set())
    assert found[both.token] == 10.0
    assert found[a.token] == 11.0  # once for b and c together
    assert found[LAZY.token] == 12.0


def test_keeping_one_side_of_a_diamond_saves_nothing_of_what_is_before() -> None:
    a = after("a", LAZY)
    b, c = after("b", a), after("c", a, MinMaxScaler())
    sinks = (iterative(union(b, c)),)
    without, one, both = (counts(sinks, kept)[a.token] for kept in (set(), {b}, {b, c}))
    assert one == without + 1  # made once to be kept, then in every pass all the same
    assert both == 2.0


def test_what_a_learnt_model_was_learnt_from_is_not_computed_to_apply_it() -> None:
    selected = ranged("other", LAZY)
    model = one_pass("a", selected, SelectKBest(k=1))
    applied = replace(scaled("a", LAZY), model=replace(model, y=OTHER))
    found = counts((iterative(applied),), set())
    assert found[applied.token] == 10.0
    assert found[selected.token] == 1.0


def test_the_operators_within_a_fused_one_are_counted() -> None:
    a = after("a", LAZY)
    b = after("b", a)
    models = (a.model, b.model)
    fused = Fused("a+b", b, (LAZY, *models))
    found = counts((iterative(fused),), set())
    assert found[b.token] == 10.0
    assert found[a.token] == 11.0  # once more to learn b


def test_a_model_that_is_known_needs_no_job() -> None:
    a = after("a", LAZY)
    sinks = (iterative(a),)
    assert len(schedule(sinks, nine, known={a.model.token})) == 1
    assert schedule(sinks, nine, known={sinks[0].token}) == []


def test_all_at_once_is_one_job_in_which_each_operator_runs_once() -> None:
    a = after("a", LAZY)
    b = after("b", a)
    learn = Learn("fit", object, b)
    (job,) = schedule((learn, b), nine, at_once=True)
    assert job.ends == (a.model, b.model, learn, b)
    found = executions([job], set())
    assert {found[op.token] for op in (LAZY, a, b)} == {1.0}
    assert schedule((learn,), nine, {op.token for op in job.ends}, at_once=True) == []


def test_rows_that_are_there_need_nothing_before_them() -> None:
    a = after("a", LAZY)
    job = Job((iterative(a),), 10.0)
    found = executions([job], set(), there={a.token})
    assert LAZY.token not in found
    assert found[a.token] == 0.0


def test_a_share_that_is_kept_counts_between_all_and_none() -> None:
    a = after("a", LAZY)
    jobs = schedule((iterative(a),), nine)
    found = executions(jobs, {a.token}, partly=(a.token, 0.5))
    assert found[a.token] == pytest.approx(5.5)


def test_an_outcome_is_never_made_again() -> None:
    learn = replace(one_pass("a", LAZY), transforms=True)
    outcome = Outcome("a", learn, LAZY)
    found = counts((iterative(outcome),), set())
    assert found[outcome.token] == 1.0


def test_memory_is_counted_from_the_first_use_to_the_last() -> None:
    a = after("a", LAZY)
    b = after("b", a)
    c = after("c", b)
    table = Timetable(schedule((iterative(c),), nine), nbytes=lambda _: 100.0)
    position = {op.token: v for v, op in enumerate(table.ops)}
    of = [position[op.token] for op in (a, b, c)]
    assert table.follow(of[:1]).peak == 100.0
    assert table.follow(of).peak == 200.0  # a is let go of before c is made
    assert table.follow([position[LAZY.token], *of]).peak < 400.0
