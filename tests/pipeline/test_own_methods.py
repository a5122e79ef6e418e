"""Steps that are given methods of their own, in the place of those of their class."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from tests.pipeline.peers import assert_same

import mlopt
from mlopt.identity import class_of, token_of
from mlopt.pipeline.fits.registry import RECORDS

SIZES = pytest.mark.parametrize("n", [400, 6000])


def _data(n: int) -> tuple[Any, Any]:
    X = np.random.default_rng(0).normal(3, 2, size=(n, 4))
    return X, X[:, 0] - X[:, 1] ** 2


def _tripled() -> Any:
    step = StandardScaler()
    step.transform = lambda Z: Z * 3
    return step


def _bound() -> Any:
    """Its method reads what the step itself has learnt."""
    step = StandardScaler()
    step.transform = types.MethodType(lambda self, Z: (Z - self.mean_) ** 2, step)
    return step


def _around() -> Any:
    """As `_bound`, by a name in the function's surroundings."""
    step = StandardScaler()
    step.transform = lambda Z: (Z - step.mean_) ** 2
    return step


def _pipeline_within() -> Any:
    inner = Pipeline([("s", StandardScaler()), ("m", MinMaxScaler())])
    inner.transform = lambda Z: inner[0].transform(Z) * 3
    return inner


def _union() -> Any:
    return FeatureUnion([("a", _around()), ("b", MinMaxScaler())])


def _columns() -> Any:
    """scikit-learn fits clones, which have the methods of their class."""
    return ColumnTransformer([("a", _tripled(), [0, 1])], remainder="passthrough")


def _frozen() -> Any:
    return FrozenEstimator(_around().fit(_data(50)[0]))


MADE = pytest.mark.parametrize(
    "made", [_tripled, _bound, _around, _pipeline_within, _union, _columns, _frozen]
)


@MADE
@SIZES
def test_a_step_with_a_method_of_its_own_does_as_in_scikit_learn(
    made: Callable[[], Any], n: int
) -> None:
    X, y = _data(n)
    plain = Pipeline([("s", made()), ("m", Ridge())]).fit(X, y)
    planned = mlopt.Pipeline([("s", made()), ("m", Ridge())]).fit(X, y)
    assert_same(planned[1].coef_, plain[1].coef_)
    assert_same(planned.predict(X), plain.predict(X))


@MADE
def test_rows_of_dask_are_gathered_for_it(made: Callable[[], Any]) -> None:
    X, y = _data(3000)
    plain = Pipeline([("s", made()), ("m", Ridge())]).fit(X, y)
    planned = mlopt.Pipeline([("s", made()), ("m", Ridge())])
    planned.fit(da.from_array(X, chunks=(1000, 4)), da.from_array(y, chunks=1000))
    assert_same(planned[1].coef_, plain[1].coef_)
    found = planned.predict(da.from_array(X, chunks=(1000, 4)))
    assert_same(np.asarray(found), plain.predict(X))


@SIZES
def test_a_last_step_with_a_fit_of_its_own(n: int) -> None:
    X, y = _data(n)

    def fitted(kind: Any) -> Any:
        last = Ridge()
        last.fit = lambda Z, y: Ridge.fit(last, Z * 2, y)
        return kind([("s", StandardScaler()), ("m", last)]).fit(X, y)

    assert_same(fitted(mlopt.Pipeline)[1].coef_, fitted(Pipeline)[1].coef_)


@SIZES
def test_words_as_an_analyzer_of_its_own_has_them(n: int) -> None:
    documents = ["a-b", "c-dd"] * (n // 2)

    def fitted(kind: Any) -> Any:
        step = CountVectorizer()
        step.build_analyzer = lambda: lambda document: document.split("-")
        return kind([("v", step), ("m", Ridge())]).fit(documents, range(n))

    words = fitted(mlopt.Pipeline)[0].vocabulary_
    assert words == fitted(Pipeline)[0].vocabulary_


@SIZES
def test_a_method_that_a_fitted_step_is_given_is_used(n: int) -> None:
    X, y = _data(n)
    planned = mlopt.Pipeline([("s", StandardScaler()), ("m", Ridge())]).fit(X, y)
    planned[0].transform = lambda Z: Z * 3
    assert_same(planned.predict(X), planned[1].predict(X * 3))
    lazy = planned.predict(da.from_array(X, chunks=(n // 2, 4)))
    assert_same(np.asarray(lazy), planned[1].predict(X * 3))


def test_a_plan_says_why_there_is_none() -> None:
    X, y = _data(6000)
    planned = mlopt.Pipeline([("s", _tripled()), ("m", Ridge())])
    assert "methods in the place of" in str(planned.explain(X, y))
    assert "methods in the place of" in str(planned.fit(X, y).plan_)


def test_it_has_a_token_of_its_own() -> None:
    assert token_of(_tripled()) == token_of(_tripled())
    assert token_of(_tripled()) != token_of(StandardScaler())
    assert token_of(_around()) != token_of(_tripled())


@pytest.mark.parametrize("kind", [k for k in RECORDS if isinstance(k, type)])
def test_no_class_that_is_known_puts_anything_in_the_place_of_its_methods(
    kind: type,
) -> None:
    try:
        one = kind()
    except TypeError:
        pytest.skip("it wants arguments")
    assert class_of(one) is kind
