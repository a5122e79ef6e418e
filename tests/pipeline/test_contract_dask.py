"""Dask collections: fitted in their chunks, applied lazily, scored."""

from __future__ import annotations

import logging
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.manifold import SpectralEmbedding
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder
from tests.pipeline.peers import assert_same, both, numbers, people

import mlopt

EXACT = LogisticRegression(tol=1e-8, max_iter=1000)
N = 6000


def columns() -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "fare"]),
            ("words", OneHotEncoder(), ["sex", "port"]),
        ]
    )


@pytest.mark.parametrize(
    "last", [EXACT, Ridge(), KNeighborsClassifier(3)], ids=lambda e: type(e).__name__
)
def test_arrays_are_fitted_in_chunks_and_predicted_lazily(last: Any) -> None:
    X, y = numbers(N)
    lazy_X, lazy_y = da.from_array(X, chunks=(2000, 3)), da.from_array(y, chunks=2000)
    ours, theirs = both([("scale", StandardScaler()), ("pca", PCA(3)), ("last", last)])
    ours.fit(lazy_X, lazy_y)
    theirs.fit(X, y)
    found = ours.predict(lazy_X)
    assert isinstance(found, da.Array)
    assert_same(found.compute(), theirs.predict(X))
    assert ours.score(lazy_X, lazy_y) == pytest.approx(theirs.score(X, y), abs=1e-3)
    w = np.linspace(0, 1, N)
    weighted = ours.score(lazy_X, lazy_y, sample_weight=w)
    assert weighted == pytest.approx(theirs.score(X, y, sample_weight=w), abs=1e-3)


@pytest.mark.slow
def test_tables_are_fitted_in_partitions() -> None:
    X, y = people(N)
    lazy_X = dd.from_pandas(X, npartitions=3)
    ours, theirs = both([("columns", columns()), ("clf", EXACT)])
    ours.fit(lazy_X, y)
    theirs.fit(X, y)
    assert ours[0].sparse_output_ == theirs[0].sparse_output_
    assert_same(ours.predict(lazy_X).compute(), theirs.predict(X))
    assert ours.score(lazy_X, y) == pytest.approx(theirs.score(X, y), abs=1e-3)


def test_transformed_rows_are_lazy() -> None:
    X, _ = numbers(N)
    lazy = da.from_array(X, chunks=(2000, 6))
    ours, theirs = both([("scale", StandardScaler()), ("pca", PCA(2))])
    found = ours.fit_transform(lazy)
    assert isinstance(found, da.Array)
    assert found.shape == (N, 2)
    assert_same(found.compute(), theirs.fit_transform(X))


def _cross_fitted() -> TargetEncoder:
    cv = KFold(3, shuffle=True, random_state=0)
    return TargetEncoder(target_type="continuous", smooth=0.01, cv=cv)


@pytest.mark.parametrize("whole", [mlopt.make_pipeline, mlopt.gather])
def test_rows_of_a_fit_are_not_encoded_with_their_own_targets(
    whole: Any, caplog: pytest.LogCaptureFixture
) -> None:
    X = np.repeat(np.arange(30.0), 2)[:, None]
    y = np.random.default_rng(0).normal(size=60)
    lazy = da.from_array(X, chunks=(20, 1))
    with caplog.at_level(logging.WARNING, "mlopt"):
        found = whole(_cross_fitted()).fit_transform(lazy, y)
    assert_same(found, _cross_fitted().fit_transform(X, y))
    assert "all rows of X are gathered for `fit_transform`" in caplog.text


@pytest.mark.parametrize("lazy", [False, True])
def test_the_last_step_may_have_no_transform(lazy: bool) -> None:
    X, _ = numbers(60)
    ours, theirs = both([("scale", StandardScaler()), ("map", SpectralEmbedding(2))])
    ours.set_params(map__random_state=0)
    theirs.set_params(map__random_state=0)
    found = ours.fit_transform(da.from_array(X, chunks=(20, 6)) if lazy else X)
    assert_same(np.abs(found), np.abs(theirs.fit_transform(X)))
