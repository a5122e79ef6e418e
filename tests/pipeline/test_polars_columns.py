"""Columns of polars frames that no step changes stand beside what others give."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.pipeline
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.preprocessing import OneHotEncoder, StandardScaler

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


def test_missing_values_that_no_array_holds_are_named_as_in_scikit_learn() -> None:
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": pd.array([1, None, 3], dtype="Int64")})
    columns = ColumnTransformer(
        [("a", StandardScaler(), ["a"]), ("b", "passthrough", ["b"])]
    )
    with pytest.raises(ValueError, match=r"uses pandas\.NA"):
        mlopt.Pipeline([("columns", columns), ("fit", Ridge())]).fit(X, [1.0, 2.0, 3.0])
