"""Limits of passes and seconds hold for every method, and what they end says so."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.gd.estimator_base import resources_of
from mlopt.gd.plans import SolverPlan, Task, plan, running
from mlopt.gd.plans.fitting import Ranker
from mlopt.gd.plans.forecast import Passes
from mlopt.gd.plans.methods import BY_NAME, METHODS
from mlopt.gd.plans.running import Alternative, raced, solve
from mlopt.gd.plans.stop import GradientNorm
from mlopt.gd.plans.task import problem_of
from mlopt.gd.working_set import WorkingSet

Array = NDArray[Any]
N, D = 600, 60
AT_ONCE = {"cholesky", "svd", "dual_cholesky", "working-set"}
"""These solve in one pass, or two."""


@cache
def data() -> tuple[Array, Array]:
    """Rows whose columns are alike and of very different size."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) @ rng.normal(size=(D, D)) * np.logspace(-1, 1, D)
    return X, X @ rng.normal(size=D) / 100 + rng.normal(size=N)


def planned(name: str, tolerance: float, n: int = N) -> SolverPlan:
    """One method's plan for a loss that it can minimise."""
    (method,) = (m for m in METHODS if m.name == name)
    losses = ("logistic", "multinomial", "squared", "hinge")
    loss = next(loss for loss in losses if loss in method.losses)
    X, y = data()
    y = y if loss == "squared" else (y > 0).astype(int)
    wide = name in {"dual_cholesky", "dual-newton"}
    task = Task(loss, l2=1e-6, fit_intercept="dual" not in name or wide)
    rows = slice(0, D // 2 if wide else n)
    return plan(
        task, X[rows], y[rows], tolerance=tolerance, methods=[name], speculation=False
    )


@pytest.mark.parametrize("name", [method.name for method in METHODS])
def test_a_limit_of_passes_holds(name: str) -> None:
    (one,) = planned(name, 1e-12).alternatives
    result = one.run(max_iter=2)
    assert result.n_iter <= 2
    if name in AT_ONCE:
        return
    assert [step[0] for step in result.history] == [1, 2]
    assert result.n_iter == 2
    assert not result.converged
    assert "limit of 2 passes" in result.message


def test_what_ends_in_one_pass_keeps_limits_between_its_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (one,) = planned("working-set", 1e-12).alternatives
    few, whole = one.run(max_iter=2), one.run()
    assert (few.n_iter, few.converged) == (2, False)
    assert "limit of 2 passes" in few.message
    now, steps, improve = time.monotonic(), list[int](), WorkingSet._improve

    def noted(*args: Any) -> bool:
        steps.append(1)
        return improve(*args)

    monkeypatch.setattr(WorkingSet, "_improve", noted)
    monkeypatch.setattr("mlopt.training.time.monotonic", lambda: now + 100.0 * len(steps))
    late = one.run(time_limit=50.0)
    assert (len(steps), late.converged) == (1, False)
    assert "limit of 50 s" in late.message
    assert late.history[-1][2] < np.inf
    assert whole.gap < late.gap


@pytest.mark.parametrize("name", [m.name for m in METHODS if m.name not in AT_ONCE])
def test_a_limit_of_seconds_ends_a_run_between_passes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = planned(name, 1e-12).alternatives
    now, begun = time.monotonic(), list[int]()

    def clock() -> float:
        """The limit is over once a second pass has begun."""
        return now + (100.0 if len(begun) >= 2 else 0.0)

    begin = one.method.begin

    def counted(*args: Any) -> Any:
        training = begin(*args)
        advance = training.advance

        def noted(passes: int) -> None:
            begun.append(passes)
            advance(passes)

        monkeypatch.setattr(training, "advance", noted)
        return training

    monkeypatch.setattr("mlopt.training.time.monotonic", clock)
    watched = replace(one, method=replace(one.method, begin=counted))
    result = watched.run(time_limit=50.0)
    assert begun == [1, 1]
    assert result.n_iter <= 2
    assert not result.converged
    assert "limit of 50 s" in result.message


def test_a_bad_plan_is_left_for_the_next_that_can_go_on_whatever_its_rank(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "_AGAIN", np.inf)  # whatever the clock says
    X, y = data()
    task = Task("squared_hinge", l2=1e-4, fit_intercept=False)
    names = ["primal-coordinate-descent", "dual-coordinate-descent", "lbfgs"]
    found = plan(task, X, (y > 0).astype(int), tolerance=1e-9, methods=names)
    first, other, last = ({a.name: a for a in found.alternatives}[name] for name in names)
    assert (other.method.continues, last.method.continues) == (False, True)
    last = replace(last, passes=Passes.known(1.0), span=(0.0, 0.0))
    result = solve([replace(first, passes=Passes.known(3.0)), other, last])
    assert result.methods == ("primal-coordinate-descent", "lbfgs")
    assert result.history[4][0] == 5
    assert result.converged


def test_one_that_is_late_is_left_for_the_surest_of_the_whole_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those like it may be late as well: to factor a matrix took half as long as they."""
    monkeypatch.setattr(running.Race, "_left", lambda self: 1e9)
    X, y = data()
    names = ["sparse_cg", "line-search/eager", "sketched_cg", "cholesky"]
    found = plan(
        Task("squared", l2=1e-4), sp.csr_array(X), y, tolerance=1e-9, methods=names
    )
    by_name = {a.name: a for a in found.alternatives}
    wrong = replace(by_name["sparse_cg"], passes=Passes.known(3.0), span=(0.0, 0.0))
    monkeypatch.setattr(running, "_TRIFLE", 0.0)
    for after in (["line-search/eager", "sketched_cg"], []):
        contenders = (wrong, *(by_name[name] for name in after))
        result = replace(found, contenders=contenders).run()
        assert result.methods == ("sparse_cg", "cholesky")
        assert result.converged


def anew() -> tuple[Alternative, Alternative]:
    """L-BFGS after which descent in the dual is next, to a gradient."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(80, 200)), random.permutation(80) % 2
    task = Task("squared_hinge", l2=1e-2, fit_intercept=False)
    problem = problem_of(task, X, y, Threads(1), None)
    methods = tuple(BY_NAME[name] for name in ("lbfgs", "dual-coordinate-descent"))
    ranker = Ranker(problem, resources_of(Threads(1)), GradientNorm(1e-6), methods)
    first, other = sorted(ranker.ranked(methods), key=lambda a: a.name, reverse=True)
    return replace(first, passes=Passes.known(3.0)), replace(other, span=(0.0, 0.0))


def test_where_no_gap_is_known_one_that_begins_anew_takes_over() -> None:
    first, other = anew()
    race, alone = raced([first, other]), raced([other])
    assert race.names == ["lbfgs", "dual-coordinate-descent"]
    assert race.passes == alone.passes + 4
    np.testing.assert_array_equal(race.outcome().coef, alone.outcome().coef)


def test_who_begins_anew_must_have_passes_left() -> None:
    first, other = anew()
    few = int(other.passes.high) + 1
    assert raced([first, other], max_iter=few).names == ["lbfgs"]


def test_one_that_cannot_take_over_keeps_no_other_from_it() -> None:
    first, other = anew()
    few = int(other.passes.high) + 1
    quick = replace(other, passes=Passes.known(2.0), method=BY_NAME["dual-newton"])
    assert raced([first, other, quick], max_iter=few).names == ["lbfgs", "dual-newton"]


@pytest.mark.parametrize(("high", "dear"), [(10.0, 1.0), (15.0, 1.0), (15.0, 2.0)])
def test_what_may_need_more_than_the_limit_is_left_at_half_of_it(
    high: float, dear: float
) -> None:
    first, other = anew()
    doubtful = replace(
        first, passes=Passes(8.0, 5.0, high, "typical"), predicted_seconds=1.0
    )
    all_allowed = 12 / 8.0
    slow = replace(other, passes=Passes.known(5.0), span=(1.0, dear * all_allowed - 0.1))
    names = raced([doubtful, slow], max_iter=12).names
    left = high > 12 and dear == 1
    assert names == ["lbfgs"] + ["dual-coordinate-descent"] * left


def test_without_a_gap_a_run_ends_at_its_own_worst_case() -> None:
    X, y = data()
    found = plan(Task("hinge"), X, (y > 0).astype(int), tolerance=1e-9)
    one = replace(found.chosen, passes=Passes.about(10.0, 2.0, "typical"))
    result = solve([one])
    assert 20 < result.n_iter <= 22
    assert (result.converged, result.claim) == (False, "nothing")
    assert "the most that it was thought to take" in result.message
    assert solve([one], max_iter=30).n_iter == 30  # a limit that somebody set counts


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"max_iter": 0}, "`max_iter` must be positive, got 0"),
        ({"max_iter": 1.5}, "`max_iter` must be a whole number, got 1.5"),
        ({"max_iter": "5"}, "`max_iter` must be positive, got '5'"),
        ({"time_limit": 0.0}, "`time_limit` must be positive, got 0.0"),
        ({"time_limit": float("nan")}, "`time_limit` must be positive, got nan"),
    ],
)
def test_limits_of_a_run_are_refused_as_those_of_its_plan(
    limits: dict[str, Any], says: str
) -> None:
    X, y = data()
    found = planned("lbfgs", 0.1)
    for run in (found.run, found.chosen.run):
        with pytest.raises(InputError, match=says):
            run(**limits)
    with pytest.raises(InputError, match=says):
        plan(Task("squared"), X, y, **limits)


@pytest.mark.parametrize("name", ["dual-logistic", "lbfgs", "newton-cg"])
def test_the_limit_that_nobody_set_is_told_as_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(running._MOST, "passes", 4)
    X, y = data()
    task = Task("logistic", l2=1e-5)
    found = plan(task, X, y > 0, tolerance=1e-9, methods=[name]).alternatives[0].run()
    assert found.n_iter == 4
    assert not found.converged
    assert "limit of 4 passes" in found.message
