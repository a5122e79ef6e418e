"""Unions are dense or sparse as all rows have it, whatever a sample says."""

from __future__ import annotations

from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.pipeline
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import Ridge
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mlopt

N = 20_000


class Looks(TransformerMixin, BaseEstimator):
    """Nobody has declared it, and it says what it was given."""

    def fit(self, X: Any, y: Any = None) -> Looks:
        self.sparse_ = bool(sp.issparse(X))
        return self

    def transform(self, X: Any) -> Any:
        return X


def rare(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Two columns of three categories, and a fourth that a row has: a quarter is stored."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.choice(list("abc"), (N, 2)), columns=["one", "two"])
    table.iloc[rng.integers(N)] = "z"
    return table, rng.normal(size=N)


def texts(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Of four words each text has so many that the density is about the threshold, .3."""
    rng = np.random.default_rng(seed)
    there = rng.random((N, 4)) < 0.3
    words = np.array(["tea", "milk", "rum", "ale"])
    said = [" ".join(words[row]) for row in there]
    return pd.DataFrame({"said": said}), rng.normal(size=N)


def encoded(*steps: Any) -> list[tuple[str, Any]]:
    encode = ColumnTransformer([("encode", OneHotEncoder(), ["one", "two"])])
    return [("encode", encode), *steps, ("fit", Ridge())]


@pytest.mark.parametrize("lazy", [False, True])
def test_an_undeclared_step_is_given_what_scikit_learn_would_give_it(lazy: bool) -> None:
    table, y = rare(0)
    ours = mlopt.Pipeline(encoded(("look", Looks())))
    theirs = sklearn.pipeline.Pipeline(encoded(("look", Looks()))).fit(table, y)
    given = (dd.from_pandas(table, npartitions=3), y) if lazy else (table, y)
    with dask.config.set({"mlopt.plan": "always"}):
        ours.fit(*given)
    assert theirs["look"].sparse_
    assert ours["look"].sparse_
    assert ours["encode"].sparse_output_
    np.testing.assert_allclose(ours["fit"].coef_, theirs["fit"].coef_, atol=1e-4)
    assert any("fitted again" in note for note in ours.plan_.notes)


def test_a_step_that_refuses_sparse_rows_does_so_though_a_sample_was_dense() -> None:
    table, y = rare(1)
    with (
        dask.config.set({"mlopt.plan": "always"}),
        pytest.raises(ValueError, match="center"),
    ):
        mlopt.Pipeline(encoded(("scale", StandardScaler()))).fit(table, y)


@pytest.mark.parametrize("seed", range(16))
def test_a_sample_on_the_other_side_of_the_threshold_changes_nothing(seed: int) -> None:
    table, y = texts(seed)

    def steps() -> list[tuple[str, Any]]:
        count = ColumnTransformer([("count", CountVectorizer(), "said")])
        return [("count", count), ("scale", StandardScaler()), ("fit", Ridge())]

    def coefficients(kind: Any) -> Any:
        try:
            return kind(steps()).fit(table, y)["fit"].coef_
        except ValueError as error:
            return "center sparse" in str(error)

    with dask.config.set({"mlopt.plan": "always"}):
        ours = coefficients(mlopt.Pipeline)
    theirs = coefficients(sklearn.pipeline.Pipeline)
    assert theirs is not False
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)
