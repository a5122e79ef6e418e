"""Pipelines on a Dask frame are what they are on the frame of pandas with its rows."""

from __future__ import annotations

from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

import mlopt
from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.pipeline.blocks.cut import cut, cut_anew, same_rows

N = 400
rng = np.random.default_rng(0)
SORTED = pd.DataFrame(
    {"n": rng.normal(size=N), "c": np.sort(rng.choice(list("abcdef"), N))}
)
Y = ((SORTED["n"] > 0) | (SORTED["c"] == "b")).astype(int)
LACKING = SORTED.assign(c=SORTED["c"].where(rng.random(N) > 0.1))


def parted(rows: Any, count: int = 4) -> Any:
    return dd.from_pandas(rows, npartitions=count)


@pytest.fixture
def unlike() -> Any:
    """Categories that differ from partition to partition."""
    return parted(SORTED).astype({"c": "category"})


def as_it_is(rows: Any) -> Any:
    return rows


def test_columns_of_unlike_categories_are_still_categories(unlike: Any) -> None:
    steps = (
        make_column_transformer(
            (StandardScaler(), ["n"]),
            (OneHotEncoder(), make_column_selector(dtype_include="category")),
        ),
        LogisticRegression(tol=1e-8),
    )
    expected = make_pipeline(*steps).fit(unlike.compute(), Y)
    found = mlopt.make_pipeline(*steps).fit(unlike, parted(Y))
    np.testing.assert_allclose(found[-1].coef_, expected[-1].coef_, rtol=1e-3)
    np.testing.assert_array_equal(
        found.predict(unlike).compute(), expected.predict(unlike.compute())
    )


@pytest.mark.parametrize("step", ["passthrough", FunctionTransformer(as_it_is)])
def test_steps_on_all_rows_are_given_united_categories(unlike: Any, step: Any) -> None:
    model = HistGradientBoostingClassifier(
        categorical_features="from_dtype", max_iter=5, random_state=0
    )
    expected = make_pipeline(step, model).fit(unlike.compute(), Y)
    found = mlopt.make_pipeline(step, model).fit(unlike, parted(Y))
    rows = unlike.compute()
    np.testing.assert_array_equal(found.predict_proba(rows), expected.predict_proba(rows))


@pytest.mark.parametrize(
    "coding",
    [
        OneHotEncoder(handle_unknown="ignore"),
        OrdinalEncoder(encoded_missing_value=-1),
        make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
        make_pipeline(
            SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder()
        ),
    ],
    ids=["one hot", "ordinal", "frequent", "constant"],
)
def test_missing_text_is_missing_text(coding: Any) -> None:
    steps = (
        make_column_transformer((StandardScaler(), ["n"]), (coding, ["c"])),
        LogisticRegression(tol=1e-8),
    )
    expected = make_pipeline(*steps).fit(LACKING, Y)
    in_memory = mlopt.make_pipeline(*steps).fit(LACKING, Y)
    lazily = mlopt.make_pipeline(*steps).fit(parted(LACKING), parted(Y))
    for found in (in_memory, lazily):
        np.testing.assert_allclose(
            found.predict_proba(parted(LACKING)).compute(),
            expected.predict_proba(LACKING),
            atol=1e-3,
        )


def made_of_delayed() -> Any:
    parts = [dask.delayed(LACKING.iloc[i : i + 100]) for i in range(0, N, 100)]
    return dd.from_delayed(parts, meta=LACKING.iloc[:0])


def transformed() -> Any:
    scaler = StandardScaler().set_output(transform="pandas")
    columns = make_column_transformer((scaler, ["n"]), ("passthrough", ["c"]))
    columns.set_output(transform="pandas").set_params(verbose_feature_names_out=False)
    return mlopt.make_pipeline(columns).fit(LACKING).transform(parted(LACKING))


@pytest.mark.parametrize("made", [made_of_delayed, transformed])
def test_frames_of_delayed_values_are_frames(made: Any) -> None:
    steps = make_column_transformer((StandardScaler(), ["n"]), (OneHotEncoder(), ["c"]))
    rows = made()
    expected = make_pipeline(steps, LogisticRegression(tol=1e-8))
    expected.fit(
        LACKING if made is made_of_delayed else rows.compute().astype({"c": "str"}), Y
    )
    found = mlopt.make_pipeline(steps, LogisticRegression(tol=1e-8)).fit(rows, parted(Y))
    np.testing.assert_allclose(found[-1].coef_, expected[-1].coef_, atol=1e-3)
    assert len(found.predict(rows).compute()) == N


@pytest.mark.parametrize("count", [1, 3, 4, 9])
def test_targets_may_be_parted_otherwise(count: int) -> None:
    steps = make_column_transformer((StandardScaler(), ["n"]), (OneHotEncoder(), ["c"]))
    expected = make_pipeline(steps, LogisticRegression(tol=1e-8)).fit(SORTED, Y)
    found = mlopt.make_pipeline(steps, LogisticRegression(tol=1e-8))
    found.fit(parted(SORTED, 5), parted(Y, count))
    np.testing.assert_allclose(found[-1].coef_, expected[-1].coef_, atol=1e-3)
    with pytest.raises(InputError, match="same number of rows, got 400 and 399"):
        found.fit(parted(SORTED, 5), parted(Y[:-1], count))


@pytest.mark.parametrize("values", [False, True])
def test_as_many_parts_of_other_rows_are_cut_to_go_with_x(values: bool) -> None:
    parts = [Y[:50], Y[50:280], Y[280:]]
    y = dd.from_map(lambda i: parts[i], range(3), meta=Y[:0])
    numbers = SORTED[["n"]].assign(m=np.arange(N))
    steps = (SelectKBest(f_classif, k=1), LogisticRegression(tol=1e-8))
    expected = make_pipeline(*steps).fit(numbers, Y)
    found = mlopt.make_pipeline(*steps)
    found.fit(parted(numbers, 3), y.to_dask_array() if values else y)
    np.testing.assert_allclose(found[-1].coef_, expected[-1].coef_, atol=1e-3)


def test_columns_of_one_frame_need_not_be_counted() -> None:
    frame = parted(SORTED.assign(y=Y), 3)
    X, y = frame[["n", "c"]], frame["y"]
    assert same_rows(X, y)
    assert same_rows(X, (y.astype("int8") + y) * 2)
    assert same_rows(frame.drop(columns="y"), frame["n"] > 0)
    assert not same_rows(frame[frame["n"] > 0][["n"]], y)
    assert not same_rows(X, y.dropna())
    assert not same_rows(X, parted(Y, 3))
    assert not same_rows(X, y.to_dask_array(lengths=True))
    assert not same_rows(SORTED, y)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32"])
@pytest.mark.parametrize("weight", [100, 0.5, np.int8(100), None])
def test_weighted_parts_have_the_type_of_scikit_learn(dtype: str, weight: Any) -> None:
    rows = rng.integers(0, 9, (N, 2)).astype(dtype)
    for whole in (
        ColumnTransformer([("a", "passthrough", [0])], transformer_weights={"a": weight}),
        FeatureUnion([("a", "passthrough")], transformer_weights={"a": weight}),
    ):
        expected = make_pipeline(whole, FunctionTransformer()).fit_transform(rows)
        pipeline = mlopt.make_pipeline(whole, FunctionTransformer())
        for found in (pipeline.fit_transform(rows), pipeline.transform(rows)):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "parts",
    [
        [pd.Categorical(["lo", "hi"]), pd.Categorical([np.nan, np.nan], categories=[])],
        [pd.Categorical([1, 2]), pd.Categorical([1.5, 2.0])],
        [
            pd.Categorical(["lo", "hi"], ["lo", "hi"], ordered=True),
            pd.Categorical(["lo", "mid"], ["lo", "mid", "hi"], ordered=True),
        ],
    ],
    ids=["all missing", "numbers", "ordered"],
)
def test_categories_that_cannot_be_united_are_values(parts: Any) -> None:
    frames = [pd.DataFrame({"c": part}) for part in parts]
    rows = dd.from_map(lambda i: frames[i], range(2), meta=frames[0].iloc[:0])
    y = dd.from_pandas(pd.Series([0.0, 1.0, 2.0, 3.0]), npartitions=2)
    found = mlopt.make_pipeline(OneHotEncoder(), Ridge()).fit(rows, y)
    assert len(found[0].categories_[0]) == 3


def test_the_same_targets_cut_in_two_ways_are_two_blocks() -> None:
    where, y = Threads(1), parted(Y)
    blocks = cut(y, where, name="y", lasting=True)
    one, two = (cut_anew(blocks, "y", sizes, where) for sizes in ([300, 100], [100, 300]))
    assert not {*one.keys} & {*two.keys}
    assert one.token != two.token
    assert one.keys == cut_anew(blocks, "y", [300, 100], where).keys


class Centred(TransformerMixin, BaseEstimator):
    """A step of one's own that takes weights."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Centred:
        self.given_ = type(sample_weight)
        self.mean_ = np.average(X, axis=0, weights=sample_weight)
        return self

    def transform(self, X: Any) -> Any:
        return X - self.mean_


@pytest.mark.parametrize("arrays", [False, True])
def test_weights_of_a_step_are_gathered_as_its_rows_are(arrays: bool) -> None:
    weights = pd.Series(np.random.default_rng(1).random(N))
    here, parts = SORTED[["n"]], [parted(one) for one in (SORTED[["n"]], Y, weights)]
    if arrays:
        parts = [one.to_dask_array(lengths=True) for one in parts]
    expected = Centred().fit(here, Y, weights)
    found = mlopt.make_pipeline(Centred(), LogisticRegression())
    found.fit(parts[0], parts[1], centred__sample_weight=parts[2])
    np.testing.assert_allclose(found[0].mean_, expected.mean_)
    assert found[0].given_ in (np.ndarray, pd.Series)


def test_frames_that_dask_has_not_are_those_of_all_rows() -> None:
    scaled = mlopt.make_pipeline(StandardScaler()).set_output(transform="polars")
    rows = scaled.fit(parted(SORTED[["n"]])).transform(parted(SORTED[["n"]]))
    expected = StandardScaler().fit_transform(SORTED[["n"]])
    assert type(rows).__module__.startswith("polars")
    np.testing.assert_allclose(rows.to_numpy(), expected)
