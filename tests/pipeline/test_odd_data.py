"""Steps and data that are unusual, and yet what scikit-learn takes."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC

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


def test_masked_arrays_of_dask_are_refused_before_a_chunk_is_read() -> None:
    X, y = numbers(100)
    masked = da.ma.masked_greater(da.from_array(X, chunks=(50, -1)), 2.0)
    for model in (mlopt.make_pipeline(StandardScaler(), Ridge()), mlopt.Ridge()):
        with pytest.raises(InputError, match="X must not be a masked array"):
            model.fit(masked, y)
        with pytest.raises(InputError, match="X must not be a masked array"):
            model.fit(X, y).predict(masked)


def test_chunks_that_turn_out_to_be_masked_are_refused() -> None:
    X, y = numbers(100)
    plain = da.from_array(X, chunks=(50, -1))
    masked = plain.map_blocks(np.ma.masked_greater, 2.0, meta=np.empty((0, 0)))
    with pytest.raises(InputError, match="X must not be a masked array"):
        mlopt.Ridge().fit(masked, y)
    with pytest.raises(InputError, match="X must not be a masked array"):
        mlopt.Ridge().fit(X, y).predict(masked).compute()


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


@pytest.mark.parametrize("n", [600, N])
@pytest.mark.parametrize(
    "kind",
    [
        lambda y: pd.array(y, dtype="Int64"),
        lambda y: pd.array(np.where(y, "yes", "no"), dtype="string"),
        lambda y: pd.Categorical(np.where(y, "yes", "no")),
        lambda y: pd.Index(np.where(y, "yes", "no")),
    ],
)
def test_targets_may_be_arrays_of_pandas(kind: Any, n: int) -> None:
    X, y = numbers(n)
    pipe = make_pipeline(FunctionTransformer(np.tanh), LogisticRegression())
    ours, theirs = mlopt.optimize(pipe).fit(X, kind(y)), clone(pipe).fit(X, kind(y))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.999


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


@pytest.mark.parametrize("tol", [1e-10, 1e-6, 0.1, 0.3])
def test_singular_values_below_the_tolerance_count_as_zero(tol: float) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, N))
    X = np.c_[a, a + 1e-7 * rng.normal(size=N), b, 0.2 * rng.normal(size=N)]
    y = a + b + rng.normal(size=N)
    expected = LinearRegression(tol=tol).fit(X, y)
    for rows in (X, da.from_array(X, chunks=(1500, 4))):
        found = mlopt.make_pipeline(LinearRegression(tol=tol)).fit(rows, y)[-1]
        assert found.rank_ == expected.rank_
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("model", [GaussianNB(), MultinomialNB(), BernoulliNB()])
def test_a_class_whose_rows_weigh_nothing_is_not_predicted(model: Any) -> None:
    X, _ = numbers()
    X, y = np.abs(X), np.arange(N) % 3
    weight = np.where(y == 1, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        expected = clone(model).fit(X, y, weight).predict_proba(X)
        rows = da.from_array(X, chunks=(1500, 4))
        found = mlopt.Pipeline([("m", model)]).fit(rows, y, m__sample_weight=weight)
        np.testing.assert_allclose(found.predict_proba(X), expected, atol=1e-9)


@pytest.mark.parametrize(
    "model", [GaussianNB(), MultinomialNB(), BernoulliNB(), ComplementNB()]
)
def test_rows_that_all_weigh_nothing_are_refused(model: Any) -> None:
    X, y = numbers()
    rows = da.from_array(np.abs(X), chunks=(1500, 4))
    with pytest.raises(ValueError, match="must contain at least one non-zero number"):
        mlopt.Pipeline([("m", model)]).fit(rows, y, m__sample_weight=np.zeros(N))


def test_entries_that_are_stored_twice_are_added_up() -> None:
    X = sp.random_array((1500, 20), density=0.3, rng=np.random.default_rng(0), format="csc")
    y = X[:, [0]].toarray().ravel()
    halves = np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), X.indptr * 2
    twice = sp.csc_array(halves, shape=X.shape)
    expected = make_pipeline(MaxAbsScaler(), Lasso(alpha=0.01)).fit(X, y)
    found = mlopt.make_pipeline(MaxAbsScaler(), Lasso(alpha=0.01)).fit(twice, y)
    np.testing.assert_allclose(found[-1].coef_, expected[-1].coef_, atol=1e-4)
    np.testing.assert_array_equal(twice.toarray(), X.toarray())
    if found.plan_.choices[0].chosen != "scikit-learn":  # whose own adds up in place
        assert twice.nnz == 2 * X.nnz


def test_a_class_that_no_sample_has_does_not_stop_a_fit() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 4))
    y = (X[:, 0] > 0.3).astype(int)
    y[30_001] = 2
    rows = da.from_array(X, chunks=(15_000, 4))
    found = mlopt.make_pipeline(StandardScaler(), LinearSVC(dual=False)).fit(rows, y)
    expected = make_pipeline(StandardScaler(), LinearSVC(dual=False)).fit(X, y)
    np.testing.assert_array_equal(found[-1].classes_, [0, 1, 2])
    assert np.mean(found.predict(X) == expected.predict(X)) > 0.999


def test_a_column_of_labels_is_taken() -> None:
    X, y = numbers()
    rows = da.from_array(X, chunks=(1500, 4))
    model = LinearDiscriminantAnalysis()
    found = mlopt.make_pipeline(StandardScaler(), model).fit(rows, y[:, None])
    expected = make_pipeline(StandardScaler(), model).fit(X, y)
    np.testing.assert_allclose(found[-1].coef_, expected[-1].coef_)


@pytest.mark.parametrize("named", [False, True])
def test_half_precision_is_computed_with_in_doubles(named: bool) -> None:
    X = numbers()[0].astype(np.float16)
    X = pd.DataFrame(X, columns=NAMES) if named else X
    rows = dd.from_pandas(X, npartitions=4) if named else da.from_array(X, chunks=(1500, 4))
    model = KMeans(3, n_init=1, random_state=0)
    found = mlopt.make_pipeline(model).fit(rows)
    assert found[-1].cluster_centers_.dtype == np.float64
    expected = make_pipeline(model).fit(X)
    assert np.mean(found.predict(X) == expected.predict(X)) > 0.99


@pytest.mark.parametrize("n", [300, N])
def test_a_last_step_may_give_scores_of_targets_beside_those_of_rows(n: int) -> None:
    X, y = numbers(n)
    steps = StandardScaler(), PLSRegression(2)
    found = mlopt.make_pipeline(*steps).fit_transform(X, y)
    want = make_pipeline(*steps).fit_transform(X, y)
    assert type(found) is tuple
    for one, other in zip(found, want, strict=True):
        np.testing.assert_allclose(one, other)


ODD_COLUMNS = pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("object", "f8"),
        ("category", "f8"),
        (pd.SparseDtype("float", 0.0), "f8"),
        ("Float32", "f8"),
        ("float32", "f4"),
        ("bool", "f4"),
    ],
)
"""Of one column among those of float32, and the type that scikit-learn then computes in."""


def _with_column(kind: Any) -> tuple[pd.DataFrame, np.ndarray]:
    X = pd.DataFrame(numbers()[0].astype("f4"), columns=NAMES)
    y = X.to_numpy() @ np.arange(4.0)
    return X.assign(a=X["a"].round().astype(kind)), y


@ODD_COLUMNS
@pytest.mark.parametrize("model", [Ridge(), LinearRegression(), PCA(2, svd_solver="full")])
@pytest.mark.filterwarnings("ignore:pandas.DataFrame with sparse columns")
def test_columns_of_frames_are_numbers_where_they_hold_such(
    kind: Any, dtype: str, model: Any
) -> None:
    X, y = _with_column(kind)
    steps = FunctionTransformer(lambda X: X), model
    found = mlopt.make_pipeline(*map(clone, steps)).fit(X, y)
    want = make_pipeline(*map(clone, steps)).fit(X, y)
    name = "components_" if isinstance(model, PCA) else "coef_"
    ours, theirs = (getattr(one[-1], name) for one in (found, want))
    assert ours.dtype == np.dtype(dtype)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-4)


@ODD_COLUMNS
@pytest.mark.filterwarnings("ignore:pandas.DataFrame with sparse columns")
def test_one_frame_has_one_precision_on_dask_and_in_memory(kind: Any, dtype: str) -> None:
    X, y = _with_column(kind)
    with dask.config.set({"dataframe.convert-string": False}):
        rows = dd.from_pandas(X, npartitions=3)
        found = mlopt.Ridge().fit(rows, y)
        predicted = found.predict(rows).compute()
    want = mlopt.Ridge().fit(X, y)
    assert found.coef_.dtype == want.coef_.dtype == np.dtype(dtype)
    assert predicted.dtype == want.predict(X).dtype
    np.testing.assert_allclose(predicted, want.predict(X), atol=1e-2)


def test_chunks_of_objects_are_numbers_where_they_hold_such() -> None:
    X, y = numbers()
    rows = da.from_array(X.astype(object), chunks=(1500, 4))
    found = mlopt.Ridge().fit(rows, y)
    np.testing.assert_allclose(found.coef_, Ridge().fit(X, y).coef_, rtol=1e-4)
    np.testing.assert_allclose(found.predict(rows).compute(), found.predict(X))
    text = da.from_array(np.full((6000, 4), "a", object), chunks=(1500, 4))
    with pytest.raises(ValueError, match="could not convert string to float"):
        mlopt.Ridge().fit(text, y)


@pytest.mark.parametrize("n", [300, N])
@pytest.mark.parametrize("kind", ["boolean", "Int64", "bool", "str"])
def test_classes_have_the_type_that_scikit_learn_reads(kind: str, n: int) -> None:
    X, y = numbers(n)
    labels = pd.Series(y).astype(kind)
    for model in (RidgeClassifier(), LogisticRegression()):
        found = mlopt.make_pipeline(StandardScaler(), clone(model)).fit(X, labels)
        want = make_pipeline(StandardScaler(), clone(model)).fit(X, labels)
        assert found.classes_.dtype == want.classes_.dtype
        np.testing.assert_array_equal(found.predict(X), want.predict(X))


@pytest.mark.parametrize("n", [300, N])
@pytest.mark.parametrize("model", [GaussianNB(), StandardScaler(), Ridge()])
def test_weights_may_be_a_series_of_polars(model: Any, n: int) -> None:
    X, y = numbers(n)
    weight = np.random.default_rng(1).random(n)
    name = f"{type(model).__name__.lower()}__sample_weight"
    found, want = (
        make(MaxAbsScaler(), clone(model)).fit(X, y, **{name: given})
        for make, given in (
            (mlopt.make_pipeline, pl.Series(weight)),
            (make_pipeline, weight),
        )
    )
    (attribute,) = {"theta_", "mean_", "coef_"} & vars(want[-1]).keys()
    ours, theirs = (getattr(one[-1], attribute) for one in (found, want))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)
