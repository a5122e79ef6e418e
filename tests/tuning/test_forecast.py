"""Predictions before a search, and the parts that they are made of."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.datasets import load_wine, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC

import mlopt
from mlopt.cluster import Threads
from mlopt.costs import Cost
from mlopt.pipeline.by_split import Streamed
from mlopt.plan import Choice
from mlopt.resources import Resources
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.forecast import Forecast
from mlopt.tuning.inputs import problem_of
from mlopt.tuning.samples import extrapolated
from mlopt.tuning.space.space import Space
from mlopt.tuning.typical import levels_of

X, y = make_classification(4000, 10, random_state=0)


def choice_of(estimator: Any, space: dict[str, Any], **settings: Any) -> Choice:
    search = mlopt.ModelSearchCV(estimator, space, **settings)
    return search.explain(X, y).choices[0]


def test_a_linear_family_is_batched_and_says_what_one_by_one_would_take() -> None:
    found = choice_of(LogisticRegression(), {"C": np.logspace(-3, 3, 32).tolist()})

    assert "share a scan" in found.chosen
    assert found.predicted is not None
    assert found.rejected[0].seconds is not None
    assert found.rejected[0].seconds > found.predicted
    assert found.children[0].step == "batch"


def test_a_family_without_a_batched_form_says_so() -> None:
    found = choice_of(RandomForestClassifier(n_estimators=5), {"max_depth": [2, 3, 4, 5]})

    assert found.chosen == "one fit a split, in parallel"
    assert "no batched form" in found.rejected[0].reason


def test_the_batch_is_planned_for_what_the_final_estimator_sees() -> None:
    space = {"C": np.logspace(-3, 3, 32).tolist()}
    plain = choice_of(make_pipeline(StandardScaler(), LogisticRegression()), space)
    wide = choice_of(
        make_pipeline(PolynomialFeatures(3), StandardScaler(), LogisticRegression()), space
    )

    seconds = [found.children[0].predicted for found in (plain, wide)]  # of a pass
    assert seconds[0] is not None
    assert seconds[1] is not None
    assert seconds[1] > 2 * seconds[0]


def test_penalties_of_least_squares_share_a_scan_and_what_is_solved() -> None:
    few, many = (
        choice_of(Ridge(), {"alpha": np.logspace(-3, 3, n).tolist()}, sampler="grid",
                  n_trials=None)
        for n in (8, 64)
    )  # fmt: skip
    assert many.children[0].chosen == "64 models a scan"
    assert few.predicted is not None
    assert many.predicted is not None
    assert few.predicted < many.predicted < 3 * few.predicted


def test_no_more_models_share_a_scan_than_train_between_two_proposals() -> None:
    space = {"C": np.logspace(-3, 3, 128).tolist()}
    found = choice_of(LogisticRegression(), space, n_trials=128, cv=2)
    assert found.children[0].chosen == "16 models a scan"
    assert all(one.name in ("1 model", "2 models", "4 models", "8 models")
               for one in found.children[0].rejected)  # fmt: skip
    halving = {"n_trials": 32, "bandit": "successive-halving", "cv": 2}
    found = choice_of(LogisticRegression(), space, **halving)
    assert found.children[0].chosen == "32 models a scan"  # a bracket begins whole


def test_a_plan_says_where_the_models_of_a_scan_train_by_themselves() -> None:
    rows, labels = load_wine(return_X_y=True)
    search = mlopt.ModelSearchCV(
        LinearSVC(), {"C": [0.01, 0.1, 1.0]}, sampler="grid", bandit=None, n_trials=None,
        cv=3, refit=False,
    )  # fmt: skip
    found = search.fit(StandardScaler().fit_transform(rows), labels).plan_.choices[0]
    assert found.chosen == "batched: each model of a scan by Newton's method"
    assert found.ran == {"fit": 9, "score": 9, "newton": 9}


@pytest.mark.parametrize("size", [1, 7])
def test_a_given_batch_size_is_kept(size: int) -> None:
    found = choice_of(LogisticRegression(), {"C": [0.1, 1.0, 2.0, 3.0]}, batch_size=size)

    assert found.children[0].chosen == f"{size}, as asked"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [((1.0, 2.0), 4.0), ((1.0, 1.0), 1.0), ((1.0, 4.0), 16.0), ((0.0, 1.0), 2.0)],
)
def test_time_grows_as_it_did_between_samples(
    seconds: tuple[float, float], expected: float
) -> None:
    """By a line, or by a power where all pairs of rows count."""
    found = extrapolated([1000, 2000], [*seconds], 4000)
    assert found == pytest.approx(expected, rel=0.35)
    steep = extrapolated([1000, 2000], [1.0, 100.0], 4000)
    assert steep == pytest.approx(400.0)


@pytest.mark.parametrize(
    ("values", "typical"),
    [
        ([7, 15, 31, 63], 31),
        ([63, 7, 31], 31),
        ([2, None, 8], 8),
        (["a", "b"], "a"),
        ([True, False], True),
    ],
)
def test_a_typical_configuration_is_in_the_middle(values: list[Any], typical: Any) -> None:
    space = Space.of({"max_depth": values}, RandomForestClassifier())
    levels = levels_of(space.families[0].parameters[0])
    assert levels[0] == typical
    assert sorted(map(str, levels)) == sorted(map(str, values))


def test_the_price_of_scores_is_that_of_neighbours() -> None:
    search = mlopt.ModelSearchCV(KNeighborsClassifier(), {"n_neighbors": [*range(1, 9)]})
    found, *_, final = search.explain(X, y).choices  # of the same samples
    assert found.predicted is not None
    assert final.predicted is not None
    assert found.predicted > 8 * final.predicted


def test_trials_that_the_space_does_not_have_cost_nothing() -> None:
    found = [
        mlopt.ModelSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, n_trials=n)
        .explain(X, y)
        .choices[1]
        .predicted
        for n in (2, 64)
    ]
    assert found[0] == found[1]


def test_a_plan_adds_up_to_what_it_predicts() -> None:
    search = mlopt.ModelSearchCV(RandomForestClassifier(5), {"max_depth": [2, 3, 4, 5]})
    plan = search.explain(X, y)
    parts = [choice.predicted for choice in plan.choices]
    assert None not in parts
    assert plan.predicted is not None
    assert plan.predicted >= sum(p for p in parts if p is not None)


def test_a_search_is_priced_for_the_threads_that_it_may_use() -> None:
    search = mlopt.ModelSearchCV(LogisticRegression(), {"C": [1.0]}, sampler="grid")
    with dask.config.set({"mlopt.resources": {"threads": 4}}):
        for threads in (1, 3):
            problem = problem_of(search, Threads(threads), X, y, None, None, {})
            assert problem.resources.threads == threads


def idle(**settings: Any) -> list[str]:
    search = mlopt.ModelSearchCV(
        KNeighborsClassifier(), {"n_neighbors": list(range(1, 61))}, cv=2, n_jobs=100,
        n_trials=60, **settings,
    )  # fmt: skip
    return [note for note in search.explain(X[:200], y[:200]).notes if "at work" in note]


def test_threads_that_wait_for_a_sampler_are_told_of() -> None:
    (note,) = idle()
    assert "16 trials train at a time" in note
    assert "32 fits on 100 threads" in note
    assert "`batch_size=50`" in note
    assert "as was asked" in idle(batch_size=4)[0]
    assert not idle(batch_size=50)
    assert not idle(sampler="random")


def test_trials_that_wait_for_others_take_as_long_on_any_number_of_threads() -> None:
    problem = cast("Problem", SimpleNamespace(
        executor=SimpleNamespace(threads=1000), resources=Resources(), splits=(0, 1)
    ))  # fmt: skip
    cost = Cost(fixed=2.0)
    for rounds in (1, 4):
        known = Forecast(cost, rounds=rounds)
        assert known.of_trials(problem, cost, 64, batched=False) == rounds * 1.0


@pytest.mark.parametrize("part", ["read", "made"])
def test_blocks_are_read_once_for_all_splits_and_preprocessed_for_each(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Streamed.chain

    def priced(self: Streamed, *given: Any) -> Any:
        return replace(chain(self, *given), row_seconds=0.01 * (part == "made"))

    monkeypatch.setattr(Streamed, "row_seconds", 0.01 * (part == "read"))
    monkeypatch.setattr(Streamed, "chain", priced)
    rows = da.from_array(X, chunks=(1000, -1))
    search = mlopt.ModelSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression()), {"C": [0.1, 1.0]},
        sampler="grid", n_trials=None,
    )  # fmt: skip
    plans = [search.set_params(cv=cv).explain(rows, y) for cv in (2, 4)]
    few, many = (plan.choices[0].predicted for plan in plans)
    assert few is not None
    assert many is not None
    assert many / few == pytest.approx(1.0 if part == "read" else 2.0, rel=0.1)
    finals = [plan.choices[-1].predicted for plan in plans]
    assert finals[0] == pytest.approx(finals[1], rel=0.1)
