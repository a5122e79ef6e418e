"""Fitting leaves behind what scikit-learn's own pipeline leaves behind."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import dask
import joblib
import numpy as np
import pytest
from sklearn.cluster import FeatureAgglomeration, KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    StandardScaler,
)
from tests.pipeline.peers import SIZES, assert_same, both, numbers

import mlopt
from mlopt.pipeline.environment import environment

EXACT = LogisticRegression(tol=1e-8, max_iter=1000)


class Duck:
    """All that a step must have, and no more."""

    def fit(self, X: Any, y: Any = None) -> Duck:
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X: Any) -> Any:
        return X - self.mean_


STEPS = [("scale", StandardScaler()), ("pca", PCA(3)), ("clf", EXACT)]


def learnt(estimator: Any) -> set[str]:
    return {name for name in vars(estimator) if name.endswith("_")}


@SIZES
@pytest.mark.parametrize(
    "steps",
    [
        STEPS,
        [("scale", StandardScaler()), ("ridge", Ridge())],
        [("norm", Normalizer()), ("abs", FunctionTransformer(np.abs)), ("ridge", Ridge())],
        [("best", SelectKBest(k=3)), ("ridge", Ridge())],
        [("from", SelectFromModel(EXACT)), ("ridge", Ridge())],
        [("nothing", "passthrough"), ("none", None), ("ridge", Ridge())],
        [("scale", StandardScaler()), ("near", KNeighborsClassifier(3))],
    ],
    ids=lambda steps: "-".join(name for name, _ in steps),
)
def test_steps_learn_in_place_what_scikit_learn_s_learn(n: int, steps: Any) -> None:
    X, y = numbers(n)
    ours, theirs = both(steps)
    before = [step for _, step in ours.steps]
    assert ours.fit(X, y) is ours
    theirs.fit(X, y)
    for (_, mine), was, (_, other) in zip(ours.steps, before, theirs.steps, strict=True):
        assert mine is was
        if hasattr(other, "fit"):
            assert learnt(mine) == learnt(other)
    assert ours.n_features_in_ == 6 if hasattr(theirs, "n_features_in_") else True
    assert_same(ours.predict(X), theirs.predict(X))
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-3)


@SIZES
def test_a_step_need_not_be_of_scikit_learn(n: int) -> None:
    X, y = numbers(n)
    duck = Duck()
    ours = mlopt.Pipeline([("duck", duck), ("ridge", Ridge())]).fit(X, y)
    assert ours[0] is duck
    np.testing.assert_allclose(duck.mean_, X.mean(axis=0))
    theirs = Ridge().fit(X - X.mean(axis=0), y)
    assert_same(ours.predict(X), theirs.predict(X - X.mean(axis=0)))


@SIZES
def test_all_methods_of_a_classifier_agree(n: int) -> None:
    X, y = numbers(n)
    ours, theirs = both(STEPS)
    ours.fit(X, y)
    theirs.fit(X, y)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        result = getattr(ours, method)(X)
        assert_same(result, getattr(theirs, method)(X), rtol=1e-3, atol=1e-4)
    assert list(ours.classes_) == list(theirs.classes_)


@SIZES
def test_transformers_go_there_and_back(n: int) -> None:
    X, _ = numbers(n)
    ours, theirs = both([("scale", StandardScaler()), ("pca", PCA(3))])
    assert_same(ours.fit_transform(X), theirs.fit_transform(X))
    assert_same(ours.transform(X), theirs.transform(X))
    Z = theirs.transform(X)
    assert_same(ours.inverse_transform(Z), theirs.inverse_transform(Z))


@SIZES
def test_clusters_are_fitted_and_predicted(n: int) -> None:
    X, _ = numbers(n)
    steps = [("scale", StandardScaler()), ("near", KMeans(3, n_init=1, random_state=0))]
    ours, theirs = both(steps)
    assert_same(ours.fit_predict(X), theirs.fit_predict(X))
    assert_same(ours.fit_transform(X), theirs.fit_transform(X))
    assert_same(ours.fit(X).predict(X), theirs.fit(X).predict(X))


@SIZES
def test_weights_of_rows_reach_the_steps_they_are_for(n: int) -> None:
    X, y = numbers(n)
    w = np.random.default_rng(1).uniform(size=n)
    ours, theirs = both([("scale", StandardScaler()), ("clf", EXACT)])
    for pipeline in (ours, theirs):
        pipeline.fit(X, y, clf__sample_weight=w, scale__sample_weight=w)
    np.testing.assert_allclose(ours[0].mean_, theirs[0].mean_, rtol=1e-10)
    np.testing.assert_allclose(ours[1].coef_, theirs[1].coef_, rtol=1e-3)
    weighted = ours.score(X, y, sample_weight=w)
    assert weighted == pytest.approx(theirs.score(X, y, sample_weight=w), abs=1e-3)


@SIZES
def test_frozen_models_stay_as_they_are_and_are_told_apart(n: int) -> None:
    X, y = numbers(n)
    for data in (X, 2 * X + 1):
        steps = [
            ("scale", FrozenEstimator(StandardScaler().fit(data))),
            ("r", Ridge(100.0)),
        ]
        ours, theirs = both(steps)
        assert_same(ours.fit(X, y).predict(X), theirs.fit(X, y).predict(X))


@SIZES
def test_a_model_fitted_before_is_used_where_the_step_says_so(n: int) -> None:
    X, y = numbers(n)
    for column in (0, 3):
        model = LogisticRegression(C=0.1).fit(X, X[:, column] > 0)
        select = SelectFromModel(model, prefit=True, max_features=1)
        ours = mlopt.Pipeline([("select", select), ("r", Ridge())]).fit(X, y)
        assert ours["select"].estimator is model
        assert list(ours["select"].get_support(indices=True)) == [column]


@SIZES
def test_a_warm_start_goes_on_where_it_was(n: int) -> None:
    X, y = numbers(n)
    forest = RandomForestClassifier(3, warm_start=True, random_state=0)
    ours, theirs = both([("scale", StandardScaler()), ("forest", forest)])
    for pipeline in (ours, theirs):
        pipeline.fit(X, y)
        first = pipeline[-1].estimators_[0]
        pipeline.set_params(forest__n_estimators=5).fit(X, y)
        assert len(pipeline[-1].estimators_) == 5
    np.testing.assert_array_equal(
        ours[-1].estimators_[0].tree_.threshold, first.tree_.threshold
    )


@SIZES
def test_what_is_remembered_does_not_change_with_the_steps(n: int) -> None:
    X, y = numbers(n)
    environment.clear()
    with dask.config.set({"mlopt.reuse-models": "1GiB"}):
        first, _ = both([("scale", StandardScaler()), ("r", Ridge())])
        first.fit(X, y)
        mean = first[0].mean_.copy()
        first[0].mean_[:] = 100.0
        second, _ = both([("scale", StandardScaler()), ("r", Ridge())])
        before = environment.hits
        np.testing.assert_array_equal(second.fit(X, y)[0].mean_, mean)
        assert environment.hits > before


@SIZES
def test_all_steps_are_fitted_though_the_last_was_learnt_before(n: int) -> None:
    X, y = numbers(n)
    for _ in range(2):
        ours, _ = both(
            [
                ("opaque", FeatureAgglomeration(3)),
                ("abs", FunctionTransformer(np.abs)),
                ("r", Ridge()),
            ]
        )
        ours.fit(X, y)
        assert ours[0].n_features_in_ == 6
        assert ours.predict(X).shape == (n,)


@SIZES
def test_a_fitted_pipeline_survives_pickle_and_joblib(n: int, tmp_path: Path) -> None:
    X, y = numbers(n)
    ours, _ = both(STEPS)
    ours.fit(X, y)
    joblib.dump(ours, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(ours)), joblib.load(tmp_path / "model")):
        assert_same(copy.predict_proba(X), ours.predict_proba(X))
        assert copy.plan_.explain() == ours.plan_.explain()


@pytest.mark.slow
@SIZES
def test_searches_and_cross_validation_take_a_pipeline(n: int) -> None:
    X, y = numbers(n)
    ours, theirs = both([("scale", StandardScaler()), ("clf", EXACT)])
    scores = [cross_val_score(p, X, y, cv=3) for p in (ours, theirs)]
    np.testing.assert_allclose(scores[0], scores[1], atol=2e-3)
    grids = [GridSearchCV(p, {"clf__C": [1e-4, 1.0]}, cv=3) for p in (ours, theirs)]
    for grid in grids:
        grid.fit(X, y)
    assert grids[0].best_params_ == grids[1].best_params_
    assert type(grids[0].best_estimator_) is mlopt.Pipeline


def test_lines_are_printed_where_verbose_is_set(capsys: Any) -> None:
    ours, theirs = both(STEPS)
    for pipeline in (theirs, ours):
        pipeline.set_params(verbose=True).fit(*numbers(60))
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 3
        assert "(step 1 of 3) Processing scale" in lines[0]
        assert "total=" in lines[2]


def test_nobody_draws_from_the_generators_of_the_process() -> None:
    texts = [f"some words {number} {number % 7}" for number in range(300)]
    settings = {"mlopt.plan": "always", "mlopt.reuse-models": "1GiB"}
    numpy, plain = str(np.random.get_state()), random.getstate()  # noqa: NPY002
    with dask.config.set(settings):
        pipe = mlopt.Pipeline([("words", CountVectorizer()), ("model", EXACT)])
        pipe.fit(texts, np.arange(300) % 2).predict(texts)
    environment.clear()
    assert str(np.random.get_state()) == numpy  # noqa: NPY002
    assert random.getstate() == plain
