"""At default settings we are as near the optimum as scikit-learn's default solver."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn import linear_model, svm

import mlopt

Array = NDArray[Any]
_ROUNDING = 1e-10
"""Errors below it are those of the exact solution."""


def rows(kind: str) -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 20))
    if kind == "scaled":
        return X * np.logspace(-3, 3, 20)
    if kind == "correlated":
        return X @ (0.95 + 0.05 * np.eye(20))
    if kind == "far from zero":
        return X + 100
    if kind == "sparse":
        return sparse.csr_array(X * (rng.random(X.shape) < 0.1) * np.logspace(-2, 2, 20))
    return 10 * sparse.random_array(
        (800, 1500), density=0.01, rng=np.random.default_rng(0), format="csr"
    )


def numbers(X: Any) -> Array:
    """A signal to which all columns contribute alike, and noise."""
    rng = np.random.default_rng(1)
    full = X.toarray() if sparse.issparse(X) else X
    z = (full - full.mean(axis=0)) @ (rng.normal(size=X.shape[1]) / full.std(axis=0))
    return np.asarray(z / z.std() + 0.3 * rng.normal(size=len(z)))


def ridge(X: Any, y: Array, alpha: float) -> tuple[Array, float]:
    """The exact solution, by a singular value decomposition."""
    full = X.toarray() if sparse.issparse(X) else X
    mean, target = full.mean(axis=0), y.mean()
    U, s, V = np.linalg.svd(full - mean, full_matrices=False)
    kept = s > 1e-12 * s[0]
    filtered = s[kept] / (s[kept] ** 2 + alpha) * (U[:, kept].T @ (y - target))
    coef = V[kept].T @ filtered
    return coef, float(target - mean @ coef)


def far(model: Any, coef: Array) -> float:
    return float(np.linalg.norm(np.ravel(model.coef_) - coef) / np.linalg.norm(coef))


@pytest.mark.parametrize(
    "kind", ["scaled", "correlated", "far from zero", "sparse", "wide"]
)
def test_ridge(kind: str) -> None:
    X = rows(kind)
    y = numbers(X)
    coef, _ = ridge(X, y, 1.0)
    ours, theirs = mlopt.Ridge().fit(X, y), linear_model.Ridge().fit(X, y)
    assert far(ours, coef) <= far(theirs, coef) + _ROUNDING


@pytest.mark.parametrize("kind", ["correlated", "far from zero", "sparse"])
def test_linear_regression(kind: str) -> None:
    X = rows(kind)
    y = numbers(X)
    coef, _ = ridge(X, y, 0.0)
    ours, theirs = mlopt.LinearRegression(), linear_model.LinearRegression()
    assert far(ours.fit(X, y), coef) <= far(theirs.fit(X, y), coef) + _ROUNDING


@pytest.mark.parametrize(
    "kind", ["scaled", "correlated", "far from zero", "sparse", "wide"]
)
@pytest.mark.parametrize("name", ["LogisticRegression", "LinearSVC"])
def test_classifiers(name: str, kind: str) -> None:
    X = rows(kind)
    y = (numbers(X) > 0).astype(int)
    peer = getattr(linear_model if name == "LogisticRegression" else svm, name)

    def objective(model: Any) -> float:
        w, b = model.coef_[0], float(model.intercept_[0])
        m = np.where(y == 1, 1, -1) * (X @ w + b)
        if name == "LogisticRegression":
            return float(np.logaddexp(0, -m).sum() + 0.5 * w @ w)
        return float((np.maximum(0, 1 - m) ** 2).sum() + 0.5 * (w @ w + b * b))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = objective(peer().fit(X, y))
    # Both stop by the same rules, which leave them as near as a millionth or nearer.
    assert objective(getattr(mlopt, name)().fit(X, y)) <= theirs * (1 + 1e-6)
