"""A search over matrix factorization is scikit-learn's, and halving prunes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold

import mlopt
from mlopt import MatrixFactorization


def rows() -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    P, Q = random.normal(size=(2, 80, 3))
    u, i = np.nonzero(random.random((80, 80)) < 0.3)
    return np.column_stack([u, i]), 3 + (P[u] * Q[i]).sum(axis=1) + random.normal(
        0, 0.3, len(u)
    )


GRID = {"n_components": [1, 3, 6], "alpha": [0.01, 0.1], "learning_rate": [0.01, 0.05]}
COMMON: dict[str, Any] = {"cv": KFold(3), "scoring": "neg_root_mean_squared_error"}


def test_a_grid_is_scored_as_by_grid_search() -> None:
    X, y = rows()
    theirs = GridSearchCV(MatrixFactorization(random_state=0), GRID, **COMMON).fit(X, y)
    ours = mlopt.ModelSearchCV(
        MatrixFactorization(), GRID, sampler="grid", n_trials=None, bandit=None, **COMMON
    ).fit(X, y)
    known = {str(p): s for p, s in zip(
        theirs.cv_results_["params"], theirs.cv_results_["mean_test_score"], strict=True
    )}  # fmt: skip
    for params, score in zip(
        ours.cv_results_["params"], ours.cv_results_["mean_test_score"], strict=True
    ):
        same = {name: params[name] for name in sorted(GRID)}
        assert score == pytest.approx(known[str(same)], rel=1e-9)
    assert ours.best_params_ == theirs.best_params_
    np.testing.assert_array_equal(
        ours.best_estimator_.item_factors_, theirs.best_estimator_.item_factors_
    )


def test_halving_prunes_and_the_survivors_are_trained_as_at_once() -> None:
    X, y = rows()
    model = MatrixFactorization(max_iter=40, random_state=0)
    search = mlopt.ModelSearchCV(
        model, GRID, sampler="grid", n_trials=None, bandit="successive-halving", **COMMON
    ).fit(X, y)
    assert search.n_pruned_ > 3
    assert search.best_estimator_.n_iter_ == 40
    alone = MatrixFactorization(max_iter=40, random_state=0).set_params(
        **search.best_params_
    )
    expected = np.mean([
        -np.sqrt(np.mean((alone.fit(X[a], y[a]).predict(X[b]) - y[b]) ** 2))
        for a, b in KFold(3).split(X)
    ])  # fmt: skip
    assert search.best_score_ == pytest.approx(expected, rel=1e-6)
