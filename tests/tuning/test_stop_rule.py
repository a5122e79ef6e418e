"""A model of a search is as far trained as the estimator's own `fit` would have it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import LinearSVC

import mlopt


def rare_columns(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ones in few rows, standardised: directions in which an objective is nearly flat."""
    rng = np.random.default_rng(seed)
    X = (rng.random((900, 40)) < np.logspace(-2.5, -0.5, 40)).astype(float)
    X[:, X.std(axis=0) == 0] = rng.normal(size=(900, 1))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, (X @ rng.normal(size=40) + 2 * rng.normal(size=900) > 0).astype(int)


def scores(search: Any, X: Any, y: Any) -> np.ndarray:
    return np.asarray(search.fit(X, y).cv_results_["mean_test_score"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("estimator", "C_values"),
    [(LogisticRegression(), [1e-2, 1.0, 1e2]), (LinearSVC(dual=False), [1e-2, 1.0])],
)
def test_scores_are_as_near_to_the_optimum_as_those_of_grid_search(
    estimator: Any, C_values: list[float], seed: int
) -> None:
    X, y = rare_columns(seed)
    cv, space = KFold(3), {"C": C_values}
    mine = mlopt.ModelSearchCV(
        estimator, space, sampler="grid", bandit=None, cv=cv, scoring="roc_auc"
    )
    peer = GridSearchCV(estimator, space, cv=cv, scoring="roc_auc")
    tight = type(estimator)(**{**estimator.get_params(), "tol": 1e-10, "max_iter": 10_000})
    exact = scores(GridSearchCV(tight, space, cv=cv, scoring="roc_auc"), X, y)
    off = np.abs(scores(mine, X, y) - exact).max()
    theirs = np.abs(scores(peer, X, y) - exact).max()
    # As near, up to pairs of rows that change places: one pair is 1 / (150 * 150).
    assert off <= theirs + 10 / 150**2


def test_ridge_in_a_search_is_solved_to_rounding() -> None:
    X, labels = rare_columns(0)
    X = np.column_stack([X, X[:, 0] + 1e-4 * X[:, 1]])
    y = labels + X[:, 2]
    space = {"alpha": [1e-3, 1.0, 1e4]}
    mine = mlopt.ModelSearchCV(Ridge(), space, sampler="grid", bandit=None, cv=KFold(3))
    peer = GridSearchCV(Ridge(solver="svd"), space, cv=KFold(3))
    np.testing.assert_allclose(scores(mine, X, y), scores(peer, X, y), atol=1e-9)


@pytest.mark.parametrize("first", ["logistic", "svc"])
def test_a_model_ends_where_it_would_whatever_shares_its_passes(first: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 300))
    y = (X[:, :5].sum(axis=1) + 0.5 * rng.normal(size=1000) > 0).astype(int)
    X *= (
        1e-4  # all gradients are small, which a rule that is relative to them does not mind
    )
    families: dict[str, Any] = {
        "logistic": (mlopt.LogisticRegression(max_iter=1000), {"C": [1.0]}),
        "svc": (mlopt.LinearSVC(max_iter=1000), {"C": [1e5, 3e5]}),
    }
    order = sorted(families, key=lambda name: name != first)
    search = mlopt.ModelSearchCV(
        {name: families[name] for name in order}, sampler="grid", bandit=None, cv=KFold(3),
        scoring="roc_auc",
    )  # fmt: skip
    alone = mlopt.ModelSearchCV(
        *families["svc"], sampler="grid", bandit=None, cv=KFold(3), scoring="roc_auc"
    )
    found = scores(search, X, y)[search.cv_results_["family"] == "svc"]
    np.testing.assert_allclose(np.sort(found), np.sort(scores(alone, X, y)), atol=1e-6)
