"""Linear models score what Dask holds as they score it in memory."""

from __future__ import annotations

from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import mlopt
from mlopt.pipeline.library.learning import BlockLeastSquaresClassifier

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
Y = pd.Series((X["a"] + rng.normal(size=200) > 0).astype(int))
WEIGHTS = rng.random(200)


@pytest.mark.parametrize(
    "model",
    [
        mlopt.LogisticRegression(), mlopt.LinearSVC(), mlopt.Ridge(), mlopt.Lasso(0.01),
        mlopt.LinearRegression(), BlockLeastSquaresClassifier(),
    ],
    ids=lambda m: type(m).__name__,
)  # fmt: skip
@pytest.mark.parametrize("kind", ["frame", "unknown chunks", "array"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_score_is_that_of_rows_in_memory(model: Any, kind: str, weighted: bool) -> None:
    frame, targets = dd.from_pandas(X, npartitions=4), dd.from_pandas(Y, npartitions=4)
    rows: Any = frame
    if kind == "unknown chunks":
        rows, targets = frame.to_dask_array(), targets.to_dask_array()
    if kind == "array":
        rows, targets = (
            da.from_array(X.to_numpy(), (50, 3)),
            da.from_array(Y.to_numpy(), 50),
        )
    weight = WEIGHTS if weighted else None
    model.fit(rows, targets)
    in_memory = X if kind == "frame" else X.to_numpy()
    expected = model.score(in_memory, Y, weight)
    for y in (targets, Y, Y.to_numpy()):
        assert model.score(rows, y, weight) == pytest.approx(expected)
    lazy = da.from_array(WEIGHTS, 50) if weighted else None
    assert model.score(rows, targets, lazy) == pytest.approx(expected)


NULLABLE = X.assign(
    d=pd.array(rng.integers(0, 5, 200), dtype="Int64"),
    e=pd.array(rng.random(200) > 0.5, dtype="boolean"),
    f=pd.array(rng.random(200), dtype="Float64"),
    g=rng.random(200) > 0.5,
)


@pytest.mark.parametrize(
    "model",
    [
        mlopt.LogisticRegression(), mlopt.LinearSVC(), mlopt.Ridge(), mlopt.Lasso(0.01),
        mlopt.LinearRegression(), mlopt.PCA(2),
    ],
    ids=lambda m: type(m).__name__,
)  # fmt: skip
def test_columns_that_may_lack_values_are_numbers(model: Any) -> None:
    lazy = dd.from_pandas(NULLABLE, npartitions=3)
    model.fit(lazy, dd.from_pandas(Y, npartitions=3))
    methods = ("predict", "decision_function", "predict_proba", "transform")
    for method in [name for name in methods if hasattr(model, name)]:
        found = getattr(model, method)(lazy)
        expected = getattr(model, method)(NULLABLE)
        assert found.dtype == found.compute().dtype == expected.dtype
        np.testing.assert_allclose(found.compute(), expected)
