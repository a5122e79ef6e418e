"""Looks at trials on their way: as many as cost little, or as somebody asked for."""

from __future__ import annotations

from pathlib import Path
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
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import SVC

import mlopt
from mlopt import events
from mlopt.cluster import Threads
from mlopt.tuning.bandits import ActionElimination, Bandit, Hyperband, SuccessiveHalving
from mlopt.tuning.crews.growing import LOOKS, first_members, price_of_looks
from mlopt.tuning.inputs import problem_of
from mlopt.tuning.rungs import Rungs
from mlopt.tuning.saving import Curve, Saving
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
        if len(given[0]) == len(X) // 2:  # samples have fewer rows
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


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(20, random_state=0),
        GradientBoostingClassifier(n_estimators=20, random_state=0),
        BaggingClassifier(n_estimators=20, max_features=0.5, random_state=0),
        hist(20),
    ],
)
def test_the_first_members_are_what_the_model_was(model: Any) -> None:
    count = "max_iter" if isinstance(model, HistGradientBoostingClassifier) else None
    young = clone(model).set_params(**{count or "n_estimators": 7}).fit(X, y)
    found = first_members(clone(model).fit(X, y), 7)
    np.testing.assert_array_equal(found.predict_proba(X), young.predict_proba(X))


PRICE = 0.2
SAVING = Saving(DEFAULT, 100, lambda stop: PRICE)


def curve(number: int, *scores: float, given_up: int | None = None) -> Curve:
    return Curve(number, "", dict(zip((10, 20, 100), scores, strict=False)), given_up)


GOOD = [curve(n, 0.8 + 0.01 * n, 0.85, 0.9) for n in range(2)]
HOPELESS = [curve(n, 0.5, 0.55, 0.6) for n in range(2, 6)]


def test_looks_are_chosen_that_would_have_saved_more_than_they_cost() -> None:
    assert SAVING.best((10, 20), [*GOOD, *HOPELESS]) == (10,)
    # Four of six end at .1; two pay a look; one of each kind is assumed.
    cost = (5 * (0.1 + PRICE) + 3 * (1 + PRICE)) / 8
    assert SAVING.cost((10,), [*GOOD, *HOPELESS]) == pytest.approx(cost)


def test_looks_that_would_have_saved_nothing_are_not_made() -> None:
    alike = [curve(n, 0.8, 0.85, 0.9) for n in range(SAVING.enough((10, 20)))]
    assert SAVING.best((10, 20), alike) == ()


def test_a_look_that_gives_up_what_is_best_in_the_end_is_not_made() -> None:
    late = curve(9, 0.5, 0.8, 0.99)
    assert SAVING.best((10, 20), [*GOOD, *HOPELESS, late]) == (20,)


def test_what_was_given_up_counts_as_it_was() -> None:
    ended = [curve(n, 0.5, given_up=10) for n in range(4)]
    assert SAVING.best((10,), ended) == (10,)


def test_looks_too_dear_ever_to_pay_need_no_pioneers() -> None:
    rungs = Rungs(DEFAULT, 100, HALF)
    assert rungs.pioneers(hist(20)) == 0  # a look takes three quarters of a fit
    assert rungs.pioneers(hist(1000)) == 0  # looks are made at once
    assert rungs.pioneers(hist(100)) > 1
    assert Rungs(DEFAULT, 100, HALF, short=True).pioneers(hist(100)) == 0


RATES = {"learning_rate": [1e-5, 1e-4, 0.1, 0.2, 0.3, 0.4, 0.5, 1e-6, 2e-6, 3e-6]}


def dear_search(**settings: Any) -> mlopt.ModelSearchCV:
    return mlopt.ModelSearchCV(hist(100), RATES, cv=2, sampler="grid", **settings)


def test_pioneers_tell_that_hopeless_boosting_is_given_up_early() -> None:
    search = dear_search().fit(X, y)
    whole = dear_search(bandit=None).fit(X, y)
    assert search.best_score_ == whole.best_score_
    assert search.best_params_ == whole.best_params_
    assert search.n_pruned_ > 0
    states = [trial.state.name for trial in search.study_.trials]
    full = search.cv_results_["passes"] == 100
    np.testing.assert_array_equal(full, np.array(states) == "COMPLETE")
    first = Rungs(DEFAULT, 100, HALF).pioneers(hist(100))
    assert states[:first] == ["COMPLETE"] * first
    assert any(
        "trials to their end tell that with looks at" in n for n in search.plan_.notes
    )


@pytest.mark.parametrize("threads", [1, 3])
def test_what_pioneers_tell_does_not_depend_on_threads(threads: int) -> None:
    found = [dear_search(n_jobs=n, refit=False).fit(X, y) for n in (2, threads)]
    passes = [search.cv_results_["passes"].tolist() for search in found]
    assert passes[0] == passes[1]


def test_a_search_with_pioneers_resumes_to_the_same(tmp_path: Path) -> None:
    stored = {"storage": tmp_path / "study.db", "refit": False}
    ended: list[events.Event] = []

    def end(event: events.Event) -> None:
        ended.append(event)
        if sum(isinstance(e, events.TrialFinished) for e in ended) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dear_search(observer=end, **stored).fit(X, y)
    again, whole = dear_search(**stored).fit(X, y), dear_search(refit=False).fit(X, y)
    for name in ("passes", "state", "mean_test_score"):
        np.testing.assert_array_equal(again.cv_results_[name], whole.cv_results_[name])


@pytest.mark.parametrize("kind", [RandomForestClassifier, BaggingClassifier])
def test_members_that_share_a_generator_are_those_of_a_grid_search(kind: Any) -> None:
    """Grown in steps, they would take other draws of it."""
    name = "max_depth" if kind is RandomForestClassifier else "max_samples"
    space = {name: [1, 2] if kind is RandomForestClassifier else [0.5, 1.0]}
    found: list[dict[Any, Any]] = []
    for search in (mlopt.ModelSearchCV, GridSearchCV):
        model = kind(n_estimators=5, random_state=np.random.RandomState(3))
        told = search(model, space, cv=KFold(3)).fit(X, y).cv_results_
        scores = zip(*(told[f"split{i}_test_score"] for i in range(3)), strict=True)
        values = (params[name] for params in told["params"])
        found.append(dict(zip(values, scores, strict=True)))
    assert found[0] == found[1]
