"""Columns that a function chooses: by all rows, as scikit-learn asks it, not by a few."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sklearn.pipeline
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_selection import SelectFromModel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mlopt

RNG = np.random.default_rng(0)


def frame(n: int) -> tuple[pd.DataFrame, pd.Series]:
    """Numbers of which a few tell neither how many differ nor which are missing."""
    rng = np.random.default_rng(n)
    X = pd.DataFrame(
        {
            "x": rng.normal(50, 10, n),
            "z": rng.normal(-5, 3, n),
            "k": rng.integers(0, 3, n).astype(float),
        }
    )
    y = X.x + X.z + X.k
    X.loc[n - 6 : n - 3, "z"] = np.nan
    return X, y


def many(X: pd.DataFrame) -> list[str]:
    return [name for name in X.columns if X[name].nunique() > 100]


def missing(X: pd.DataFrame) -> list[str]:
    return list(X.columns[X.isna().any()])


def wide(X: Any) -> Any:
    return X.std(axis=0) * np.sqrt(len(X)) > 100


def columns_of(remainder: str) -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("missing", SimpleImputer(add_indicator=True), missing),
            ("many", StandardScaler(), many),
        ],
        remainder=remainder,
    )


def ours_and_theirs(steps: Any, X: Any, y: Any, given: Any = None) -> tuple[Any, Any]:
    ours = mlopt.Pipeline(steps()).fit(X if given is None else given[0], y)
    return ours, sklearn.pipeline.Pipeline(steps()).fit(X, y)


@pytest.mark.parametrize("plan", ["always", "where it pays"])
@pytest.mark.parametrize("n", [300, 1100, 6000])
@pytest.mark.parametrize("remainder", ["drop", "passthrough"])
@pytest.mark.parametrize("lazy", [False, True])
def test_a_function_sees_all_rows(n: int, remainder: str, lazy: bool, plan: str) -> None:
    X, y = frame(n)

    def steps() -> list[tuple[str, Any]]:
        model = ("impute", SimpleImputer()), ("m", Ridge())
        return [("c", columns_of(remainder)), *model]

    with dask.config.set({"mlopt.plan": plan}):
        given = dd.from_pandas(X, npartitions=4) if lazy else X
        ours, theirs = ours_and_theirs(steps, X, y, (given,))
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)
        found = np.asarray(ours.predict(given))
    np.testing.assert_allclose(found, theirs.predict(X), rtol=1e-6)
    assert ours[0]._columns == theirs[0]._columns
    assert ours[0].transformers[1][2] is many
    assert list(ours[0].get_feature_names_out()) == list(theirs[0].get_feature_names_out())


@pytest.mark.parametrize("n", [300, 6000])
@pytest.mark.parametrize("lazy", [False, True])
def test_a_mask_of_arrays(n: int, lazy: bool) -> None:
    X, y = RNG.normal(size=(n, 3)) * [0.5, 9, 9], RNG.normal(size=n)

    def steps() -> list[tuple[str, Any]]:
        chosen = ColumnTransformer([("s", StandardScaler(), wide)], remainder="passthrough")
        return [("c", chosen), ("m", Ridge())]

    given = da.from_array(X, chunks=(n // 3, 3)) if lazy else X
    ours, theirs = ours_and_theirs(steps, X, y, (given,))
    np.testing.assert_array_equal(ours[0]._columns[0], theirs[0]._columns[0])
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)


def convert(X: pd.DataFrame) -> pd.DataFrame:
    """Of other types by all rows than by a few."""
    return X.assign(z=X.z.fillna(0.5) if X.z.isna().any() else X.z.round().astype(int))


class Late(BaseEstimator):
    """Finds another column important on a few rows than on many."""

    def fit(self, X: Any, y: Any) -> Late:
        self.n_features_in_ = X.shape[1]
        self.feature_importances_ = np.array([1.0, len(X) < 2500, len(X) >= 2500])
        return self


@pytest.mark.parametrize(
    "first",
    [
        SelectFromModel(Late()).set_output(transform="pandas"),
        FunctionTransformer(convert),
        sklearn.pipeline.make_pipeline(SimpleImputer()).set_output(transform="pandas"),
    ],
    ids=["selected", "converted", "imputed"],
)
@pytest.mark.parametrize(
    "selector",
    [
        many,
        make_column_selector(dtype_include=float),
        make_column_selector(pattern="x|k"),
        ["x"],
    ],
    ids=["function", "types", "names", "listed"],
)
@pytest.mark.parametrize("lazy", [False, True])
def test_behind_another_step(first: Any, selector: Any, lazy: bool) -> None:
    X, y = frame(3000)
    chosen = ColumnTransformer([("s", StandardScaler(), selector)], remainder="passthrough")

    def steps() -> list[tuple[str, Any]]:
        return [("first", first), ("c", chosen), ("i", SimpleImputer()), ("m", Ridge())]

    given = dd.from_pandas(X, npartitions=3) if lazy else X
    ours, theirs = ours_and_theirs(steps, X, y, (given,))
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)
    assert ours[1]._columns == theirs[1]._columns


@pytest.mark.parametrize("n", [600, 5000])
@pytest.mark.parametrize("lazy", [False, True])
def test_a_search_asks_at_the_rows_of_each_split(n: int, lazy: bool) -> None:
    X, y = frame(n)
    X = X.fillna(0.0)

    def pipe() -> Any:
        chosen = ColumnTransformer([("s", StandardScaler(), many)], remainder="drop")
        return sklearn.pipeline.Pipeline([("c", chosen), ("m", Ridge())])

    space = {"m__alpha": [1.0, 1e4]}
    theirs = GridSearchCV(pipe(), space, cv=3).fit(X, y)
    given = dd.from_pandas(X, npartitions=4) if lazy else X
    ours = mlopt.ModelSearchCV(pipe(), space, cv=3, sampler="grid", bandit=None)
    ours.fit(given, y)
    expected = theirs.cv_results_["mean_test_score"]
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], expected, rtol=1e-6)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)
