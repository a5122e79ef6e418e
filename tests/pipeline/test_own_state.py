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


@SIZES
def test_a_column_transformer_fits_clones_of_its_parts(n: int) -> None:
    X, y = data(n)
    found = []
    for kind in (Pipeline, mlopt.Pipeline):
        part = Loaded.load(0.1).fit(X)
        parts = ColumnTransformer([("a", part, [0, 1])])
        pipe = kind([("parts", parts), ("m", Ridge())]).fit(X, y)
        found.append((pipe[0].named_transformers_["a"].fits_, pipe.predict(X)))
        assert part.fits_ == 1
        assert part.limit_ == 0.1
    assert found[1][0] == found[0][0] == 1
    np.testing.assert_allclose(found[1][1], found[0][1], atol=1e-6)


@SIZES
@pytest.mark.parametrize("first", [False, True])
def test_parts_of_a_column_transformer_copy_a_generator(n: int, first: bool) -> None:
    X, y = data(n)
    found = []
    for kind in (Pipeline, mlopt.Pipeline):
        shared = np.random.RandomState(3)
        draws = [RBFSampler(n_components=3, random_state=shared) for _ in range(4)]
        parts = [("a", draws[0], [0, 1]), ("b", draws[1], [1, 2])]
        pipe = kind([
            ("before", draws[2] if first else "passthrough"),
            ("parts", ColumnTransformer(parts)), ("after", draws[3]), ("m", Ridge()),
        ])  # fmt: skip
        predicted = pipe.fit(X, y).predict(X)
        weights = [pipe[1].named_transformers_[one].random_weights_ for one in "ab"]
        found.append((*weights, pipe[2].random_weights_, predicted, shared.rand(2)))
    for ours, theirs in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


class Wraps:
    """Is whatever it wraps."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def fit(self, X: Any, y: Any = None) -> Wraps:
        self.inner.fit(X, y)
        return self

    def transform(self, X: Any) -> Any:
        return self.inner.transform(X)


class Tells(TransformerMixin, BaseEstimator):
    """Writes into an object that another step has, too, or reads from it."""

    def __init__(self, board: Any, tells: bool) -> None:
        self.board, self.tells = board, tells

    def fit(self, X: Any, y: Any = None) -> Tells:
        if self.tells:
            self.board.said = X.mean()
        self.mean_ = self.board.said
        return self

    def transform(self, X: Any) -> Any:
        return np.clip(X - self.mean_, -1, 1)


@SIZES
@pytest.mark.parametrize(
    "make",
    [
        lambda: [("wraps", Wraps(StandardScaler()))],
        lambda: [(f"{i}", Tells(board, i == 0)) for board in [Tally()] for i in range(2)],
    ],
    ids=["wrapper", "shared object"],
)
def test_steps_that_reach_into_others_are_fitted(make: Any, n: int) -> None:
    X, y = data(n)
    found = [k([*make(), ("m", Ridge())]).fit(X, y) for k in (Pipeline, mlopt.Pipeline)]
    np.testing.assert_allclose(found[1].predict(X), found[0].predict(X), atol=1e-6)
    assert found[1][0].fit(X) is found[1][0]


class Shrinks(RegressorMixin, BaseEstimator):
    """Has a parameter, and a list from the start, with names as of what is learnt."""

    def __init__(self, lambda_: float = 1.0) -> None:
        self.lambda_ = lambda_
        self.history_: list[float] = []

    def fit(self, X: Any, y: Any) -> Shrinks:
        self.mean_ = float(np.mean(y)) / self.lambda_
        self.history_.append(self.mean_)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.mean_)


class Loaded(TransformerMixin, BaseEstimator):
    """What it knows comes from elsewhere; it counts its fits."""

    @classmethod
    def load(cls, limit: float) -> Loaded:
        one = cls()
        one.limit_ = limit
        return one

    def fit(self, X: Any, y: Any = None) -> Loaded:
        self.fits_ = getattr(self, "fits_", 0) + 1
        return self

    def transform(self, X: Any) -> Any:
        return np.clip(X, -1, getattr(self, "limit_", 1))


@SIZES
def test_what_a_step_of_unknown_kind_has_is_there_when_fit_begins(n: int) -> None:
    X, y = data(n)
    found = []
    for kind in (Pipeline, mlopt.Pipeline):
        inner = FeatureUnion([("a", Loaded.load(0.5))])
        pipe = kind([("a", Loaded.load(2.0)), ("u", inner), ("m", Ridge())])
        for _ in range(3):
            pipe.fit(X, y)
        found.append((pipe[0].fits_, pipe[1].transformer_list[0][1].fits_, pipe.predict(X)))
    assert found[1][:2] == found[0][:2] == (3, 3)
    np.testing.assert_allclose(found[1][2], found[0][2], atol=1e-6)


def test_what_init_makes_is_there_when_fit_begins_whatever_its_name() -> None:
    X, y = data(50)
    pipe = mlopt.Pipeline([("m", Shrinks(2.0))])
    for fits in (1, 2):
        last = pipe.fit(X, y)[-1]
        assert last.lambda_ == 2.0
        assert last.history_ == [y.mean() / 2] * fits


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
