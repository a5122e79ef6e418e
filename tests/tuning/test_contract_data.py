"""What a search is given: anything that `GridSearchCV` takes, cut into folds as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import mlopt
from mlopt.errors import InputError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
y = (X[:, 0] + 0.5 * RNG.normal(size=60) > 0).astype(int)


def grid(estimator: Any, space: Any, **settings: Any) -> mlopt.ModelSearchCV:
    given = {"sampler": "grid", "n_trials": None, "bandit": None, "cv": 3} | settings
    return mlopt.ModelSearchCV(estimator, space, **given)


class Noting(ClassifierMixin, BaseEstimator):
    """Notes the types and the arguments of its fits."""

    seen: Sequence[Any] = []

    def __init__(self, constant: int = 0) -> None:
        self.constant = constant

    def fit(self, X: Any, y: Any, **params: Any) -> Noting:
        type(self).seen = [*self.seen, (X, y, params)]
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.constant)


@pytest.fixture
def noting() -> type[Noting]:
    return type("Noting", (Noting,), {"seen": []})


def test_texts_are_cut_as_they_are() -> None:
    texts = [f"{'good' if label else 'bad'} word{i % 7}" for i, label in enumerate(y)]
    pipe = make_pipeline(CountVectorizer(), MultinomialNB())
    space = {"multinomialnb__alpha": [0.1, 1.0]}
    ours, theirs = grid(pipe, space).fit(texts, y), GridSearchCV(pipe, space, cv=3)
    theirs.fit(texts, y)
    np.testing.assert_array_equal(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize("shape", [(60,), (60, 2, 3)])
def test_rows_of_any_shape_are_cut(shape: tuple[int, ...], noting: type[Noting]) -> None:
    grid(noting(), {"constant": [0, 1]}).fit(np.ones(shape), y)
    assert {np.shape(seen)[1:] for seen, _, _ in noting.seen} == {shape[1:]}


def test_targets_stay_what_they_are(noting: type[Noting]) -> None:
    series = pd.Series(y, index=np.arange(100, 160))
    grid(noting(), {"constant": [0, 1]}).fit(pd.DataFrame(X), series)
    assert {type(target) for _, target, _ in noting.seen} == {pd.Series}
    noting.seen = []
    grid(noting(), {"constant": [0, 1]}).fit(X.tolist(), y.tolist())
    assert {(type(rows), type(target)) for rows, target, _ in noting.seen} == {(list, list)}


def test_fit_parameters_without_rows_are_passed_on_untouched(noting: type[Noting]) -> None:
    held_out = [(X[:5], y[:5])]
    rows = list(range(60))
    search = grid(noting(), {"constant": [0, 1]}, refit=False)
    search.fit(X, y, eval_set=held_out, patience=3, names=["a", "b"], rows=rows)
    for fold, _, given in noting.seen:
        assert given["eval_set"] is held_out
        assert (given["patience"], given["names"]) == (3, ["a", "b"])
        assert len(given["rows"]) == len(fold)


def test_polars_frames_are_searched_as_in_scikit_learn() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(X, schema=list("abcd"))
    model, space = LogisticRegression(), {"C": [0.1, 1.0]}
    ours = grid(model, space).fit(frame, polars.Series(y))
    theirs = GridSearchCV(model, space, cv=3).fit(frame, y)
    assert list(ours.feature_names_in_) == list("abcd")
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize("model", [Ridge(), LogisticRegression()])
def test_half_precision_behind_steps_is_computed_with_in_doubles(model: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)).astype(np.float16)
    y = (X[:, 0] + rng.normal(size=90) > 0).astype(int)
    steps = make_pipeline(StandardScaler(), model)
    found = mlopt.ModelSearchCV(steps, {"fit_intercept": [True, False]}, cv=3).fit(X, y)
    expected = clone(steps).set_params(**found.best_params_).fit(X, y)
    assert found.best_estimator_[-1].coef_.dtype == expected[-1].coef_.dtype
    assert found.predict(X).dtype == expected.predict(X).dtype


@pytest.mark.parametrize("which", ["X", "y"])
def test_masked_arrays_are_refused(which: str) -> None:
    given = {"X": X, "y": y}
    given[which] = np.ma.MaskedArray(given[which], given[which] > 0)
    with pytest.raises(InputError, match=f"`{which}` must not be a masked array"):
        grid(LogisticRegression(), {"C": [1.0]}).fit(**given)


def test_kernels_are_cut_by_rows_and_columns() -> None:
    kernel, space = X @ X.T, {"C": [0.1, 1.0]}
    model = SVC(kernel="precomputed")
    ours = grid(model, space).fit(kernel, y)
    theirs = GridSearchCV(model, space, cv=3).fit(kernel, y)
    np.testing.assert_array_equal(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )
    with pytest.raises(InputError, match="square kernel matrix"):
        grid(model, space).fit(X, y)


@pytest.mark.parametrize("kernels", [["precomputed", "rbf"], ["rbf", "precomputed"]])
def test_kernels_and_other_models_read_rows_of_their_own(kernels: list[str]) -> None:
    kernel, space = X @ X.T, {"kernel": kernels}
    ours = grid(SVC(), space).fit(kernel, y).cv_results_["mean_test_score"]
    theirs = GridSearchCV(SVC(), space, cv=3).fit(kernel, y).cv_results_
    np.testing.assert_array_equal(ours, theirs["mean_test_score"])


def test_a_list_of_grids_is_searched_one_after_the_other() -> None:
    space = [{"kernel": ["linear"], "C": [0.1, 1]}, {"kernel": ["rbf"], "gamma": [0.1, 1]}]
    ours, theirs = grid(SVC(), space).fit(X, y), GridSearchCV(SVC(), space, cv=3).fit(X, y)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    assert ours.best_params_ == theirs.best_params_
    for name in ("param_C", "param_gamma", "param_kernel"):
        np.testing.assert_array_equal(
            ours.cv_results_[name].mask, theirs.cv_results_[name].mask
        )
        assert ours.cv_results_[name].dtype == theirs.cv_results_[name].dtype


def test_a_splitter_sees_rows_targets_and_groups() -> None:
    class ByRows(KFold):
        def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
            seen.append((X, y, groups))
            return super().split(X, y)

    seen: list[Any] = []
    frame, series, groups = pd.DataFrame(X), pd.Series(y), np.arange(60) // 6
    grid(LogisticRegression(), {"C": [1.0]}, cv=ByRows(3)).fit(frame, series, groups=groups)
    assert seen[0][0] is frame
    assert seen[0][1] is series
    assert seen[0][2] is groups


def test_metadata_goes_to_who_asks_for_it() -> None:
    weights = np.linspace(0.1, 2.0, 60)
    with sklearn.config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=False)
        space = {"C": [0.1, 1.0]}
        ours = grid(model, space).fit(X, y, sample_weight=weights)
        theirs = GridSearchCV(model, space, cv=3).fit(X, y, sample_weight=weights)
        asked = [one.best_estimator_.get_metadata_routing() for one in (ours, theirs)]
    np.testing.assert_allclose(ours.best_estimator_.coef_, theirs.best_estimator_.coef_)
    np.testing.assert_array_equal(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )
    assert str(asked[0]) == str(asked[1])


def test_the_final_fit_of_boosting_gives_steps_what_they_ask_for() -> None:
    weights = np.where(np.arange(60) % 2, 1.0, 1e-3)
    with sklearn.config_context(enable_metadata_routing=True):
        last = HistGradientBoostingRegressor(random_state=0)
        last.set_fit_request(sample_weight=False)
        scorer = get_scorer("r2").set_score_request(sample_weight=False)
        steps = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), last)
        space = {"histgradientboostingregressor__learning_rate": [0.1]}
        given: dict[str, Any] = {"cv": 3, "scoring": scorer}
        ours = grid(steps, space, **given).fit(X, X[:, 0], sample_weight=weights)
        theirs = GridSearchCV(steps, space, **given).fit(X, X[:, 0], sample_weight=weights)
    np.testing.assert_array_equal(
        ours.best_estimator_[0].mean_, theirs.best_estimator_[0].mean_
    )
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_families_get_what_they_all_ask_for() -> None:
    weights = np.linspace(0.1, 2.0, 60)
    with sklearn.config_context(enable_metadata_routing=True):
        asks = Ridge().set_fit_request(sample_weight=True)
        asks.set_score_request(sample_weight=False)
        space = {"alpha": [0.1]}
        ours = grid({"a": (asks, space)}, None).fit(X, y, sample_weight=weights)
        theirs = GridSearchCV(asks, space, cv=3).fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(ours.best_estimator_.coef_, theirs.best_estimator_.coef_)
        other = Ridge().set_fit_request(sample_weight=False)
        other.set_score_request(sample_weight=True)
        with pytest.raises(InputError, match="All families must ask for the same"):
            grid({"a": (asks, space), "b": (other, space)}, None).fit(
                X, y, sample_weight=weights
            )


@pytest.mark.parametrize("drawn", [False, True], ids=["generator", "random_state"])
def test_explain_takes_no_split_from_fit(*, drawn: bool) -> None:
    def splits() -> Any:
        generator = np.random.RandomState(3)
        cv = KFold(3, shuffle=True, random_state=generator if drawn else 3)
        return cv if drawn else cv.split(X)

    ours = grid(LogisticRegression(), {"C": [0.1, 1.0]}, cv=splits())
    ours.explain(X, y)
    theirs = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=splits()).fit(X, y)
    scores = ours.fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(scores, theirs.cv_results_["mean_test_score"], atol=0.02)


def test_an_unknown_argument_of_predict_is_refused_in_scikit_learns_words() -> None:
    said = []
    for make in (grid, GridSearchCV):
        found = make(LogisticRegression(), {"C": [1.0]}, cv=3).fit(X, y)
        with pytest.raises(TypeError) as caught:
            found.predict(X, check_input=False)
        said.append(str(caught.value))
    assert said[0] == said[1]
