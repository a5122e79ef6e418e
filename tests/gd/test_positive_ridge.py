"""`Ridge` of coefficients that may not be negative: working sets of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning

import mlopt
from mlopt.gd.working_set import WAY

Array = NDArray[Any]


def problem(n: int = 120, d: int = 15) -> tuple[Array, Array, Array]:
    """Rows, two targets, weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * rng.uniform(0.3, 3.0, d) + rng.normal(size=d)
    Y = X @ rng.normal(size=(d, 2)) + 3.0 + rng.normal(size=(n, 2))
    return X, Y, rng.uniform(0.0, 2.0, n)


def exact(X: Array, y: Array, c: Array, alpha: float, intercept: bool) -> Array:
    """Lawson and Hanson's solution of rows with those of the penalty below them."""
    mean, about = (c @ X / c.sum(), c @ y / c.sum()) if intercept else (0.0, 0.0)
    root = np.sqrt(c)[:, None]
    A = np.vstack((root * (X - mean), np.sqrt(alpha) * np.eye(X.shape[1])))
    b = np.concatenate((root[:, 0] * (y - about), np.zeros(X.shape[1])))
    return np.asarray(nnls(A, b)[0])


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("alpha", [0.1, 100.0])
def test_coefficients_are_those_of_nonnegative_least_squares(
    alpha: float, sparse: bool, intercept: bool
) -> None:
    X, Y, c = problem()
    X = np.where(np.abs(X) > 1.0, X, 0.0) if sparse else X
    rows = sp.csr_array(X) if sparse else X
    model = mlopt.Ridge(alpha, positive=True, fit_intercept=intercept).fit(rows, Y, c)
    wanted = [exact(X, y, c, alpha, intercept) for y in Y.T]
    np.testing.assert_allclose(model.coef_, wanted, atol=1e-5)
    assert (model.coef_ >= 0).all()
    about = c @ (Y - X @ np.transpose(wanted)) / c.sum() if intercept else 0.0
    np.testing.assert_allclose(model.intercept_, about, atol=1e-4)
    assert model.plan_.choices[0].chosen == model.solver_ == WAY


def test_each_target_has_its_penalty_and_shapes_are_those_of_scikit_learn() -> None:
    X, Y, _ = problem()
    for y, alpha in ((Y, [1.0, 300.0]), (Y[:, 0], 5.0), (Y[:, :1], 5.0)):
        ours, theirs = (
            kind(alpha, positive=True, tol=1e-10).fit(X, y)
            for kind in (mlopt.Ridge, linear_model.Ridge)
        )
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
        assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)
        assert ours.predict(X).shape == theirs.predict(X).shape


def test_where_all_are_positive_they_are_those_without_the_bound() -> None:
    X, _, c = problem()
    y = X @ np.linspace(1.0, 2.0, X.shape[1])
    bound, free = (
        mlopt.Ridge(1.0, positive=p).fit(X.astype(np.float32), y, c) for p in (True, False)
    )
    assert bound.coef_.dtype == np.float32
    np.testing.assert_allclose(bound.coef_, free.coef_, rtol=1e-4)


def test_few_sweeps_warn_and_the_plan_before_is_that_of_the_fit() -> None:
    X, Y, _ = problem()
    with pytest.warns(ConvergenceWarning, match="increase `max_iter`"):
        mlopt.Ridge(1e-3, positive=True, max_iter=1).fit(X, Y[:, 0])
    for solver, chosen in (("auto", WAY), ("lbfgs", "scikit-learn")):
        model = mlopt.Ridge(positive=True, solver=solver)
        assert model.explain(X, Y).choices[0].chosen == chosen


@pytest.mark.parametrize("alpha", [0.0, [1.0, 0.0]])
def test_without_a_penalty_scikit_learn_fits(alpha: Any) -> None:
    X, Y, _ = problem()
    model = mlopt.Ridge(alpha, positive=True).fit(X, Y)
    assert model.plan_.choices[0].chosen == "scikit-learn"


@pytest.mark.parametrize(
    ("n", "d", "alpha"), [(5, 120, 1e-3), (20, 120, 1e-2), (30, 60, 1e-3), (50, 500, 1e-4)]
)
@pytest.mark.parametrize("seed", range(3))
def test_few_rows_and_a_small_penalty_do_not_make_it_creep(
    n: int, d: int, alpha: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X[:, 0] + 0.3 * rng.normal(size=n)

    def objective(w: Any, b: float = 0.0) -> float:
        return float(np.square(y - X @ w - b).sum() + alpha * np.square(w).sum())

    model = mlopt.Ridge(alpha, positive=True, fit_intercept=False).fit(X, y)
    roots = np.vstack([X, np.sqrt(alpha) * np.eye(d)])
    best, _ = nnls(roots, np.append(y, np.zeros(d)))
    assert objective(model.coef_) <= objective(best) * (1 + 1e-3) + 1e-6 * float(y @ y)
