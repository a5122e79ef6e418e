"""Steps and data that are unusual, and yet what scikit-learn takes."""

from __future__ import annotations

from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    StandardScaler,
)

import mlopt
from mlopt.errors import InputError

N = 6000
NAMES = list("abcd")


def numbers(n: int = N) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


class Silent(BaseEstimator):
    """Its `fit` returns nothing."""

    def fit(self, X: Any, y: Any = None) -> None:
        self.mean_ = float(np.mean(y))

    def predict(self, X: Any) -> Any:
        return np.full(X.shape[0], self.mean_)


@pytest.mark.parametrize("n", [100, N])
def test_a_last_step_whose_fit_returns_nothing_is_fitted(n: int) -> None:
    X, y = numbers(n)
    found = mlopt.make_pipeline(StandardScaler(), Silent()).fit(X, y)
    np.testing.assert_array_equal(found.predict(X), np.full(n, y.mean()))


@pytest.mark.parametrize("kind", [sp.coo_matrix, sp.coo_array, sp.csc_array, sp.lil_array])
def test_sparse_rows_of_any_format_are_fitted_and_predicted(kind: Any) -> None:
    _, y = numbers()
    X = sp.random_array((N, 10), density=0.3, rng=np.random.default_rng(0), format="csr")
    expected = make_pipeline(MaxAbsScaler(), Ridge()).fit(X, y).predict(X)
    found = mlopt.make_pipeline(MaxAbsScaler(), Ridge()).fit(kind(X), y)
    np.testing.assert_allclose(found.predict(kind(X)), expected, atol=2e-3)
    scaled = mlopt.make_pipeline(MaxAbsScaler()).fit(kind(X)).transform(kind(X))
    assert sp.issparse(scaled)


def test_rows_of_zeros_are_rows() -> None:
    _, y = numbers()
    X = sp.csr_array((N, 10))
    for model in (LogisticRegression(), mlopt.LogisticRegression(), mlopt.LinearSVC()):
        found = mlopt.make_pipeline(MaxAbsScaler(), model).fit(X, y)
        assert set(found.predict(X)) == {int(y.mean() > 0.5)}
        assert not found[-1].coef_.any()


@pytest.mark.parametrize("rows", [40, 5000])
def test_an_arrow_table_is_a_frame_to_predict_as_well(rows: int) -> None:
    frame = pd.DataFrame({"a": ["x", "y"] * (rows // 2), "b": np.arange(float(rows))})
    table, y = pa.Table.from_pandas(frame), np.arange(rows) % 2
    dummies = FunctionTransformer(pd.get_dummies)
    pipeline = mlopt.make_pipeline(dummies, LogisticRegression()).fit(table, y)
    np.testing.assert_array_equal(pipeline.predict(table), pipeline.predict(frame))
    assert pipeline.score(table, y) == pipeline.score(frame, y)


def test_an_arrow_table_is_a_frame() -> None:
    X, y = numbers()
    frame = pd.DataFrame(X, columns=NAMES)
    steps = StandardScaler(), Ridge()
    found = mlopt.make_pipeline(*steps).fit(pa.Table.from_pandas(frame), y)
    assert list(found[0].feature_names_in_) == NAMES
    expected = make_pipeline(*steps).fit(frame, y).predict(frame)
    table = pa.Table.from_pandas(frame)
    np.testing.assert_allclose(found.predict(table), expected, atol=1e-3)


@pytest.mark.parametrize("make", ["frame", "array"])
def test_frames_are_given_for_chunks_where_they_are_asked_for(make: str) -> None:
    X, _ = numbers()
    frame = pd.DataFrame(X, columns=NAMES)
    steps = StandardScaler(), MinMaxScaler()
    plain: Any = frame if make == "frame" else X
    lazy = dd.from_pandas(frame, npartitions=3) if make == "frame" else da.from_array(X)
    expected = make_pipeline(*steps).set_output(transform="pandas").fit_transform(plain)
    found = mlopt.make_pipeline(*steps).set_output(transform="pandas")
    for got in (found.fit_transform(lazy), found.transform(lazy)):
        assert isinstance(got, dd.DataFrame)
        assert list(got.columns) == list(expected.columns)
        np.testing.assert_allclose(got.compute().to_numpy(), expected, atol=1e-12)


def some_empty() -> list[tuple[Any, Any, Any]]:
    X, y = numbers()
    X = X[np.argsort(X[:, 0])]
    frame = pd.DataFrame(X, columns=NAMES)
    whole = dd.from_pandas(frame, npartitions=5)
    few = whole[whole["a"] > 0.0]
    chunks = (0, 3000, 0, 3000, 0)
    arrays = da.from_array(X, chunks=(chunks, 4)), da.from_array(y, chunks=(chunks,))
    return [(few[["a", "b"]], few["d"], Ridge()), (*arrays, LogisticRegression())]


@pytest.mark.parametrize("number", [0, 1], ids=["frame", "array"])
def test_empty_chunks_change_nothing(number: int) -> None:
    X, y, last = some_empty()[number]
    steps = StandardScaler(), last
    found = mlopt.make_pipeline(*steps).fit(X, y)
    full = X.compute()
    expected = make_pipeline(*steps).fit(full, y.compute())
    got = found.predict(X).compute()
    assert np.mean(np.isclose(got, expected.predict(full), atol=1e-2)) > 0.995
    rows = mlopt.make_pipeline(StandardScaler()).fit(X).transform(X).compute()
    np.testing.assert_allclose(rows, StandardScaler().fit_transform(full), atol=1e-9)


@pytest.mark.parametrize("n", [100, N])
def test_masked_arrays_are_refused_by_name(n: int) -> None:
    X, y = numbers(n)
    masked_X, masked_y = np.ma.array(X, mask=X > 2), np.ma.array(y, mask=y > 0)
    for model in (mlopt.make_pipeline(StandardScaler(), Ridge()), mlopt.Ridge()):
        with pytest.raises(InputError, match="X must not be a masked array"):
            model.fit(masked_X, y)
        with pytest.raises(InputError, match="y must not be a masked array"):
            model.fit(X, masked_y)
        with pytest.raises(InputError, match="X must not be a masked array"):
            model.fit(X, y).predict(masked_X)


def test_a_pipeline_that_does_nothing_is_one() -> None:
    X, y = numbers(50)
    np.testing.assert_array_equal(
        mlopt.Pipeline([("last", "passthrough")]).fit(X, y).transform(X), X
    )


@pytest.mark.parametrize("n", [300, 60_000])
@pytest.mark.parametrize("kind", ["array", "text", "chunked"])
def test_targets_and_weights_may_be_arrays_of_arrow(kind: str, n: int) -> None:
    X, y = np.random.default_rng(0).normal(size=(n, 4)), np.arange(n) % 2
    X[:, 0] += y
    targets = y.astype(str) if kind == "text" else y
    given = pa.array(targets.tolist())
    if kind == "chunked":
        given = pa.chunked_array([given[: n // 3], given[n // 3 :]])
    weight = np.linspace(1, 2, n)
    steps = StandardScaler(), Ridge() if kind == "array" else LogisticRegression(tol=1e-8)
    last = type(steps[-1]).__name__.lower() + "__sample_weight"
    fitted, plain = mlopt.make_pipeline(*steps), make_pipeline(*map(clone, steps))
    fitted.fit(X, given, **{last: pa.array(weight)})
    plain.fit(X, targets, **{last: weight})
    np.testing.assert_allclose(fitted[-1].coef_, plain[-1].coef_, atol=1e-4)


def test_targets_in_other_chunks_than_the_rows() -> None:
    X, y = numbers(1200)
    w = np.linspace(1, 2, 1200)
    lazy = da.from_array(X, chunks=(400, -1)), da.from_array(y, chunks=500)
    steps = StandardScaler(), Ridge()
    given = dd.from_pandas(pd.DataFrame(X), npartitions=4)
    plain = make_pipeline(*map(clone, steps)).fit(X, y, ridge__sample_weight=w)
    for rows in (lazy[0], given):
        found = mlopt.make_pipeline(*steps)
        found.fit(rows, lazy[1], ridge__sample_weight=da.from_array(w, chunks=700))
        np.testing.assert_allclose(found[-1].coef_, plain[-1].coef_, atol=1e-6)
    with pytest.raises(InputError, match="same number of rows, got 1200 and 1100"):
        mlopt.make_pipeline(*steps).fit(lazy[0], lazy[1][:1100])
