"""scikit-learn's own checks, over every estimator."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from mlopt.gd.least_squares import LinearRegression, Ridge
from mlopt.pipeline.library.random_features import RandomFeatures

ESTIMATORS = [
    LinearRegression(),
    LinearRegression(solver="svd"),
    LinearRegression(solver="sparse_cg", tol=1e-12),
    Ridge(),
    Ridge(solver="svd"),
    Ridge(solver="cholesky"),
    Ridge(solver="sparse_cg", tol=1e-12),
    RandomFeatures(n_components=20),
    RandomFeatures(n_components=20, kernel="cauchy", gamma=0.1),
]


def reasons(estimator: Any) -> dict[str, str]:
    """Checks that an estimator is expected to fail, and why."""
    del estimator
    return {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=reasons)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)
