"""Steps with state of their own: they are left as scikit-learn's own fit leaves them."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler

import mlopt

SIZES = pytest.mark.parametrize("n", [500, 1500, 5000])


class Scales(TransformerMixin, BaseEstimator):
    """Its fit puts another value in the place of a parameter."""

    def __init__(self, k: float = 2.0, columns: Any = None) -> None:
        self.k, self.columns = k, columns

    def fit(self, X: Any, y: Any = None) -> Scales:
        self.k = float(np.abs(X).max())
        if self.columns is None:
            self.columns = list(range(X.shape[1] - 1))
        return self

    def transform(self, X: Any) -> Any:
        return X[:, self.columns] / self.k


class Shifts(RegressorMixin, BaseEstimator):
    """As `Scales`, as the last step."""

    def __init__(self, shift: float = 0.0) -> None:
        self.shift = shift

    def fit(self, X: Any, y: Any) -> Shifts:
        self.shift, self.n_ = float(np.mean(y)), len(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.shift)


class Tally:
    """Counts rows."""

    def __init__(self) -> None:
        self.n = 0


class Counts(TransformerMixin, BaseEstimator):
    """Keeps a tally in an object of its own; counts and draws in ``transform``."""

    def __init__(self, tally: Any = None) -> None:
        self.tally, self.own = tally, Tally()

    def fit(self, X: Any, y: Any = None) -> Counts:
        self.own.n += len(X)
        if self.tally is not None:
            self.tally.n += len(X)
        self.calls = 0
        return self

    def transform(self, X: Any) -> Any:
        self.calls += 1
        return X + np.random.randn(*X.shape)  # noqa: NPY002


class Lists(TransformerMixin, BaseEstimator):
    """Gives lists of numbers."""

    def fit(self, X: Any, y: Any = None) -> Lists:
        return self

    def transform(self, X: Any) -> Any:
        return np.clip(X, -1, 1).tolist()


def data(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    return X, X[:, 0] + rng.normal(size=n) + 5


@SIZES
@pytest.mark.parametrize(
    "steps",
    [
        [("scale", Scales()), ("fit", Ridge())],
        [("scale", StandardScaler()), ("fit", Shifts())],
        [("all", FeatureUnion([("a", Scales()), ("b", StandardScaler())])), ("f", Ridge())],
        [("list", Lists()), ("scale", StandardScaler()), ("fit", Ridge())],
    ],
    ids=["transformer", "last", "within", "lists"],
)
def test_what_fit_puts_in_the_place_of_parameters_stays(steps: Any, n: int) -> None:
    X, y = data(n)
    theirs = clone(Pipeline(steps)).fit(X, y)
    ours = mlopt.Pipeline(clone(Pipeline(steps)).steps).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-6)
    np.testing.assert_allclose(ours.export().predict(X), theirs.predict(X), atol=1e-6)


@SIZES
def test_steps_see_the_rows_once_and_draw_once(n: int) -> None:
    X, y = data(n)
    found = []
    for kind in (Pipeline, mlopt.Pipeline):
        np.random.seed(0)  # noqa: NPY002
        tally = Tally()
        union = FeatureUnion([("a", Counts(tally)), ("b", StandardScaler())])
        fitted = kind([("u", union), ("m", Ridge(1000.0))]).fit(X, y)
        step = fitted[0].transformer_list[0][1]
        found.append((tally.n, step.own.n, step.calls, np.random.rand()))  # noqa: NPY002
    assert found[1] == found[0] == (n, n, 1, found[0][3])


class Projects(TransformerMixin, BaseEstimator):
    """Draws its directions from the generator of the process."""

    def fit(self, X: Any, y: Any = None) -> Projects:
        self.w_ = np.random.randn(X.shape[1], 2)  # noqa: NPY002
        return self

    def transform(self, X: Any) -> Any:
        return X @ self.w_


@pytest.mark.parametrize("n", [500, 4000, 20_000])
def test_what_is_drawn_is_drawn_in_the_order_of_the_steps(n: int) -> None:
    X, y = data(n)
    later = make_pipeline(StandardScaler(), Projects())
    parts = [("a", later), ("b", RBFSampler(n_components=3)), ("c", Projects())]
    found = []
    for kind in (Pipeline, mlopt.Pipeline):
        np.random.seed(0)  # noqa: NPY002
        union = clone(FeatureUnion([*parts, ("d", RBFSampler(n_components=3))]))
        fitted = kind([("u", union), ("m", Ridge())]).fit(X, y)
        found.append(fitted.predict(X))
    np.testing.assert_allclose(found[1], found[0], atol=1e-4)


def test_columns_of_objects_that_are_numbers_are_numbers() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame((rng.normal(size=(6000, 6)) * 3).astype(int), columns=list("abcdef"))
    X = X.astype("Int64")
    y = (X["a"] > 0).to_numpy(bool)
    columns = ColumnTransformer([
        ("numbers", StandardScaler(), ["a"]),
        ("words", OneHotEncoder(), ["c"]),
        ("curves", SplineTransformer(), ["b"]),
        ("rest", "passthrough", ["d", "e"]),
    ])  # fmt: skip
    theirs = Pipeline([("c", clone(columns)), ("m", RidgeClassifier())]).fit(X, y)
    with dask.config.set({"mlopt.plan": "always"}):
        ours = mlopt.Pipeline([("c", clone(columns)), ("m", RidgeClassifier())]).fit(X, y)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-3)
