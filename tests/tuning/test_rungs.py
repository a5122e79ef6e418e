"""Looks at trials on their way: as many as cost little, or as somebody asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import mlopt
from mlopt.cluster import Threads
from mlopt.tuning.bandits import ActionElimination, Bandit, Hyperband, SuccessiveHalving
from mlopt.tuning.crews.growing import LOOKS, price_of_looks
from mlopt.tuning.inputs import problem_of
from mlopt.tuning.rungs import Rungs
from mlopt.tuning.scheduler import Scheduler
from mlopt.tuning.setup import GENERATION, prepare

HALF = 0.5
DEFAULT = ActionElimination()
X, y = make_classification(200, 6, flip_y=0.2, random_state=0)


def hist(trees: int) -> Any:
    return HistGradientBoostingClassifier(max_iter=trees, max_leaf_nodes=4, random_state=0)


def looks(model: Any, bandit: Bandit = DEFAULT, short: bool = False) -> tuple[Any, ...]:
    return Rungs(bandit, bandit.max_passes, HALF, short).before_the_end(model)


@pytest.mark.parametrize("trees", [1, 10, 50, 100, 300, 1000, 5000])
@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingClassifier(),
        GradientBoostingClassifier(),
        RandomForestClassifier(),
        BaggingClassifier(),
    ],
)
def test_looks_nobody_asked_for_cost_little_of_a_fit(model: Any, trees: int) -> None:
    name = "max_iter" if isinstance(model, HistGradientBoostingClassifier) else None
    grown = clone(model).set_params(**{name or "n_estimators": trees})
    found = looks(grown)
    assert price_of_looks(grown, found, DEFAULT.max_passes, HALF) <= LOOKS
    assert list(found) == sorted(found)
    assert set(found) <= set(range(10, 100, 10))
    assert not found or found[0] == 10


def test_boosting_of_histograms_is_looked_at_where_it_is_long() -> None:
    assert looks(hist(100)) == ()
    assert looks(hist(1000)) == (10, 30)
    assert looks(hist(5000)) == (10, 20, 40)  # each judges by all trees so far
    assert len(looks(RandomForestClassifier())) > 1


def test_where_time_is_short_a_first_look_tells_the_price() -> None:
    assert looks(hist(100), short=True) == (10,)
    assert looks(hist(5000), short=True) == looks(hist(5000))


@pytest.mark.parametrize(
    ("bandit", "stops"),
    [
        (ActionElimination(every=25), (10, 35, 60, 85)),
        (ActionElimination(first=50), (50,)),
        (SuccessiveHalving(n_trials=9), (3, 9, 27, 81)),
    ],
)
def test_looks_that_were_asked_for_stay(bandit: Bandit, stops: tuple[int, ...]) -> None:
    assert looks(hist(100), bandit) == stops


def test_a_bracket_decides_for_itself() -> None:
    assert not Hyperband().optional


def test_what_does_not_grow_is_looked_at_as_before() -> None:
    assert looks(SVC()) == tuple(range(10, 100, 10))


def test_the_next_look_is_the_next_of_those_or_the_end() -> None:
    rungs = Rungs(DEFAULT, 100, HALF)
    stops = [rungs.next(hist(1000), passes) for passes in (0, 10, 99)]
    assert stops[0] == 10
    assert 10 < stops[1] < 100
    assert stops[2] == 100
    assert rungs.next(hist(100), 0) == 100


@pytest.mark.parametrize("model", [RandomForestClassifier(30, random_state=0), hist(20)])
def test_a_plan_counts_a_fit_a_look(model: Any) -> None:
    keeps = ActionElimination(eps=np.inf)
    search = mlopt.ModelSearchCV(model, {"max_depth": [1, 2]}, cv=3, bandit=keeps)
    foreseen = search.explain(X, y).choices[0].runs["fit"]
    assert foreseen == 2 * 3 * (1 + len(looks(model)))
    assert search.fit(X, y).plan_.choices[0].ran["fit"] == foreseen


def test_boosting_is_fitted_once_a_split(monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[int] = []
    fit = HistGradientBoostingClassifier.fit

    def counted(self: Any, *given: Any, **named: Any) -> Any:
        fits.append(self.max_iter)
        return fit(self, *given, **named)

    space = {"learning_rate": [0.05, 0.2, 0.5]}
    theirs = GridSearchCV(hist(20), space, cv=2).fit(X, y)
    monkeypatch.setattr(HistGradientBoostingClassifier, "fit", counted)
    ours = mlopt.ModelSearchCV(
        hist(20), space, cv=2, sampler="grid", refit=False, n_jobs=1
    ).fit(X, y)
    assert fits == [20] * 6
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    np.testing.assert_array_equal(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )
    assert any("no look before its end" in n for n in ours.plan_.choices[0].notes)
    assert "15 of 20 members" in ours.plan_.explain()


@pytest.mark.parametrize(("threads", "slots"), [(1, 4), (2, 4), (40, 20)])
def test_a_search_that_a_clock_ends_keeps_all_threads_at_work(
    threads: int, slots: int
) -> None:
    found = _prepared(threads, n_trials=None, timeout=60.0)
    assert found.slots == slots
    assert _prepared(threads).slots == GENERATION  # the same trials on any machine


def _prepared(threads: int, **settings: Any) -> Scheduler:
    search = mlopt.ModelSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=2, **settings)
    executor = Threads(threads)
    try:
        return prepare(search, problem_of(search, executor, X, y, None, None, {}))
    finally:
        executor.close()
