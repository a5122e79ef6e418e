"""Rows of weight zero are no rows to linear models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.gd.elastic_net import Lasso
from mlopt.gd.least_squares import LinearRegression, Ridge
from mlopt.gd.logistic import LogisticRegression
from mlopt.gd.plans import Task, plan
from mlopt.gd.svm import LinearSVC

MODELS = [
    LogisticRegression(tol=1e-8),
    LogisticRegression(l1_ratio=0.5, C=0.1, tol=1e-8),
    LinearSVC(tol=1e-8),
    LinearSVC(loss="hinge", tol=1e-8, max_iter=100_000),
    LinearSVC(class_weight="balanced", tol=1e-8),
    Ridge(),
    LinearRegression(),
    Lasso(alpha=0.01, tol=1e-10),
]


def drawn(layout: Any = np.asarray) -> tuple[Any, Any, Any]:
    """A few rows of three classes that count, among many."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(400, 6)), np.arange(400) % 3
    X[:, 0] += y
    weights = np.zeros(400)
    weights[random.permutation(400)[:90]] = random.random(90) + 0.1
    X[weights == 0] *= 50.0
    return layout(X), y, weights


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_rows_without_weight_are_left_out_where_they_are_most(
    model: Any, layout: Any
) -> None:
    X, y, weights = drawn(layout)
    _, chosen = clone(model)._prepare(X, y, weights, Threads())
    assert chosen.ranked[0].problem.rows.n == 90
    kept = weights > 0
    ours = clone(model).fit(X, y, sample_weight=weights)
    alone = clone(model).fit(X[kept], y[kept], sample_weight=weights[kept])
    # Each of the 90 rows may be off by `tol`; a busy machine may end another plan first.
    near: dict[str, Any] = {"rtol": 1e-6, "atol": 90 * 1e-8}
    np.testing.assert_allclose(ours.coef_, alone.coef_, **near)
    np.testing.assert_allclose(ours.intercept_, alone.intercept_, **near)


def test_rows_without_weight_still_tell_classes_and_must_be_finite() -> None:
    X, y, weights = drawn()
    y[np.flatnonzero(weights == 0)[0]] = 7
    model = LogisticRegression().fit(X, y, sample_weight=weights)
    assert model.classes_.tolist() == [0, 1, 2, 7]
    X[np.flatnonzero(weights == 0)[1], 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("model", [LogisticRegression, LinearSVC])
def test_a_balanced_class_must_have_weight(model: Any) -> None:
    X, y, weights = drawn()
    weights[y == 2] = 0.0
    with pytest.raises(InputError, match=r"got none of \[2\]"):
        model(class_weight="balanced").fit(X, y, sample_weight=weights)


@pytest.mark.parametrize(
    "model", [LogisticRegression(), LinearSVC(), LinearSVC(loss="hinge")]
)
def test_classes_of_negative_weight_are_refused(model: Any) -> None:
    X, y, _ = drawn()
    model = clone(model).set_params(class_weight={0: 1.0, 1: -0.5, 2: 1.0})
    with pytest.raises(InputError, match=r"at least 0, got a negative one for \[1\]"):
        model.fit(X, y)


def test_masked_targets_and_weights_are_refused() -> None:
    X = np.random.default_rng(0).normal(size=(500, 3))
    y = X @ [1.0, 2, 3]
    hidden = np.ma.masked_array(y, y > 1)
    with pytest.raises(InputError, match="y"):
        plan(Task("squared"), X, hidden)
    with pytest.raises(InputError, match="sample_weight"):
        plan(Task("squared"), X, y, sample_weight=np.ma.masked_array(np.ones(500), y > 1))


@pytest.mark.parametrize("seed", range(6))
def test_few_rows_of_many_may_have_a_weight(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20_000, 10))
    y = (X[:, 0] > 0).astype(int)
    kept = rng.choice(20_000, 12, replace=False)
    weight = np.zeros(20_000)
    weight[kept] = 1
    task = Task("logistic", l2=1e-2)
    found = plan(task, X, y, sample_weight=weight, methods=["newton-cholesky"]).run()
    alone = plan(task, X[kept], y[kept], methods=["newton-cholesky"]).run()
    np.testing.assert_allclose(found.coef, alone.coef, atol=1e-2)
