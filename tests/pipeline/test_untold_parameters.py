"""Steps that cannot tell their parameters, or of what kind they are, run all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import StandardScaler
from tests.pipeline.peers import assert_same

import mlopt


class Doubles(TransformerMixin):
    """No `BaseEstimator`, so it has no tags."""

    def fit(self, X: Any, y: Any = None) -> Doubles:
        return self

    def transform(self, X: Any) -> Any:
        return X * 2


class Misnamed(TransformerMixin, BaseEstimator):
    """Its argument is kept under another name."""

    def __init__(self, factor: float = 1.0) -> None:
        self._factor = factor

    def fit(self, X: Any, y: Any = None) -> Misnamed:
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X: Any) -> Any:
        return (X - self.mean_) ** self._factor


class Registered(Misnamed):
    """As `Misnamed`, declared row by row."""


class Columns(TransformerMixin, BaseEstimator):
    """Of arguments without names."""

    def __init__(self, *columns: int) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> Columns:
        return self

    def transform(self, X: Any) -> Any:
        return X[:, list(self.columns)]


mlopt.register(Registered, row_wise=True)


def _beside() -> Any:
    return FeatureUnion([("m", Misnamed(2.0)), ("s", StandardScaler(copy=False))])


@pytest.mark.parametrize("n", [400, 6000])
@pytest.mark.parametrize(
    "made",
    [
        Doubles,
        lambda: Misnamed(2.0),
        lambda: Registered(2.0),
        lambda: Columns(0, 1),
        _beside,
    ],
)
def test_it_is_fitted_as_in_scikit_learn(made: Callable[[], Any], n: int) -> None:
    X = np.random.default_rng(0).normal(3, 2, size=(n, 4))
    y = X[:, 0] - X[:, 1] ** 2
    plain = Pipeline([("t", made()), ("m", Ridge())]).fit(X.copy(), y)
    planned = mlopt.Pipeline([("t", made()), ("m", Ridge())]).fit(X.copy(), y)
    assert_same(planned.predict(X.copy()), plain.predict(X.copy()))
    assert str(planned.plan_)
    assert str(planned.explain(X, y))
    lazy = mlopt.Pipeline([("t", made()), ("m", Ridge())])
    rows = da.from_array(X.copy(), chunks=(n // 2, 4))
    lazy.fit(rows, da.from_array(y, chunks=n // 2))
    assert_same(np.asarray(lazy.predict(rows)), plain.predict(X.copy()))
