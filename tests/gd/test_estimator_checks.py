"""scikit-learn's own checks, over every estimator."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from mlopt.gd.elastic_net import ElasticNet, Lasso
from mlopt.gd.least_squares import LinearRegression, Ridge
from mlopt.gd.logistic import LogisticRegression
from mlopt.gd.svm import LinearSVC
from mlopt.pipeline.library.pca import PCA
from mlopt.pipeline.library.random_features import RandomFeatures

ESTIMATORS = [
    LinearRegression(),
    LinearRegression(solver="svd"),
    LinearRegression(solver="sparse_cg", tol=1e-12),
    Ridge(),
    Ridge(solver="svd"),
    Ridge(solver="cholesky"),
    Ridge(solver="sparse_cg", tol=1e-12),
    LogisticRegression(),
    LogisticRegression(class_weight="balanced"),
    LogisticRegression(solver="newton-cholesky"),
    LogisticRegression(l1_ratio=0.5),
    Lasso(0.1),
    ElasticNet(0.1, l1_ratio=0.3),
    LinearSVC(),
    LinearSVC(dual=True),
    LinearSVC(loss="hinge"),
    PCA(),
    PCA(svd_solver="full"),
    PCA(svd_solver="tsqr", whiten=True),
    PCA(1, svd_solver="covariance_eigh"),
    PCA(1, svd_solver="randomized", random_state=0),
    PCA(1, svd_solver="arpack", random_state=0),
    RandomFeatures(n_components=20),
    RandomFeatures(n_components=20, kernel="cauchy", gamma=0.1),
]


# Weighted and repeated rows take different paths to one solution. To agree in the seven
# digits that the check wants, both must go all the way, as scikit-learn has its own do.
FAR: dict[type, dict[str, Any]] = {
    LogisticRegression: {"tol": 1e-12, "max_iter": 1000},
    LinearSVC: {"tol": 1e-12, "max_iter": 100_000},
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    if "sample_weight_equivalence" in check.func.__name__:
        # a copy: all checks are given one and the same estimator
        estimator = clone(estimator).set_params(**FAR.get(type(estimator), {}))
    check(estimator)
