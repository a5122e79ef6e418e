"""Caching by ``memory``, metadata routing, `transform_input`: as scikit-learn does them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from tests.pipeline.peers import SIZES, assert_same, both, numbers

import mlopt


class Hears(TransformerMixin, BaseEstimator):
    """Keeps what ``fit`` was told."""

    def fit(self, X: Any, y: Any = None, *, word: Any = None) -> Hears:
        self.word_ = word
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        return X


class Judges(ClassifierMixin, BaseEstimator):
    """Predicts what it is told to."""

    def fit(self, X: Any, y: Any, *, word: Any = None) -> Judges:
        self.classes_ = np.unique(y)
        self.word_ = word
        return self

    def predict(self, X: Any, *, answer: Any = 0) -> Any:
        return np.full(len(X), answer)


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@SIZES
def test_steps_are_cached_in_memory_as_copies(n: int, tmp_path: Path) -> None:
    X, y = numbers(n)
    ours, theirs = both([("scale", StandardScaler()), ("clf", LogisticRegression())])
    scale = ours[0]
    for pipeline in (ours, theirs):
        pipeline.set_params(memory=str(tmp_path / type(pipeline).__module__)).fit(X, y)
    assert not hasattr(scale, "mean_")
    assert ours[0] is not scale
    assert_same(ours.predict(X), theirs.predict(X))
    assert list((tmp_path / type(ours).__module__).rglob("output.pkl"))


@SIZES
def test_arguments_of_fit_reach_their_step_alone(n: int) -> None:
    X, y = numbers(n)
    ours = mlopt.Pipeline([("hears", Hears()), ("judges", Judges())])
    ours.fit(X, y, hears__word="a", judges__word="b")
    assert (ours[0].word_, ours[1].word_) == ("a", "b")
    ours.fit(X, y)
    assert (ours[0].word_, ours[1].word_) == (None, None)


@SIZES
def test_arguments_of_predict_reach_the_last_step(n: int) -> None:
    X, y = numbers(n)
    ours = mlopt.Pipeline([("hears", Hears()), ("judges", Judges())]).fit(X, y)
    assert (ours.predict(X, answer=3) == 3).all()
    with pytest.raises(TypeError, match="nothing"):
        ours.predict(X, nothing=3)


@SIZES
def test_arguments_reach_steps_of_a_step(n: int) -> None:
    X, y = numbers(n)
    inner = mlopt.Pipeline([("hears", Hears())])
    ours = mlopt.Pipeline([("inner", inner), ("r", Ridge())])
    ours.fit(X, y, inner__hears__word="deep")
    assert inner[0].word_ == "deep"


@SIZES
@pytest.mark.usefixtures("routing")
def test_metadata_goes_to_whoever_asked_for_it(n: int) -> None:
    X, y = numbers(n)
    hears = Hears().set_fit_request(word=True)
    judges = Judges().set_fit_request(word=False).set_predict_request(answer=True)
    ours = mlopt.Pipeline([("hears", hears), ("judges", judges)])
    ours.fit(X, y, word="routed")
    assert (ours[0].word_, ours[1].word_) == ("routed", None)
    assert (ours.predict(X, answer=5) == 5).all()
    with pytest.raises(TypeError, match="nobody"):
        ours.fit(X, y, nobody=1)


@pytest.mark.usefixtures("routing")
def test_metadata_that_nobody_decided_about_is_an_error() -> None:
    X, y = numbers(60)
    ours, theirs = both([("hears", Hears()), ("judges", Judges())])
    for pipeline in (theirs, ours):
        with pytest.raises(ValueError, match="word"):
            pipeline.fit(X, y, word=1)


class Obeys(ClassifierMixin, BaseEstimator):
    """Knows whether metadata were routed while it was fitted."""

    def fit(self, X: Any, y: Any) -> Obeys:
        self.classes_ = np.unique(y)
        self.routed_ = sklearn.get_config()["enable_metadata_routing"]
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))


@SIZES
@pytest.mark.usefixtures("routing")
def test_routing_without_metadata_changes_no_plan(n: int) -> None:
    X, y = numbers(n)
    ours, theirs = both([("scale", StandardScaler()), ("clf", LogisticRegression())])
    theirs.fit(X, y)
    notes = "\n".join((*ours.fit(X, y).plan_.notes, *ours.explain(X, y).notes))
    assert "rules that changed the plan" in notes
    assert "routed" not in notes
    assert_same(ours.predict_proba(X), theirs.predict_proba(X))
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-3)
    ours["scale"].set_fit_request(sample_weight=False)
    ours["clf"].set_fit_request(sample_weight=True)
    assert "metadata are routed: `sample_weight`" in "\n".join(
        ours.fit(X, y, sample_weight=np.ones(n)).plan_.notes
    )


@SIZES
@pytest.mark.usefixtures("routing")
def test_steps_that_ask_whether_metadata_are_routed_are_told(n: int) -> None:
    X, y = numbers(n)
    ours = mlopt.Pipeline([("scale", StandardScaler()), ("obeys", Obeys())])
    assert ours.fit(X, y)[-1].routed_
    rows = da.from_array(X, chunks=(n // 3, -1))
    assert ours.fit(rows, da.from_array(y, chunks=n // 3))[-1].routed_


@pytest.mark.usefixtures("routing")
def test_rows_of_dask_stay_lazy_where_no_metadata_are_given(caplog: Any) -> None:
    X, y = numbers(300)
    rows, targets = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    ours, theirs = both([("scale", StandardScaler()), ("clf", LogisticRegression())])
    theirs.fit(X, y)
    with caplog.at_level(logging.WARNING, "mlopt"):
        found = ours.fit(rows, targets).predict(rows)
    assert isinstance(found, da.Array)
    assert "gathered" not in caplog.text
    assert_same(found.compute(), theirs.predict(X))
    part = mlopt.gather(StandardScaler(), MinMaxScaler())
    assert isinstance(part.fit(rows).transform(rows), da.Array)


@pytest.mark.usefixtures("routing")
def test_what_gathers_rows_of_dask_says_which_metadata_it_is_for(caplog: Any) -> None:
    X, y = numbers(300)
    rows, targets = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    clf = LogisticRegression().set_score_request(sample_weight=True)
    ours = mlopt.Pipeline([("scale", StandardScaler()), ("clf", clf)]).fit(rows, targets)
    with caplog.at_level(logging.WARNING, "mlopt"):
        ours.score(rows, targets, sample_weight=np.ones(300))
    assert "`sample_weight` given: scikit-learn's own loop runs" in caplog.text


@SIZES
def test_steps_that_ask_for_metadata_are_planned_without(n: int) -> None:
    X, y = numbers(n)
    with sklearn.config_context(enable_metadata_routing=True):
        scale = StandardScaler().set_fit_request(sample_weight=True)
        clf = LogisticRegression().set_score_request(sample_weight=False)
    ours, theirs = both([("scale", scale), ("clf", clf)])
    assert "rules that changed" in "\n".join(ours.fit(X, y).plan_.notes)
    assert_same(ours.predict(X), theirs.fit(X, y).predict(X))
    assert str(ours.get_metadata_routing()) == str(theirs.get_metadata_routing())


@pytest.mark.usefixtures("routing")
def test_a_score_without_weights_is_refused_as_there() -> None:
    X, y = numbers(60)
    ridge = Ridge().set_score_request(sample_weight=False)
    for pipeline in both([("scale", StandardScaler()), ("r", ridge)]):
        with pytest.raises(TypeError, match="not routed"):
            pipeline.fit(X, y).score(X, y)


@SIZES
@pytest.mark.usefixtures("routing")
def test_weights_are_routed_through_a_union(n: int) -> None:
    X, y = numbers(n)
    w = np.random.default_rng(0).uniform(size=n)
    scale = StandardScaler().set_fit_request(sample_weight=True)
    parts = [("scale", scale), ("range", MinMaxScaler())]
    ridge = Ridge().set_fit_request(sample_weight=True)
    ours, theirs = both([("union", FeatureUnion(parts)), ("r", ridge)])
    ours.fit(X, y, sample_weight=w)
    theirs.fit(X, y, sample_weight=w)
    assert_same(ours.predict(X), theirs.predict(X))
    assert str(ours.get_metadata_routing()) == str(theirs.get_metadata_routing())


def test_transform_input_needs_routing() -> None:
    X, y = numbers(60)
    ours, theirs = both([("scale", StandardScaler()), ("r", Ridge())])
    for pipeline in (theirs, ours):
        pipeline.set_params(transform_input=["X_val"])
        with pytest.raises(ValueError, match="metadata"):
            pipeline.fit(X, y)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "score", "transform"])
def test_before_a_fit_methods_say_so(method: str) -> None:
    last = StandardScaler() if method == "transform" else LogisticRegression()
    X, y = numbers(60)
    for pipeline in both([("first", MinMaxScaler()), ("last", last)]):
        call = getattr(pipeline, method)
        with pytest.raises(NotFittedError):
            call(X, y) if method == "score" else call(X)


def test_a_failed_fit_leaves_steps_unfitted() -> None:
    X, _ = numbers(60)
    ours = mlopt.Pipeline([("scale", StandardScaler()), ("clf", LogisticRegression())])
    with pytest.raises(ValueError, match="`clf`"):
        ours.fit(X, np.zeros(60))
    assert not hasattr(ours[0], "mean_")
