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
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import Ridge, SGDRegressor
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


class Draws(RegressorMixin, BaseEstimator):
    """Draws from what it is given."""

    def __init__(self, rng: Any = None) -> None:
        self.rng = rng

    def fit(self, X: Any, y: Any) -> Draws:
        self.drawn_ = self.rng.random()
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(X.shape[0])


GENERATORS = [np.random.RandomState, np.random.default_rng]


@pytest.mark.parametrize("generator", GENERATORS)
def test_what_is_fitted_again_begins_where_it_was(generator: Any) -> None:
    table, y = rare(0)
    found, expected = (Draws(generator(0)) for _ in range(2))
    with dask.config.set({"mlopt.plan": "always"}):
        ours = mlopt.Pipeline([*encoded(("look", Looks()))[:-1], ("fit", found)])
        ours.fit(table, y)
    sklearn.pipeline.Pipeline([*encoded()[:-1], ("fit", expected)]).fit(table, y)
    assert any("fitted again" in note for note in ours.plan_.notes)
    assert ours["fit"].drawn_ == expected.drawn_


class Jitters(TransformerMixin, Draws):
    """Adds what it draws."""

    def transform(self, X: Any) -> Any:
        return X + self.drawn_


class Pairs(TransformerMixin, BaseEstimator):
    """Gives no rows when it is fitted to all of them, which a sample does not show."""

    def fit(self, X: Any, y: Any = None) -> Pairs:
        return self

    def transform(self, X: Any) -> Any:
        return X

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        return (X, y) if len(X) == N else X


@pytest.mark.parametrize("generator", GENERATORS)
def test_what_scikit_learn_fits_in_the_end_begins_where_it_was(generator: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, 3)), rng.normal(size=N)

    def steps() -> list[tuple[str, Any]]:
        last = TakesPairs()
        return [("jitter", Jitters(generator(0))), ("pairs", Pairs()), ("last", last)]

    with dask.config.set({"mlopt.plan": "always"}):
        ours = mlopt.Pipeline(steps()).fit(X, y)
    theirs = sklearn.pipeline.Pipeline(steps()).fit(X, y)
    assert ours["jitter"].drawn_ == theirs["jitter"].drawn_


class TakesPairs(RegressorMixin, BaseEstimator):
    """Takes what `Pairs` gives."""

    def fit(self, X: Any, y: Any) -> TakesPairs:
        self.fitted_ = True
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X[0]))


def test_a_warm_start_does_not_go_on_from_what_is_fitted_again() -> None:
    table, y = rare(0)

    def steps() -> list[tuple[str, Any]]:
        last = SGDRegressor(
            warm_start=True, max_iter=1, tol=None, shuffle=False,
            learning_rate="constant", eta0=1e-5, random_state=0,
        )  # fmt: skip
        return [*encoded(("look", Looks()))[:-1], ("fit", last)]

    with dask.config.set({"mlopt.plan": "always"}):
        ours = mlopt.Pipeline(steps()).fit(table, 1.0 + y)
    theirs = sklearn.pipeline.Pipeline(steps()).fit(table, 1.0 + y)
    assert any("fitted again" in note for note in ours.plan_.notes)
    np.testing.assert_allclose(ours["fit"].intercept_, theirs["fit"].intercept_, rtol=1e-3)


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
