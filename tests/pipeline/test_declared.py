"""What nobody declared is run as scikit-learn runs it; what was declared is streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

import mlopt
from mlopt.errors import InputError
from mlopt.pipeline.fits import registry
from mlopt.pipeline.steps import kinds, repeating

N = 5000
SEEN: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_declared() -> Iterator[None]:
    before = dict(registry.RECORDS)
    SEEN.clear()
    yield
    registry.RECORDS.clear()
    registry.RECORDS.update(before)


def frame() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, 3)), columns=list("abc"))
    X["k"] = rng.choice(["u", "v", "w"], N)
    X.loc[4321, "a"] = np.nan
    X.loc[1234, "b"] = 50.0
    X.loc[77, "k"] = "rare"
    return X, rng.normal(size=N)


def filled(X: Any) -> Any:
    X = X[["a", "b", "c"]]
    return X.fillna(X.mean())


def forwards(X: Any) -> Any:
    return X[["a", "b", "c"]].ffill()


def coded(X: Any) -> Any:
    return X.assign(k=X["k"].astype("category").cat.codes).fillna(0.0)


def by_largest(X: Any) -> Any:
    X = X[["b", "c"]]
    return X / X.abs().max()


def dummies(X: Any) -> Any:
    return pd.get_dummies(X, columns=["k"], dtype=float).fillna(0.0)


def doubled(X: Any) -> Any:
    SEEN.append(len(X))
    return 2.0 * X


def last_coefficients(pipeline: Any) -> Any:
    return pipeline[-1].coef_


@pytest.mark.parametrize("function", [filled, forwards, coded, by_largest, dummies])
@pytest.mark.parametrize("lazy", [False, True], ids=["memory", "dask"])
def test_a_function_that_looks_at_all_rows_gets_them(function: Any, lazy: bool) -> None:
    X, y = frame()
    steps = [FunctionTransformer(function), StandardScaler(), Ridge()]
    expected = make_pipeline(*map(clone, steps)).fit(X, y)
    data = dd.from_pandas(X, npartitions=5, sort=False) if lazy else X
    target = dd.from_pandas(pd.Series(y), npartitions=5, sort=False) if lazy else y
    found = mlopt.make_pipeline(*steps).fit(data, target)
    np.testing.assert_allclose(
        last_coefficients(found), last_coefficients(expected), rtol=1e-6
    )
    assert found[-1].n_features_in_ == expected[-1].n_features_in_
    plan = found.plan_.explain()
    assert f"{function.__name__} is not declared row-wise: run on all rows at once" in plan


@pytest.mark.parametrize("lazy", [False, True], ids=["memory", "dask"])
def test_columns_that_only_all_rows_have_reach_the_steps_behind(lazy: bool) -> None:
    X, y = frame()
    rest = make_column_transformer((MinMaxScaler(), ["a"]), remainder="passthrough")
    steps = [FunctionTransformer(dummies), rest, LinearRegression()]
    expected = make_pipeline(*map(clone, steps)).fit(X, y)
    data = dd.from_pandas(X, npartitions=5, sort=False) if lazy else X
    target = dd.from_pandas(pd.Series(y), npartitions=5, sort=False) if lazy else y
    found = mlopt.make_pipeline(*steps).fit(data, target)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-6)
    assert "run as scikit-learn runs it" in found.plan_.explain()


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [25, 700])
def test_undeclared_steps_one_after_the_other_are_run_once_on_chunks(chunk: int) -> None:
    X = np.random.default_rng(0).normal(size=(2000, 3))
    y = X[:, 0] + X[:, 1]
    forest = RandomForestRegressor(3, random_state=0)
    steps = [
        Centre(), FunctionTransformer(np.array), StandardScaler(), SelectFromModel(forest),
        Ridge(),
    ]  # fmt: skip
    lazy = da.from_array(X, chunks=(chunk, 3)), da.from_array(y, chunks=chunk)
    found = mlopt.make_pipeline(*map(clone, steps)).fit(*lazy)
    expected = make_pipeline(*map(clone, steps)).fit(X, y)
    np.testing.assert_allclose(found[-1].coef_, expected[-1].coef_, rtol=1e-3)


def test_a_declared_function_streams_and_an_undeclared_one_does_not() -> None:
    X, y = np.random.default_rng(0).normal(size=(20_000, 4)), np.arange(20_000.0)
    mlopt.make_pipeline(FunctionTransformer(doubled), Ridge()).fit(X, y)
    assert 20_000 in SEEN
    SEEN.clear()
    mlopt.register(doubled, row_wise=True)
    pipeline = mlopt.make_pipeline(FunctionTransformer(doubled), Ridge()).fit(X, y)
    assert max(SEEN) < 20_000
    assert "not declared" not in pipeline.plan_.explain()


class Centre(TransformerMixin, BaseEstimator):
    """Takes away the mean of all rows; a step of its own author."""

    fits = 0

    def __init__(self, seed: Any = None) -> None:
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Centre:
        type(self).fits += 1
        self.mean_ = np.mean(X, axis=0)
        return self

    def transform(self, X: Any) -> Any:
        SEEN.append(len(X))
        return X - self.mean_


def test_a_declared_class_is_applied_by_blocks() -> None:
    X, y = np.random.default_rng(0).normal(size=(20_000, 4)), np.arange(20_000.0)
    mlopt.register(Centre, row_wise=True, reads_y=False)
    found = mlopt.make_pipeline(Centre(), Ridge()).fit(X, y)
    expected = make_pipeline(Centre(), Ridge()).fit(X, y)
    np.testing.assert_allclose(found[-1].coef_, expected[-1].coef_, rtol=1e-6)
    SEEN.clear()
    found.predict(X)
    assert max(SEEN) < 20_000


def test_a_declaration_is_of_the_very_class() -> None:
    class Heir(Centre):
        pass

    mlopt.register(Centre, row_wise=True)
    assert registry.declared(Centre) is not None
    assert registry.declared(Heir) is None


def test_rows_beyond_the_memory_are_refused_with_the_name_of_the_step() -> None:
    X, y = np.random.default_rng(0).normal(size=(20_000, 4)), np.arange(20_000.0)
    pipeline = mlopt.Pipeline(
        [("twice", FunctionTransformer(doubled)), ("r", Ridge())], memory_budget="100kB"
    )
    with pytest.raises(InputError, match=r"`twice` .*mlopt\.register"):
        pipeline.fit(X, y)


def test_what_is_random_draws_as_often_as_for_scikit_learn() -> None:
    X, y = np.random.default_rng(0).normal(size=(N, 4)), np.arange(float(N))

    def noisy(X: Any) -> Any:
        return X + np.random.normal(size=X.shape)  # noqa: NPY002

    steps = [FunctionTransformer(noisy), StandardScaler(), Ridge()]
    np.random.seed(3)  # noqa: NPY002
    expected = make_pipeline(*map(clone, steps)).fit(X, y)
    np.random.seed(3)  # noqa: NPY002
    found = mlopt.make_pipeline(*steps).fit(X, y)
    np.testing.assert_allclose(found[-1].coef_, expected[-1].coef_, rtol=1e-6)


@pytest.mark.parametrize("value", [Centre(), 3])
def test_what_is_no_class_and_no_function_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="takes a class or a function"):
        mlopt.register(value)


def test_a_seed_of_a_function_is_refused() -> None:
    with pytest.raises(InputError, match="`seeded_by` names a parameter of a class"):
        mlopt.register(doubled, seeded_by="seed")


def test_a_class_without_its_seed_is_fitted_as_often_as_it_occurs() -> None:
    X, y = np.random.default_rng(0).normal(size=(500, 4)), np.arange(500.0)
    mlopt.register(Centre, row_wise=True, seeded_by="seed")
    for seed, fits in ((None, 2), (0, 1)):
        with dask.config.set({"mlopt.reuse-models": "1GiB"}):
            mlopt.make_pipeline(Centre(seed), Ridge()).fit(X, y)
            Centre.fits = 0
            one = mlopt.gather(Centre(seed), Centre(seed))
            mlopt.make_pipeline(one, Ridge()).fit(2 * X, y)
        assert Centre.fits == fits


def test_a_function_made_of_python_is_not_taken_for_one_of_numpy() -> None:
    seen: list[float] = []

    def place(value: float) -> float:
        seen.append(value)
        return float(len(seen))

    made = FunctionTransformer(np.frompyfunc(place, 1, 1))
    assert not kinds.is_row_wise(made)
    assert not repeating.repeats(made)
    assert not kinds.is_row_wise(FunctionTransformer(np.frexp))
    assert kinds.is_row_wise(FunctionTransformer(np.exp))
    assert repeating.repeats(FunctionTransformer(np.exp))
    X = np.arange(20_000.0)[:, None]
    ours = mlopt.Pipeline([("place", made), ("same", FunctionTransformer())]).fit(X)
    seen.clear()
    np.testing.assert_array_equal(ours.transform(X)[:, 0], np.arange(1.0, 20_001.0))
