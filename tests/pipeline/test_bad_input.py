"""What cannot work is said at once, with the name of the step."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    OneHotEncoder,
    StandardScaler,
)
from tests.pipeline.peers import SIZES, numbers, people

import mlopt
from mlopt.cluster.connect import connect
from mlopt.errors import InputError


class Doubles(TransformerMixin, BaseEstimator):
    """Twice the numbers, behind a lock."""

    def __init__(self, lock: Any = None) -> None:
        self.lock = lock

    def fit(self, X: Any, y: Any = None) -> Doubles:
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        return 2 * X


class Shortens(Doubles):
    def transform(self, X: Any) -> Any:
        return X[1:]


class Slow(Doubles):
    """Counts its fits: those that an error should have come before."""

    fits = 0

    def fit(self, X: Any, y: Any = None) -> Slow:
        type(self).fits += 1
        super().fit(X, y)
        return self


def without_first(X: Any) -> Any:
    return X[1:]


def sometimes_sparse(X: Any) -> Any:
    return sp.csr_array(X) if X[0, 0] == -99 else X


mlopt.register(sometimes_sparse, row_wise=True)


@SIZES
@pytest.mark.parametrize("step", [Shortens(), FunctionTransformer(without_first)])
def test_a_step_that_loses_rows_is_named(n: int, step: Any) -> None:
    pipeline = mlopt.Pipeline([("short", step), ("r", Ridge())])
    with pytest.raises(InputError, match="`short` must return one row for each"):
        pipeline.fit(*numbers(n))


def test_a_step_that_returns_another_type_for_some_rows_is_named() -> None:
    X, y = numbers(9000)
    X[4500] = -99  # the first row of the third block
    step = FunctionTransformer(sometimes_sparse)
    scale = StandardScaler(with_mean=False)
    pipeline = mlopt.Pipeline([("odd", step), ("scale", scale), ("r", Ridge())])
    with pytest.raises(InputError, match=r"`odd` must return one type .* array, .* sparse"):
        pipeline.fit(X, y)


@SIZES
def test_a_name_that_comes_twice_is_said(n: int) -> None:
    Slow.fits = 0
    pipeline = mlopt.Pipeline([("a", Slow()), ("a", Ridge())])
    with pytest.raises(ValueError, match=r"not unique: \['a', 'a'\]"):
        pipeline.fit(*numbers(n))
    assert Slow.fits == 0


@SIZES
@pytest.mark.parametrize("name", ["with__two", "steps"])
def test_a_name_that_cannot_be_is_said(n: int, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        mlopt.Pipeline([(name, Ridge())]).fit(*numbers(n))


@SIZES
def test_no_steps_are_an_error(n: int) -> None:
    with pytest.raises(ValueError, match="empty"):
        mlopt.Pipeline([]).fit(*numbers(n))
    with pytest.raises(ValueError, match="steps"):
        mlopt.Pipeline(5).fit(*numbers(n))


@SIZES
@pytest.mark.parametrize(
    "steps",
    [
        [("slow", Slow()), ("guess", LogisticRegression()), ("r", Ridge())],
        [("slow", Slow()), ("guess", FeatureUnion([("in", Ridge())])), ("r", Ridge())],
        [("slow", Slow()), ("guess", mlopt.Pipeline([("in", Ridge())])), ("r", Ridge())],
    ],
    ids=["step", "union", "pipeline"],
)
def test_a_step_that_cannot_transform_must_be_the_last(n: int, steps: Any) -> None:
    Slow.fits = 0
    with pytest.raises((TypeError, InputError), match="`guess"):
        mlopt.Pipeline(steps).fit(*numbers(n))
    assert Slow.fits == 0


@SIZES
def test_the_last_step_must_be_an_estimator(n: int) -> None:
    pipeline = mlopt.Pipeline([("scale", StandardScaler()), ("last", 5)])
    with pytest.raises(TypeError, match="Last step"):
        pipeline.fit(*numbers(n))
    with pytest.raises(TypeError, match="instance"):
        mlopt.Pipeline([("scale", StandardScaler)]).fit(*numbers(n))


@SIZES
def test_sparse_numbers_in_a_step_for_dense_ones(n: int) -> None:
    X = sp.random_array((n, 5), density=0.2, format="csr", rng=np.random.default_rng(0))
    y = numbers(n)[1]
    for step in (StandardScaler(), GaussianNB()):
        pipeline = mlopt.Pipeline([("abs", MaxAbsScaler()), ("dense", step)])
        with pytest.raises((TypeError, ValueError), match=r"`dense`.*[Ss]parse"):
            pipeline.fit(X, y)


@SIZES
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    "last",
    [Ridge(), LinearRegression(), LogisticRegression(), SGDClassifier()],
    ids=lambda step: type(step).__name__,
)
def test_numbers_that_are_not_finite_are_said(n: int, value: float, last: Any) -> None:
    X, y = numbers(n)
    X[n - 3, 1] = value
    pipeline = mlopt.Pipeline([("nothing", "passthrough"), ("linear", last)])
    with pytest.raises(ValueError, match=r"`linear`.*(NaN|infinity)"):
        pipeline.fit(X, y)


@SIZES
def test_two_steps_at_random_without_a_seed_are_two_fits(n: int) -> None:
    X, y = numbers(n)
    parts = [(name, PCA(2, svd_solver="randomized")) for name in ("a", "b")]
    pipeline = mlopt.Pipeline([("both", FeatureUnion(parts)), ("r", Ridge())]).fit(X, y)
    a, b = (part.components_ for _, part in pipeline[0].transformer_list)
    assert a is not b
    fits = [c.step for c in pipeline.plan_.choices if c.operator.startswith("PCA")]
    assert fits == ["both/a", "both/b"]
    assert any(
        "random without a seed" in note and "both/a, both/b" in note
        for note in pipeline.plan_.notes
    )
    seeded = [(name, PCA(2, random_state=0)) for name in ("a", "b")]
    pipeline = mlopt.Pipeline([("both", FeatureUnion(seeded)), ("r", Ridge())]).fit(X, y)
    assert not any("seed" in note for note in pipeline.plan_.notes)


@SIZES
def test_a_random_generator_is_used_once_as_by_scikit_learn(n: int) -> None:
    X, y = numbers(n)
    mine, other = np.random.RandomState(3), np.random.RandomState(3)
    ours = mlopt.Pipeline([("forest", RandomForestClassifier(2, random_state=mine))])
    ours.explain(X, y)
    ours.fit(X, y)
    RandomForestClassifier(2, random_state=other).fit(X, y)
    assert mine.randint(1 << 30) == other.randint(1 << 30)


@SIZES
def test_a_lock_does_no_harm_in_this_process(n: int) -> None:
    lock = threading.Lock()
    pipeline = mlopt.Pipeline([("locked", Doubles(lock)), ("r", Ridge())])
    X, y = numbers(n)
    pipeline.fit(X, y)
    assert pipeline[0].lock is lock
    assert pipeline.predict(X).shape == (n,)


@pytest.mark.cluster
@pytest.mark.slow
def test_a_lock_cannot_go_to_workers(shared_workers: str) -> None:
    inner = FeatureUnion([("locked", Doubles(threading.Lock()))])
    pipeline = mlopt.Pipeline([("both", inner), ("r", Ridge())])
    with (
        connect(shared_workers),
        pytest.raises(InputError, match=r"`both/locked` cannot go"),
    ):
        pipeline.fit(*numbers(9000))


@SIZES
def test_targets_and_weights_must_go_with_the_rows(n: int) -> None:
    X, y = numbers(n)
    pipeline = mlopt.Pipeline([("scale", StandardScaler()), ("r", Ridge())])
    with pytest.raises(ValueError, match="same number of rows"):
        pipeline.fit(X, y[1:])
    with pytest.raises(ValueError, match="same number of rows"):
        pipeline.fit(X, y, r__sample_weight=np.ones(n - 1))
    with pytest.raises(ValueError, match=r"`r`.*y"):
        pipeline.fit(X)


@SIZES
def test_an_argument_that_no_step_takes_is_an_error(n: int) -> None:
    X, y = numbers(n)
    pipeline = mlopt.Pipeline([("scale", StandardScaler()), ("pca", PCA(2))])
    with pytest.raises(ValueError, match="stepname__parameter"):
        pipeline.fit(X, y, sample_weight=np.ones(n))
    with pytest.raises(TypeError, match=r"`pca`.*sample_weight"):
        pipeline.fit(X, y, pca__sample_weight=np.ones(n))
    with pytest.raises(KeyError):
        pipeline.fit(X, y, nobody__sample_weight=np.ones(n))


@SIZES
def test_parameters_out_of_range_are_said_before_anything_is_fitted(n: int) -> None:
    Slow.fits = 0
    pipeline = mlopt.Pipeline([("slow", Slow()), ("clf", LogisticRegression(C=-1.0))])
    with pytest.raises(ValueError, match=r"`clf`.*'C' parameter"):
        pipeline.fit(*numbers(n))
    assert Slow.fits == 0


@SIZES
def test_columns_that_are_not_there_are_named(n: int) -> None:
    X, y = people(n)
    whole = ColumnTransformer([("some", StandardScaler(), ["age", "nowhere"])])
    pipeline = mlopt.Pipeline([("prepare", whole), ("clf", LogisticRegression())])
    with pytest.raises(InputError, match=r"`prepare/some`.*nowhere"):
        pipeline.fit(X, y)


@SIZES
def test_text_in_a_step_for_numbers(n: int) -> None:
    pipeline = mlopt.Pipeline([("scale", StandardScaler()), ("clf", LogisticRegression())])
    with pytest.raises(ValueError, match=r"`scale`.*could not convert"):
        pipeline.fit(*people(n))


@pytest.mark.parametrize("data", [None, 5, "text", np.empty((0, 3))], ids=repr)
def test_data_must_have_rows(data: Any) -> None:
    with pytest.raises(ValueError, match=r"must|Expected 2D array"):
        mlopt.Pipeline([("scale", StandardScaler())]).fit(data)


def test_a_single_value_has_no_rows() -> None:
    pipe = mlopt.make_pipeline(StandardScaler(), Ridge())
    with pytest.raises(ValueError, match="X must have rows, got a single value"):
        pipe.fit(np.array(3.0), [1.0])


@pytest.mark.parametrize("kind", [np.asarray, list, pd.Series, lambda x: x.astype(object)])
@pytest.mark.parametrize("step", [StandardScaler(), SimpleImputer(), OneHotEncoder()])
def test_numbers_without_columns_are_refused_in_the_words_of_scikit_learn(
    step: Any, kind: Any
) -> None:
    X, y = numbers(3000)
    with pytest.raises(ValueError, match=r"Expected .*(2D|2-dimensional)"):
        mlopt.make_pipeline(step, LogisticRegression()).fit(kind(X[:, 0]), y)


def test_a_step_may_make_columns_of_numbers_without() -> None:
    X, y = numbers(3000)
    steps = FunctionTransformer(lambda x: x.reshape(-1, 1)), StandardScaler(), Ridge()
    found = mlopt.make_pipeline(*steps).fit(X[:, 0], y).predict(X[:, 0])
    np.testing.assert_allclose(
        found, make_pipeline(*steps).fit(X[:, 0], y).predict(X[:, 0])
    )


@pytest.mark.parametrize("odd", [None, "text"])
@pytest.mark.parametrize(
    "last", [LogisticRegression(), mlopt.LogisticRegression(), GaussianNB()]
)
def test_labels_without_an_order_are_refused_in_the_words_of_scikit_learn(
    last: Any, odd: Any
) -> None:
    X, y = numbers(3000)
    y = y.astype(object)
    y[::3] = odd
    said = []
    for make in (mlopt.make_pipeline, make_pipeline):
        with pytest.raises((TypeError, ValueError)) as refused:
            make(StandardScaler(), last).fit(X, y)
        said.append(str(refused.value))
    assert said[0] == said[1]


class Costly(ValueError):
    """An error that knows more than its words."""

    def __init__(self, code: int) -> None:
        super().__init__(f"failed with {code}")
        self.code = code


@pytest.mark.parametrize(
    "error", [Costly(3), StopIteration("no more"), FileNotFoundError(2, "gone", "x.csv")]
)
@pytest.mark.parametrize("rows", [100, 5000])
def test_the_error_of_a_step_is_the_one_that_it_raised_and_names_the_step(
    error: Exception, rows: int
) -> None:
    class Fails(TransformerMixin, BaseEstimator):
        def fit(self, X: Any, y: Any = None) -> Fails:
            raise error

        def transform(self, X: Any) -> Any:
            return X

    X, y = np.ones((rows, 2)), np.arange(rows) % 2
    with pytest.raises(type(error)) as caught:
        mlopt.make_pipeline(Fails(), LogisticRegression()).fit(X, y)
    assert caught.value is error
    told = [str(error), *getattr(error, "__notes__", ())]
    assert [one.partition(":")[0] for one in told if "Step" in one] == ["Step `fails`"]
