"""Boosted trees: the same whatever is tried on the way, and with the threads that help."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.clocks import Clock

import mlopt
from mlopt.cluster import inside_task, single_threaded
from mlopt.tuning.boosting import can_be_tried, fit_boosted

X, y = make_classification(400, 6, random_state=0)
TREES: Any = HistGradientBoostingClassifier(
    max_iter=100, max_leaf_nodes=4, max_features=0.5, early_stopping=False, random_state=0
)


@pytest.mark.slow
def test_the_model_is_that_of_one_fit() -> None:
    weight = np.random.default_rng(0).random(len(X))
    model = fit_boosted(clone(TREES), X, y, {"sample_weight": weight})
    with single_threaded():
        at_once = clone(TREES).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.predict_proba(X), at_once.predict_proba(X))
    assert model.get_params() == TREES.get_params()
    assert model.n_iter_ == 100


@pytest.mark.parametrize("slow", ["threads", "one"])
def test_most_trees_grow_the_quicker_way(
    monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    alone, clock = [], Clock()
    clock.install(monkeypatch, "mlopt.tuning.boosting")

    def delayed(self: Any, X: Any, y: Any) -> Any:
        alone.append(inside_task())
        clock.alone(0.3 * (inside_task() == (slow == "one")))
        return self

    monkeypatch.setattr(HistGradientBoostingClassifier, "fit", delayed)
    fit_boosted(clone(TREES), X, y, {})
    assert alone == [True, False, slow == "threads"]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, True),
        ({"early_stopping": "auto"}, True),
        ({"early_stopping": True}, False),
        ({"max_iter": 20}, False),
        ({"warm_start": True}, False),
    ],
)
def test_only_what_grows_alike_in_pieces_is_tried(
    changed: dict[str, Any], expected: bool
) -> None:
    assert can_be_tried(clone(TREES).set_params(**changed), 400) is expected


def test_stopping_early_and_other_models_are_left_alone() -> None:
    assert not can_be_tried(clone(TREES).set_params(early_stopping="auto"), 20_000)
    assert not can_be_tried(RandomForestClassifier(n_estimators=200), 400)


def test_the_final_fit_of_a_search_is_scikit_learns() -> None:
    pipe = make_pipeline(StandardScaler(), clone(TREES))
    space = {"histgradientboostingclassifier__learning_rate": [0.05, 0.1]}
    found = mlopt.ModelSearchCV(
        pipe, space, sampler="grid", n_trials=None, bandit=None, cv=2
    ).fit(X, y)
    with single_threaded():
        theirs = clone(pipe).set_params(**found.best_params_).fit(X, y)
    np.testing.assert_allclose(found.predict_proba(X), theirs.predict_proba(X))
