"""Fits that go on where the last one stopped."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

import mlopt


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cholesky"])
@pytest.mark.parametrize("classes", [2, 3])
def test_one_step_a_fit_comes_to_the_solution(solver: str, classes: int) -> None:
    X, y = make_classification(200, 6, n_informative=4, n_classes=classes, random_state=0)
    model = mlopt.LogisticRegression(solver=solver, warm_start=True, max_iter=1, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="failed to converge"):
        seen = [model.fit(X, y).coef_.copy() for _ in range(4)]
    goal = mlopt.LogisticRegression(solver=solver, tol=1e-10, max_iter=500).fit(X, y).coef_
    left = [float(np.linalg.norm(coef - goal)) for coef in [np.zeros_like(goal), *seen]]
    assert left == sorted(left, reverse=True)
    assert len(set(left)) == 5


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cholesky"])
@pytest.mark.parametrize("classes", [2, 3])
def test_an_intercept_of_the_last_fit_does_not_stay_where_none_is_asked_for(
    classes: int, solver: str
) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)) + 3.0, rng.integers(0, classes, 200)
    model = mlopt.LogisticRegression(warm_start=True, solver=solver, tol=1e-7).fit(X, y)
    assert model.intercept_.any()
    model.set_params(fit_intercept=False).fit(X, y)
    cold = mlopt.LogisticRegression(fit_intercept=False, tol=1e-7).fit(X, y)
    assert not model.intercept_.any()
    np.testing.assert_allclose(model.coef_, cold.coef_, atol=1e-4)


@pytest.mark.parametrize("value", [0.0, 1.5])
@pytest.mark.parametrize("kind", [mlopt.Lasso, mlopt.ElasticNet])
def test_the_weight_of_a_column_that_varies_no_more_is_dropped(
    kind: type, value: float
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = X @ [1, 2, 5, 0, 0.0] + rng.normal(size=300)
    same = X.copy()
    same[:, 2] = value
    warm = kind(0.1, warm_start=True).fit(X, y).fit(same, y)
    cold = kind(0.1).fit(same, y)
    assert warm.coef_[2] == 0
    np.testing.assert_allclose(warm.coef_, cold.coef_, atol=1e-3)
    assert warm.intercept_ == pytest.approx(cold.intercept_, abs=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_so_it_is_of_classes(classes: int) -> None:
    X, y = make_classification(
        400, 8, n_informative=6, n_redundant=0, n_classes=classes, random_state=0
    )
    same = X.copy()
    same[:, 1] = 0.0
    model = mlopt.LogisticRegression(C=0.1, l1_ratio=1, warm_start=True)
    model.fit(X, y).fit(same, y)
    assert not model.coef_[:, 1].any()
    cold = mlopt.LogisticRegression(C=0.1, l1_ratio=1).fit(same, y)
    np.testing.assert_allclose(model.coef_, cold.coef_, atol=1e-2)
