"""`score` of a pipeline: what scikit-learn gives, from predictions made block by block."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
import sklearn.pipeline
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.pipeline.fits import applying as fits
from mlopt.pipeline.tasks import functions

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6000, 4))
TARGETS = {"class": (X[:, 0] > 0.2).astype(int), "number": X @ [1.0, 2.0, 0.0, -1.0]}
WEIGHTS = RNG.uniform(size=6000)
LAST = [(LogisticRegression(), "class"), (Ridge(), "number")]


@pytest.mark.parametrize(("last", "kind"), LAST)
@pytest.mark.parametrize("weight", [None, WEIGHTS])
def test_scores_are_those_of_scikit_learn(last: Any, kind: str, weight: Any) -> None:
    y = TARGETS[kind] + (0.5 * RNG.normal(size=6000) if kind == "number" else 0)
    ours = mlopt.make_pipeline(StandardScaler(), clone(last)).fit(X, y)
    theirs = sklearn.pipeline.make_pipeline(StandardScaler(), clone(last)).fit(X, y)

    found = ours.score(X, y, sample_weight=weight)
    assert found == pytest.approx(theirs.score(X, y, sample_weight=weight), abs=1e-3)


def test_many_rows_are_scored_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    y = TARGETS["class"]
    pipe = mlopt.make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    blocks = []
    apply_fitted = fits.apply_fitted

    def seen(model: Any, rows: Any, method: str) -> Any:
        if method == "predict":
            blocks.append(len(rows))
        return apply_fitted(model, rows, method)

    monkeypatch.setattr(functions, "apply_fitted", seen)
    assert pipe.score(X, y) == np.mean(pipe.predict(X) == y)
    assert len(blocks) > 2
    assert sum(blocks) == 2 * len(X)


class Rounded(BaseEstimator, RegressorMixin):
    """Of numbers, though its tags, in this order of bases, do not say so."""

    def fit(self, X: Any, y: Any) -> Rounded:
        self.model_ = Ridge().fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return np.rint(self.model_.predict(X)).astype(int)


class Above(BaseEstimator, ClassifierMixin):
    """Of classes, whose tags do not say so either."""

    def fit(self, X: Any, y: Any) -> Above:
        self.classes_, self.model_ = np.unique(y), Ridge().fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return (self.model_.predict(X) > 0.5).astype(int)


@pytest.mark.parametrize("last", [Rounded(), Above()])
def test_who_scores_by_mixin_scores_as_that_does(last: Any) -> None:
    y = np.rint(TARGETS["number"]) if isinstance(last, Rounded) else TARGETS["class"]
    ours = mlopt.make_pipeline(StandardScaler(), clone(last)).fit(X, y)
    theirs = sklearn.pipeline.make_pipeline(StandardScaler(), clone(last)).fit(X, y)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y))
    by_search = mlopt.ModelSearchCV(
        ours, {"standardscaler__with_mean": [True]}, sampler="grid", n_trials=None, cv=2
    )
    plain = GridSearchCV(theirs, {"standardscaler__with_mean": [True]}, cv=2)
    best = by_search.fit(X, y).best_score_
    assert best == pytest.approx(plain.fit(X, y).best_score_)


def test_a_score_of_its_own_is_used() -> None:
    pipe = mlopt.make_pipeline(StandardScaler(), KMeans(3, n_init=1, random_state=0))
    pipe.fit(X)
    assert pipe.score(X) == pytest.approx(pipe[-1].score(pipe[0].transform(X)))


def test_a_pipeline_within_is_scored_by_its_predictions(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows = da.from_array(X, chunks=(1000, -1))
    y = TARGETS["class"]
    within = sklearn.pipeline.make_pipeline(StandardScaler(), LogisticRegression())
    pipe = mlopt.make_pipeline(within).fit(X, y)
    assert pipe.score(rows, y, sample_weight=WEIGHTS) == pytest.approx(
        within.fit(X, y).score(X, y, sample_weight=WEIGHTS), abs=1e-3
    )
    assert not caplog.records  # of rows that were gathered
