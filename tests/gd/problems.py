"""Small problems, and scikit-learn's answers, for the tests of trainings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import linear_model, svm

from mlopt.cluster import Threads
from mlopt.gd.columns import Model
from mlopt.rows import Rows

Floats = NDArray[np.floating[Any]]


def features(n: int, d: int, seed: int = 0) -> Floats:
    """Columns of different sizes, one nearly a copy of another, one constant."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d)) * np.geomspace(0.3, 3.0, d)
    X[:, -1] = X[:, 0] + 0.01 * random.standard_normal(n)
    X[:, -2] = 1.0
    return X


def binary(n: int = 1200, d: int = 8, seed: int = 0) -> tuple[Floats, Floats]:
    """Features, and labels -1 and 1 with noise."""
    X = features(n, d, seed)
    random = np.random.default_rng(seed + 1)
    z = X @ random.standard_normal(d) * 0.5 + 0.3
    return X, np.where(random.random(n) < 1 / (1 + np.exp(-z)), 1.0, -1.0)


def classes(n: int = 900, d: int = 6, K: int = 3) -> tuple[Floats, Floats]:
    """Features, and class numbers."""
    X = features(n, d, 3)
    random = np.random.default_rng(4)
    Z = X @ random.standard_normal((d, K)) + 2.0 * random.gumbel(size=(n, K))
    return X, Z.argmax(axis=1).astype(float)


def folds(n: int, k: int = 3, seed: int = 5) -> Floats:
    """1 where a row is in the training part of a fold, (n, k)."""
    fold = np.random.default_rng(seed).integers(k, size=n)
    return np.asarray(fold[:, None] != np.arange(k), float)


def rows_of(
    X: Any, y: Floats, weights: Floats, *, threads: int = 2, scored: bool = True, **how: Any
) -> Rows:
    """Rows with targets and weights; what is not trained on is scored on."""
    rows = Rows.of(X, executor=Threads(threads), **how)
    dtype = rows.dtype
    extra = {
        "targets": y.reshape(len(y), -1).astype(dtype),
        "weights": weights.astype(dtype),
    }
    if scored:
        extra["score_weights"] = (weights == 0).astype(dtype)
    return rows.attach(**extra)


def sklearn_solution(model: Model, X: Any, y: Floats, c: Floats) -> tuple[Floats, Floats]:
    """What scikit-learn finds for one model, weights (K, d) and intercepts (K,)."""
    s, use = c.sum(), c > 0
    X, y, c = X[use], y[use], c[use]
    icpt = model.fit_intercept
    if model.loss in ("logistic", "multinomial"):
        est = linear_model.LogisticRegression(
            C=1 / (model.l2 * s), tol=1e-10, max_iter=5000, fit_intercept=icpt,
            solver="newton-cholesky" if model.loss == "logistic" else "lbfgs",
        ).fit(X, y, sample_weight=c)  # fmt: skip
        return np.atleast_2d(est.coef_), np.atleast_1d(est.intercept_)
    if model.loss == "squared_hinge":
        est = svm.LinearSVC(
            C=1 / (model.l2 * s),
            tol=1e-10,
            max_iter=200000,
            fit_intercept=False,
            dual=False,
        ).fit(X, y, sample_weight=c)
        return np.atleast_2d(est.coef_), np.zeros(len(np.atleast_2d(est.coef_)))
    est = linear_model.Ridge(alpha=model.l2 * s, fit_intercept=icpt)
    est.fit(X, y, sample_weight=c)
    return np.atleast_2d(est.coef_), np.atleast_1d(est.intercept_)


def objective(
    model: Model, X: Any, y: Floats, c: Floats, coef: Floats, intercept: Floats
) -> float:
    """The objective of a model with one output, or of a softmax, written down anew."""
    Z = X @ coef.T + intercept
    if model.loss == "multinomial":
        top = Z.max(axis=1)
        losses = top + np.log(np.exp(Z - top[:, None]).sum(axis=1))
        losses -= Z[np.arange(len(y)), y.astype(int)]
    else:
        z = Z[:, 0]
        losses = {
            "logistic": lambda: np.logaddexp(0, -y * z),
            "squared_hinge": lambda: np.maximum(0, 1 - y * z) ** 2,
            "hinge": lambda: np.maximum(0, 1 - y * z),
            "squared": lambda: 0.5 * (y - z) ** 2,
        }[model.loss]()
    ridge = (
        0.5 * model.l2 * (coef**2).sum() + 0.5 * model.intercept_l2 * (intercept**2).sum()
    )
    return float(c @ losses / c.sum() + ridge)
