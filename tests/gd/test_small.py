"""Fits of few values: nothing is priced, and the plan says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mlopt
from mlopt.gd.estimator_base import SMALL

REGRESSIONS = (mlopt.Ridge, mlopt.LinearRegression, mlopt.Lasso)


def fitted(estimator: Any, n: int, d: int, classes: int = 2, kind: Any = None) -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    z = X @ rng.normal(size=(d, classes)) + rng.normal(size=(n, classes))
    y = z[:, 0] if isinstance(estimator, REGRESSIONS) else z.argmax(axis=1)
    return estimator.fit(X if kind is None else kind(X), y)


@pytest.mark.parametrize(
    ("estimator", "n", "d", "expected"),
    [
        (mlopt.LogisticRegression(), 300, 5, "newton-cholesky"),
        (mlopt.LogisticRegression(), 320, 300, "lbfgs"),
        (mlopt.LinearSVC(), 300, 5, "newton-cholesky"),
        (mlopt.LinearSVC(), 320, 300, "lbfgs"),
        (mlopt.Ridge(), 300, 5, "cholesky"),
        (mlopt.Ridge(), 30, 50, "dual_cholesky"),
        (mlopt.LinearRegression(), 300, 5, "cholesky"),
        (mlopt.Ridge(positive=True), 300, 5, "working-set"),
        (mlopt.Lasso(), 300, 5, "working-set"),
        (mlopt.LogisticRegression(l1_ratio=0.5), 300, 5, "working-set"),
    ],
    ids=str,
)
def test_the_first_method_that_is_for_small_problems_is_taken(
    estimator: Any, n: int, d: int, expected: str
) -> None:
    plan = fitted(estimator, n, d).plan_
    (choice,) = plan.choices
    assert choice.chosen == expected
    assert plan.predicted is choice.predicted is None
    assert all(one.reason == "not priced" for one in choice.rejected)
    assert f"a pass goes through {n * (d + 1)} values" in str(plan)
    assert plan.measured > 0


def test_many_classes_are_one_model_of_newton_or_priced() -> None:
    few = fitted(mlopt.LogisticRegression(), 300, 5, classes=4).plan_
    assert (few.choices[0].chosen, few.predicted) == ("newton-cholesky", None)
    many = fitted(mlopt.LogisticRegression(), 200, 70, classes=5).plan_
    assert many.predicted > 0


@pytest.mark.parametrize(
    "estimator", [mlopt.LogisticRegression(), mlopt.Ridge(), mlopt.LinearSVC()], ids=str
)
def test_larger_problems_are_priced(estimator: Any) -> None:
    n = SMALL // 10
    plan = fitted(estimator, n, 9).plan_
    assert plan.predicted is None
    plan = fitted(estimator, n + 1, 9).plan_
    assert plan.predicted > 0
    assert "not priced" not in str(plan)


def test_what_no_method_is_for_without_a_price_has_one() -> None:
    assert fitted(mlopt.Ridge(), 60, 5, kind=sparse.csr_array).plan_.predicted > 0
    assert fitted(mlopt.LinearRegression(), 30, 50).plan_.predicted > 0
    assert fitted(mlopt.LinearSVC(loss="hinge", random_state=0), 60, 5).plan_.predicted > 0


def test_a_solver_by_name_has_its_price() -> None:
    plan = fitted(mlopt.LogisticRegression(solver="lbfgs"), 300, 5).plan_
    assert plan.choices[0].chosen == "lbfgs"
    assert plan.predicted > 0
