"""Columns of a `ColumnTransformer` are scikit-learn's, whatever labels a frame has."""

from __future__ import annotations

from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import mlopt

VALUES = np.random.default_rng(0).normal(size=(300, 4))
Y = (VALUES[:, 3] > 0).astype(int)
LABELS: dict[str, Any] = {
    "numbers": [3, 2, 1, 0],
    "numbers beyond": [10, 11, 12, 13],
    "floats": [1.5, 2.5, 0.0, 1.0],
    "dates": pd.date_range("2020", periods=4),
    "two levels": pd.MultiIndex.from_product([["a", "b"], ["c", "d"]]),
    "pairs": pd.Index([("a", 1), ("b", 2), ("c", 3), ("d", 4)], tupleize_cols=False),
    "text": list("dcba"),
}
COLUMNS: list[Any] = [[1, 2, 3], [True, False, True, False], slice(0, 2)]


def pipeline(columns: Any, rest: Any, output: str) -> Any:
    parts = ColumnTransformer([("scale", StandardScaler(), columns)], remainder=rest)
    return make_pipeline(parts.set_output(transform=output), LogisticRegression(tol=1e-8))


def parted(rows: Any) -> Any:
    return dd.from_pandas(rows, npartitions=3)


@pytest.mark.parametrize("output", ["default", "pandas"])
@pytest.mark.parametrize("rest", ["passthrough", MaxAbsScaler()], ids=str)
@pytest.mark.parametrize("columns", COLUMNS, ids=str)
@pytest.mark.parametrize("labels", LABELS)
def test_the_rest_is_taken_by_place(
    labels: str, columns: Any, rest: Any, output: str
) -> None:
    frame = pd.DataFrame(VALUES, columns=LABELS[labels])
    expected = pipeline(columns, rest, output).fit(frame, Y).predict_proba(frame)
    found = mlopt.optimize(pipeline(columns, rest, output)).fit(frame, Y)
    np.testing.assert_allclose(found.predict_proba(frame), expected, atol=1e-6)
    if labels not in ("dates", "two levels", "pairs"):  # Dask has other labels
        rows, targets = parted(frame), parted(pd.Series(Y))
        found = mlopt.optimize(pipeline(columns, rest, output)).fit(rows, targets)
        lazy = found.predict_proba(rows).compute()
        np.testing.assert_allclose(lazy, expected, atol=2e-3)


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("lazy", [False, True])
def test_a_search_over_numbered_columns(lazy: bool, planned: bool) -> None:
    frame = pd.DataFrame(VALUES)[[3, 2, 1, 0]]
    model = pipeline([1, 2, 3], "passthrough", "default")
    space = {"logisticregression__C": [0.1, 1.0]}
    expected = GridSearchCV(model, space, cv=3).fit(frame, Y)
    own = mlopt.optimize(model) if planned else model
    search = mlopt.ModelSearchCV(own, space, cv=3, sampler="grid", bandit=None)
    rows: Any = frame
    targets: Any = Y
    if lazy:
        rows, targets = parted(frame), parted(pd.Series(Y))
    search.fit(rows, targets)
    assert search.best_score_ == pytest.approx(expected.best_score_, abs=0.01)
    assert search.best_estimator_.score(frame, Y) == expected.score(frame, Y)
