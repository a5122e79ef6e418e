"""Columns of polars frames that no step changes stand beside what others give."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.pipeline
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.preprocessing import (
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from tests.pipeline.peers import assert_same

import mlopt

KINDS = ["dense", "sparse"]


@pytest.mark.parametrize("plan", ["where it pays", "always"])
@pytest.mark.parametrize("n", [60, 6000])
@pytest.mark.parametrize(
    "beside", [StandardScaler(), OneHotEncoder()], ids=["dense", "sparse"]
)
def test_columns_that_pass_are_those_of_scikit_learn(
    plan: str, n: int, beside: Any
) -> None:
    rng = np.random.default_rng(0)
    table = {"a": rng.integers(12, size=n).astype(float), "b": rng.normal(size=n)}
    y = rng.normal(size=n)

    def fitted(kind: Any, X: Any) -> Any:
        columns = ColumnTransformer([("a", beside, ["a"]), ("b", "passthrough", ["b"])])
        return kind([("columns", columns), ("fit", Ridge(tol=1e-12))]).fit(X, y)

    X = pl.DataFrame(table)
    with dask.config.set({"mlopt.plan": plan}):
        ours = fitted(mlopt.Pipeline, X)
        found = ours.predict(X)
    theirs = fitted(sklearn.pipeline.Pipeline, X)
    np.testing.assert_allclose(ours["fit"].coef_, theirs["fit"].coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found, theirs.predict(X), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", [int, bool])
@pytest.mark.parametrize("n", [60, 6000])
@pytest.mark.parametrize(
    "first",
    [
        SimpleImputer(strategy="constant", fill_value=-1),
        SimpleImputer(strategy="most_frequent", missing_values=None),
        OneHotEncoder(),
        OrdinalEncoder(encoded_missing_value=-1),
    ],
    ids=["constant", "most_frequent", "onehot", "ordinal"],
)
def test_one_missing_value_says_what_type_all_rows_have(
    first: Any, n: int, kind: Any
) -> None:
    values = np.random.default_rng(0).integers(0, 2, (n, 2))
    column = [kind(value) for value in values[:, 0]]
    X = pl.DataFrame({"a": [*column[1:], None], "b": values[:, 1]})

    def fitted(make: Any, rows: Any) -> Any:
        return make(clone(first), PolynomialFeatures(2)).fit(rows)

    for rows in (X, X[-50:]):
        try:
            theirs = fitted(sklearn.pipeline.make_pipeline, rows)
            expected = theirs.transform(X)
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                fitted(mlopt.make_pipeline, rows).transform(X)
            continue
        ours = fitted(mlopt.make_pipeline, rows)
        assert_same(ours.transform(X), expected)
        for at in ("categories_", "statistics_"):
            pair = [list(getattr(one[0], at, ())) for one in (ours, theirs)]
            assert str(pair[0]) == str(pair[1])


def test_missing_values_that_no_array_holds_are_named_as_in_scikit_learn() -> None:
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": pd.array([1, None, 3], dtype="Int64")})
    columns = ColumnTransformer(
        [("a", StandardScaler(), ["a"]), ("b", "passthrough", ["b"])]
    )
    with pytest.raises(ValueError, match=r"uses pandas\.NA"):
        mlopt.Pipeline([("columns", columns), ("fit", Ridge())]).fit(X, [1.0, 2.0, 3.0])
