"""Stateless steps know the columns they are given, each its own, as all rows have them."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn.pipeline
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    Normalizer,
    OneHotEncoder,
    StandardScaler,
)

import mlopt

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 4))
Y = (X[:, 0] > 0).astype(int)


def test_equal_stateless_steps_behind_unlike_columns_are_two() -> None:
    union = [("a", Normalizer()), ("b", StandardScaler())]
    pipe = mlopt.make_pipeline(FeatureUnion(union), Normalizer(), Ridge())
    lazy = da.from_array(X, chunks=(1000, 4)), da.from_array(Y, chunks=1000)
    pipe.fit(*lazy)
    assert pipe[0].transformer_list[0][1].n_features_in_ == 4
    assert pipe[1].n_features_in_ == 8


def test_a_stateless_step_behind_a_stateless_step_keeps_no_names() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    pipe = mlopt.make_pipeline(Normalizer(), Normalizer(), Ridge()).fit(
        pd.concat([frame] * 2), np.tile(Y, 2)
    )
    assert list(pipe[0].feature_names_in_) == list("abcd")
    assert not hasattr(pipe[1], "feature_names_in_")


@pytest.mark.parametrize("step", [Normalizer(), FunctionTransformer(np.abs)], ids=str)
def test_columns_that_only_all_rows_have_reach_a_stateless_step(step: Any) -> None:
    words = np.full((6000, 1), "a", dtype=object)
    words[1::2], words[3001] = "b", "rare"
    lazy = da.from_array(words, chunks=(1000, 1))
    y = da.from_array(np.tile(Y, 2), chunks=1000)
    pipe = mlopt.make_pipeline(OneHotEncoder(sparse_output=False), step, Ridge())
    assert pipe.fit(lazy, y)[1].n_features_in_ == 3


def test_sparse_least_squares_has_the_attributes_it_has_in_scikit_learn() -> None:
    rows = sp.csr_array(np.where(X > 1.0, X, 0.0))
    fitted = mlopt.make_pipeline(MaxAbsScaler(), LinearRegression()).fit(rows, Y)[-1]
    theirs = LinearRegression().fit(rows, Y)
    assert {n for n in vars(fitted) if n.endswith("_")} == {
        n for n in vars(theirs) if n.endswith("_")
    }


def test_what_is_missing_in_a_table_of_arrow_is_none() -> None:
    words = np.array(["a", "b", None], dtype=object)[RNG.integers(0, 3, 300)]
    table = pa.table({"word": pa.array(words)})
    encoder = OneHotEncoder(sparse_output=False)
    pipe = mlopt.make_pipeline(encoder, Ridge()).fit(table, np.arange(300.0))
    assert pipe[0].categories_[0].tolist() == ["a", "b", None]


def copied(rows: Any) -> Any:
    return pd.DataFrame(rows).copy()


def test_frames_of_all_rows_and_of_blocks_are_joined_row_by_row() -> None:
    union = [("scaled", StandardScaler()), ("all", FunctionTransformer(copied))]
    steps = [
        ("both", FeatureUnion(union).set_output(transform="pandas")),
        ("last", Ridge()),
    ]
    lazy = (
        da.from_array(X, chunks=((500, 2500), 4)),
        da.from_array(Y, chunks=((500, 2500),)),
    )
    ours = mlopt.Pipeline(steps).fit(*lazy)[-1].coef_
    theirs = sklearn.pipeline.Pipeline(steps).fit(X, Y)[-1].coef_
    assert np.allclose(ours, theirs)


def dummies(rows: Any) -> Any:
    return pd.get_dummies(pd.DataFrame(rows).astype(object)).astype(float)


def test_columns_that_only_all_rows_have_are_counted_behind_a_function() -> None:
    words = np.full((3000, 1), "a", dtype=object)
    words[1::2], words[2900] = "b", "rare"
    union = [("a", StandardScaler()), ("b", FunctionTransformer(np.abs))]
    whole = ColumnTransformer([("words", FunctionTransformer(dummies), [0])])
    pipe = mlopt.make_pipeline(whole, Normalizer(), FeatureUnion(union), Ridge())
    pipe.fit(da.from_array(words, chunks=(1000, 1)), da.from_array(Y, chunks=1000))
    assert pipe[0].output_indices_["words"] == slice(0, 3)
    assert pipe[1].n_features_in_ == 3
