"""A few rows on Dask: models solve the problem they were given, as exactly as in memory."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
import sklearn.pipeline
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import mlopt

RNG = np.random.default_rng(0)


OTHER_PROBLEMS = [
    Ridge(positive=True),
    LinearRegression(positive=True),
    LogisticRegression(l1_ratio=1.0, solver="saga", max_iter=5000, random_state=0),
    LogisticRegression(solver="liblinear", intercept_scaling=3.0),
    LinearSVC(loss="hinge", max_iter=100000, random_state=0),
]


@pytest.mark.parametrize("optimize", [True, False, {"without": ["choose_ways"]}], ids=str)
@pytest.mark.parametrize("n", [150, 1500])
@pytest.mark.parametrize("last", OTHER_PROBLEMS, ids=str)
def test_a_problem_that_no_solver_has_is_left_to_scikit_learn(
    last: Any, n: int, optimize: Any
) -> None:
    rows = RNG.normal(size=(n, 4)) - 0.5
    y = (rows.sum(axis=1) > -2).astype(int)
    pipe = mlopt.Pipeline([("last", clone(last))], optimize=optimize)
    pipe.fit(da.from_array(rows, chunks=(n // 3, 4)), da.from_array(y, chunks=n // 3))
    assert np.allclose(pipe[-1].coef_, clone(last).fit(rows, y).coef_, atol=1e-12)


@pytest.mark.parametrize("kind", [Ridge, RidgeClassifier])
@pytest.mark.parametrize("d", [30, 200])
def test_a_ridge_at_its_defaults_is_solved_exactly_on_dask(kind: Any, d: int) -> None:
    rows = RNG.normal(size=(150, d))
    y = (rows.sum(axis=1) > 0).astype(int)
    ours = mlopt.make_pipeline(StandardScaler(), kind())
    ours.fit(da.from_array(rows, chunks=(50, d)), da.from_array(y, chunks=50))
    theirs = sklearn.pipeline.make_pipeline(StandardScaler(), kind()).fit(rows, y)
    assert np.allclose(ours[-1].coef_, theirs[-1].coef_, rtol=1e-9, atol=1e-11)


def test_no_component_is_kept_of_gathered_rows() -> None:
    X = np.random.default_rng(0).normal(size=(2000, 5))
    model = mlopt.make_pipeline(PCA(0)).fit(da.from_array(X, chunks=(500, 5)))
    assert model[-1].components_.shape == (0, 5)
