"""One by one: ensembles that grow, and everything else in one go."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mlopt
from mlopt.tuning.crews.chain import Names
from mlopt.tuning.crews.fitting import (
    Fold,
    Step,
    cut_params,
    fit_until,
    make_fold,
    train_step,
)
from mlopt.tuning.crews.growing import grows, members
from mlopt.tuning.crews.own import own_params
from mlopt.tuning.crews.prefixes import cut_rows, transform
from mlopt.tuning.crews.problem import Labels
from mlopt.tuning.crews.scoring import metrics_of
from mlopt.tuning.crews.splits import Split

X, y = make_classification(300, 6, random_state=0)
SPLIT = Split(np.arange(200), np.arange(200, 300))
LABELS = Labels(y, len(y))
ALONE: Names = ((), "")


def fold() -> Any:
    rows = transform(cut_rows(X, SPLIT), LABELS, "scale", StandardScaler(), SPLIT)
    return make_fold(rows, LABELS, ALONE, SPLIT)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(n_estimators=20, random_state=0),
        HistGradientBoostingClassifier(max_iter=20, early_stopping=False, random_state=0),
    ],
)
def test_growing_in_steps_equals_growing_at_once(model: Any) -> None:
    data, stepped = fold(), clone(model)
    assert not fit_until(stepped, model, data, Step(0, 3, 10, True))
    assert fit_until(stepped, model, data, Step(3, 10, 10, True))
    at_once = clone(model).fit(data.X, data.y)

    np.testing.assert_allclose(
        stepped.predict_proba(data.X_test), at_once.predict_proba(data.X_test)
    )


@pytest.mark.parametrize("validation", [0.1, None])
@pytest.mark.parametrize("patience", [1, 2, 3])
def test_boosting_that_stops_early_in_steps_stops_where_it_would_at_once(
    patience: int, validation: float | None
) -> None:
    """At the end of a step, too: it is not grown on from there."""
    noise = np.random.default_rng(0).random((3, len(y))) < 0.3
    for labels in np.where(noise, 1 - y, y):
        model = HistGradientBoostingClassifier(
            max_iter=20, max_leaf_nodes=4, early_stopping=True, n_iter_no_change=patience,
            validation_fraction=validation, tol=1e-2, learning_rate=0.5, random_state=0,
        )  # fmt: skip
        stepped, data = clone(model), Fold(X, labels)
        ends = (
            fit_until(stepped, model, data, Step(n, n + 1, 10, True)) for n in range(10)
        )
        assert any(ends)
        at_once = clone(model).fit(X, labels)
        assert stepped.n_iter_ == at_once.n_iter_
        np.testing.assert_array_equal(stepped.predict_proba(X), at_once.predict_proba(X))


@pytest.mark.parametrize(
    "model",
    [
        GradientBoostingClassifier(n_iter_no_change=2),
        RandomForestClassifier(oob_score=True),
        RandomForestClassifier(class_weight="balanced"),
        RandomForestClassifier(warm_start=True),
        type("Own", (RandomForestClassifier,), {})(),
    ],
)
def test_what_would_grow_into_another_model_is_fitted_in_one_go(model: Any) -> None:
    assert not grows(model)


def test_epochs_are_the_estimators_own() -> None:
    data, model = fold(), MLPClassifier((4,), max_iter=6, random_state=0)
    stepped = clone(model)
    with pytest.warns(ConvergenceWarning):
        assert fit_until(stepped, model, data, Step(0, 2, 6, True))
    with pytest.warns(ConvergenceWarning):
        at_once = clone(model).fit(data.X, data.y)

    np.testing.assert_array_equal(stepped.coefs_[0], at_once.coefs_[0])


@pytest.mark.parametrize("model", [GaussianNB(), LogisticRegression()])
def test_what_cannot_go_on_is_fitted_in_one_go(model: Any) -> None:
    assert fit_until(clone(model), model, fold(), Step(0, 1, 10, True))


def test_an_error_becomes_a_reason() -> None:
    broken = LogisticRegression(C=-1)
    metrics, step = metrics_of(None, broken, True), Step(0, 1, 1, False)
    report, model = train_step(fold(), None, broken, step, metrics, False)

    assert report.reason is not None
    assert report.reason.startswith("InvalidParameterError")
    assert "Traceback" in report.trace
    assert model is None


def test_weights_go_to_the_final_fit_or_are_refused() -> None:
    from sklearn.neighbors import KNeighborsClassifier

    labels = Labels(y, len(y), np.ones(300))
    weighted = make_fold(cut_rows(X, SPLIT), labels, ALONE, SPLIT)
    assert isinstance(weighted, Fold)
    model = KNeighborsClassifier()
    with pytest.raises(ValueError, match=r"KNeighborsClassifier\.fit does not take it"):
        fit_until(model, model, weighted, Step(0, 1, 1, False))


@pytest.mark.parametrize("name", ["weights by name", "whatever it is given"])
def test_weights_go_to_every_fit_that_takes_them(name: str) -> None:
    seen: list[Any] = []

    class Named(GaussianNB):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            seen.append(sample_weight)
            return super().fit(X, y, sample_weight)

    class HandsOn(GaussianNB):
        def fit(self, X: Any, y: Any, **fit_params: Any) -> Any:
            seen.append(fit_params["sample_weight"])
            return super().fit(X, y, **fit_params)

    model = Named() if name == "weights by name" else HandsOn()
    labels = Labels(y, len(y), np.arange(300.0))
    weighted = make_fold(cut_rows(X, SPLIT), labels, ALONE, SPLIT)
    assert isinstance(weighted, Fold)
    fit_until(model, model, weighted, Step(0, 1, 1, False))
    np.testing.assert_array_equal(seen[0], SPLIT.train)


@pytest.mark.parametrize("count", [0, -3, 2.5, "many"])
def test_no_count_of_members_is_made_of_what_is_none(count: Any) -> None:
    model = RandomForestClassifier(n_estimators=count)
    assert members(model) == 0
    with pytest.raises(ValueError, match="'n_estimators' parameter"):
        fit_until(clone(model), model, fold(), Step(0, 1, 10, True))


def test_fit_parameters_are_cut_where_they_have_a_row_each() -> None:
    held_out = [(X[:5], y[:5])]
    given = {"rows": list(range(300)), "eval_set": held_out, "flag": 3, "name": "x"}
    cut = cut_params(given, 300, SPLIT.train)
    assert cut["rows"] == list(range(200))
    assert cut["eval_set"] is held_out
    assert (cut["flag"], cut["name"]) == (3, "x")


class Counting(ClassifierMixin, BaseEstimator):
    """Counts rounds in a callback that it is given, as boosting that stops early does."""

    def __init__(self, rounds: int = 10) -> None:
        self.rounds = rounds

    def fit(self, X: Any, y: Any, callbacks: Any) -> Any:
        (callback,) = callbacks
        callback.seen = []
        for number in range(self.rounds):
            callback.seen.append(number)
            time.sleep(0.001)  # another fit takes its turn
        self.classes_, self.heard_ = np.unique(y), list(callback.seen)
        return self

    def transform(self, X: Any) -> Any:
        return np.full((len(X), 1), self.heard_ == list(range(self.rounds)))

    def score(self, X: Any, y: Any) -> float:
        return float(self.transform(X).all())


@pytest.mark.parametrize("where", ["alone", "a step"])
def test_fits_side_by_side_do_not_share_a_callback(where: str) -> None:
    model: Any = Counting()
    names = "rounds", "callbacks"
    if where == "a step":
        model = make_pipeline(Counting(), DecisionTreeClassifier(max_depth=1))
        names = "counting__rounds", "counting__callbacks"
    callback = SimpleNamespace(seen=None)
    space = {names[0]: [20, 21, 22, 23]}
    scoring = None if where == "alone" else _heard
    search = mlopt.ModelSearchCV(model, space, sampler="grid", scoring=scoring, n_jobs=2)
    search.fit(X, y, **{names[1]: [callback]})
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], 1.0)
    assert callback.seen == list(range(search.best_params_[names[0]]))  # of the final fit


def _heard(model: Any, X: Any, y: Any) -> float:
    return float(model[:-1].transform(X).all())


def test_what_a_fit_may_change_is_copied_for_it_and_data_are_not() -> None:
    rows, lock = np.ones(3), threading.Lock()
    counter = SimpleNamespace(seen=[rows])
    given = {"sets": [(rows, rows)], "calls": [counter, len], "lock": {"of": lock}}
    copied = own_params(given)
    assert copied["sets"] is given["sets"]
    assert copied["lock"] is given["lock"]
    mine, function = copied["calls"]
    assert mine is not counter
    assert function is len
    mine.seen.append(1)
    assert len(counter.seen) == 1
