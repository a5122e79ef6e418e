"""Targets that cannot be learnt from are refused before anything is fitted."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from scipy import sparse

import mlopt

REGRESSORS = [
    mlopt.Ridge(),
    mlopt.Ridge(solver="svd"),
    mlopt.Ridge(solver="sparse_cg"),
    mlopt.Ridge(solver="lsqr"),
    mlopt.LinearRegression(),
    mlopt.LinearRegression(positive=True),
]
CLASSIFIERS = [
    mlopt.LogisticRegression(),
    mlopt.LogisticRegression(solver="liblinear"),
    mlopt.LinearSVC(),
    mlopt.LinearSVC(loss="hinge"),
]
HOLES = [None, np.nan, float("inf")]


@pytest.mark.parametrize("hole", HOLES)
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("estimator", REGRESSORS, ids=str)
def test_a_hole_in_a_target_of_objects_is_refused(
    estimator: Any, columns: int, hole: Any
) -> None:
    X = np.random.default_rng(0).normal(size=(6, 2))
    y = np.array([1.0, 2.0, 3.0, 1.0, 5.0, 2.0], object)
    y[2] = hole
    y = y if columns == 1 else np.column_stack([y, np.arange(6.0).astype(object)])
    with pytest.raises(ValueError, match=r"Input y contains|y must"):
        estimator.fit(X, y)
    with pytest.raises(ValueError, match=r"Input y contains|y must|in memory"):
        estimator.fit(da.from_array(X, chunks=(2, 2)), y)


@pytest.mark.parametrize("hole", HOLES)
@pytest.mark.parametrize("labels", [(0.0, 1.0), ("no", "yes")])
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=str)
def test_a_hole_in_labels_is_refused(estimator: Any, labels: Any, hole: Any) -> None:
    X = np.random.default_rng(0).normal(size=(6, 2))
    y = np.array([*labels] * 3, object)
    y[2] = hole
    with pytest.raises((ValueError, TypeError), match=r"y|label|NaN|<"):
        estimator.fit(X, y)


@pytest.mark.parametrize("model", [mlopt.Ridge(), mlopt.LinearRegression(), mlopt.Lasso()])
def test_sparse_targets_are_refused(model: Any) -> None:
    X, y = np.eye(6), sparse.csr_array(np.ones((6, 1)))
    with pytest.raises(ValueError, match=r"y must be dense.*toarray"):
        model.fit(X, y)
