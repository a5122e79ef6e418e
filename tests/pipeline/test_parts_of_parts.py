"""Pipelines of parts that hold others, fitted and not, and of what a sample lacks."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

import dask
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import VotingRegressor
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mlopt
from mlopt.pipeline.blocks.cut import usable
from mlopt.pipeline.environment import environment
from mlopt.pipeline.fits.few import Few
from mlopt.pipeline.fits.models.classifiers import Logistic
from mlopt.pipeline.fits.models.clusters import KMeans as OurKMeans
from mlopt.pipeline.fits.numbers.drawing import Drawn
from mlopt.pipeline.library.mixture import GaussianMixture
from mlopt.rows import Rows
from mlopt.stats import Stats

RANDOM = np.random.default_rng(0)
X = RANDOM.random((5000, 2))
Y = X.sum(axis=1)


def columns() -> Any:
    """A regressor over a part of the columns."""
    return make_pipeline(make_column_transformer((StandardScaler(), [0, 1])), Ridge())


@pytest.mark.parametrize(
    "model",
    [
        TransformedTargetRegressor(columns(), func=np.log1p, inverse_func=np.expm1),
        VotingRegressor([("a", columns()), ("b", Ridge())]),
        GridSearchCV(columns(), {"ridge__alpha": [0.1, 1.0]}, cv=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_last_step_may_hold_columns_that_are_not_fitted(model: Any) -> None:
    expected = make_pipeline(model).fit(X, Y).predict(X)
    found = mlopt.make_pipeline(model).fit(X, Y)
    np.testing.assert_allclose(found.predict(X), expected)
    assert found.explain(X, method="predict").choices


def halve(X: NDArray[np.float64]) -> NDArray[np.float64]:
    X *= 0.5
    return X


def test_parts_that_write_are_fitted_as_scikit_learn_does() -> None:
    parts = FunctionTransformer(halve), StandardScaler()
    expected = make_union(*parts).fit_transform(X.copy())
    np.testing.assert_allclose(mlopt.gather(*parts).fit_transform(X.copy()), expected)
    again, theirs = (make(*parts).fit(X.copy()) for make in (mlopt.gather, make_union))
    np.testing.assert_allclose(again.transform(X.copy()), theirs.transform(X.copy()))
    model = mlopt.make_pipeline(mlopt.gather(*parts), Ridge()).fit(X.copy(), Y)
    theirs = make_pipeline(make_union(*parts), Ridge()).fit(X.copy(), Y)
    np.testing.assert_allclose(model[-1].coef_, theirs[-1].coef_)


def test_a_sample_without_a_weighted_class_tells_nothing() -> None:
    few = Few(X[:200], np.arange(200) % 2)
    way = Logistic("lbfgs")
    model = LogisticRegression(class_weight={2: 20.0})
    assert way.speculate(model, few, Stats(10**6, 2, 3)) is None
    assert way.speculate(LogisticRegression(), few, Stats(10**6, 2, 1)) is not None


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_all_rows_of_a_step_that_draws_are_looked_at(wrong: float) -> None:
    rows = X.copy()
    rows[4321, 1] = wrong
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        Drawn().learn(RBFSampler(), rows, None, None)
    assert Drawn().learn(RBFSampler(), X, None, None).row.shape == (1, 2)


def test_mixtures_and_columns_of_frames_predict_labels() -> None:
    model = GaussianMixture(2, random_state=0).set_output(transform="pandas").fit(X)
    assert model.predict(X).shape == (len(X),)
    assert isinstance(model.predict_proba(X), np.ndarray)
    assert isinstance(model.transform(X), pd.DataFrame)


@pytest.mark.skipif(sys.platform == "win32", reason="has no forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks beside threads
def test_a_fork_finds_what_is_remembered_open() -> None:
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        with environment._lock, environment._models._lock:
            held.set()
            go.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(60)
    child = os.fork()
    if not child:
        signal.alarm(20)
        with dask.config.set({"mlopt.reuse-models": "1MB"}):
            environment.put("a fork's", 1.0)
        len(environment)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    go.set()
    thread.join()
    assert status == 0


def test_a_list_of_texts_is_not_made_as_wide_as_its_longest() -> None:
    texts = ["a" * 10_000_000, *["b"] * 5000]  # 200 GB as an array of characters
    assert usable(texts) is texts


def test_clusters_with_centres_of_their_own_begin_once_and_say_so() -> None:
    model = KMeans(2, init=X[:2], n_init=4)
    with pytest.warns(RuntimeWarning, match="performing only one init in KMeans"):
        OurKMeans().fit(model, Rows.of(X), None, None)
