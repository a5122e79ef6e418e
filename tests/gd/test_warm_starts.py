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
