"""Preconditioned conjugate gradients and block solves: exact answers by other ways."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn import linear_model

from mlopt.cluster import executor
from mlopt.errors import InputError
from mlopt.gd import gram_inverse, nystrom
from mlopt.gd.column_sums import ColumnSums
from mlopt.gd.conjugate_gradients import ConjugateGradients
from mlopt.gd.least_squares import LinearRegression, Ridge
from mlopt.gd.plans.methods import BY_NAME
from mlopt.gd.plans.ranking import plan
from mlopt.gd.plans.stop import RelativeGap
from mlopt.gd.plans.task import Task as LinearTask
from mlopt.gd.plans.task import problem_of
from mlopt.rows import Rows

Array = NDArray[Any]
NEW = ["sketched_cg", "mixed_cholesky"]


def problem(n: int = 600, d: int = 12, outputs: int = 1) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)
    y = X @ rng.normal(size=(d, outputs)) + rng.normal(size=(n, outputs)) + 4.0
    return X, y[:, 0] if outputs == 1 else y, rng.random(n) + 0.1


def rows_of(X: Array, y: Array, weights: Array, block_rows: int = 100) -> Rows:
    rows = Rows.of(X, block_rows=block_rows)
    return rows.attach(targets=y.reshape(len(y), -1), weights=weights[:, None])


def same(ours: Any, theirs: Any, rtol: float = 1e-7) -> None:
    scale = np.abs(theirs.coef_).max()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=rtol, atol=rtol)
    assert np.shape(ours.coef_) == np.shape(theirs.coef_)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("solver", NEW)
def test_new_solvers_agree_with_scikit_learn(
    solver: str, outputs: int, fit_intercept: bool
) -> None:
    X, y, weights = problem(outputs=outputs)
    alphas = 2.0 if outputs == 1 else [2.0, 50.0, 2.0]
    ours = Ridge(alphas, solver=solver, tol=1e-10, fit_intercept=fit_intercept)
    theirs = linear_model.Ridge(alphas, solver="svd", fit_intercept=fit_intercept)
    same(ours.fit(X, y, weights), theirs.fit(X, y, weights))
    assert ours.solver_ == solver


@pytest.mark.parametrize("solver", NEW)
def test_the_default_tolerance_is_as_good_as_a_direct_solution(solver: str) -> None:
    X, y, _ = problem()
    ours = Ridge(solver=solver).fit(X, y)
    theirs = linear_model.Ridge(solver="cholesky").fit(X, y)
    error = np.linalg.norm(ours.coef_ - theirs.coef_) / np.linalg.norm(theirs.coef_)
    assert error < 1e-6


@pytest.mark.parametrize("solver", NEW)
def test_dependent_features_with_a_penalty(solver: str) -> None:
    X, y, weights = problem()
    X[:, 2] = X[:, 0] - X[:, 1]
    X[:, 3] = 5.0
    ours = Ridge(0.1, solver=solver, tol=1e-10).fit(X, y, weights)
    same(ours, linear_model.Ridge(0.1, solver="svd").fit(X, y, weights), rtol=1e-6)


@pytest.mark.parametrize("solver", NEW)
def test_no_digits_are_lost_far_from_zero(solver: str) -> None:
    X, y, weights = problem()
    far = X + 1e5 * np.arange(1, 13)
    ours = Ridge(solver=solver).fit(far, y, weights)
    near = Ridge(solver="svd").fit(X, y, weights)
    np.testing.assert_allclose(ours.coef_, near.coef_, rtol=1e-6)


@pytest.mark.parametrize("solver", NEW)
def test_float32_rows_are_multiplied_in_float64(solver: str) -> None:
    X, y, _ = problem()
    single = X.astype(np.float32)
    ours = Ridge(solver=solver).fit(single, y)
    theirs = linear_model.Ridge().fit(single.astype(np.float64), y.astype(np.float32))
    assert ours.coef_.dtype == np.float32
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=2e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("d", [12, 150])
def test_sparse_rows_stay_sparse_and_agree(d: int, fit_intercept: bool) -> None:
    X, y, weights = problem(d=d)
    X[np.abs(X) < 1] = 0.0
    ours = Ridge(solver="sketched_cg", tol=1e-10, fit_intercept=fit_intercept)
    ours.fit(sparse.csr_array(X), y, weights)
    theirs = linear_model.Ridge(solver="svd", fit_intercept=fit_intercept)
    same(ours, theirs.fit(X, y, weights), rtol=1e-6)


def test_few_wide_rows_go_through_a_sketch() -> None:
    X, y, weights = problem(n=90, d=240)
    ours = Ridge(5.0, solver="sketched_cg", tol=1e-10).fit(X, y, weights)
    same(ours, linear_model.Ridge(5.0, solver="svd").fit(X, y, weights), rtol=1e-6)


def test_a_column_missing_from_the_sample_costs_few_steps() -> None:
    X, y, weights = problem(n=4000)
    X[:, 5] = 0.0
    X[7, 5] = 100.0
    ours = Ridge(solver="sketched_cg", tol=1e-10).fit(X, y, weights)
    same(ours, linear_model.Ridge(solver="svd").fit(X, y, weights))
    assert ours.n_iter_[0] < 25


def test_a_restored_preconditioned_run_goes_on_exactly() -> None:
    X, y, weights = problem(n=2000)
    rows, alphas = rows_of(X, y, weights), np.ones(1)
    sums = ColumnSums.of(rows, True)
    inverse = gram_inverse.of_sample(rows, 400, sums, alphas)
    whole, begun, rest = (
        ConjugateGradients(rows, alphas, True, 1e-10, sums, inverse) for _ in range(3)
    )
    whole.advance(6)
    begun.advance(2)
    rest.restore(begun.state())
    rest.advance(4)
    np.testing.assert_array_equal(rest.coef, whole.coef)


def test_sums_of_columns_are_those_of_numpy() -> None:
    X, y, weights = problem()
    sums = ColumnSums.of(rows_of(X, y, weights), True)
    mean = weights @ X / weights.sum()
    centred, target = X - mean, y - weights @ y / weights.sum()
    np.testing.assert_allclose(sums.mean[:-1], mean)
    np.testing.assert_allclose(sums.cross[:, 0], centred.T @ (weights * target))
    np.testing.assert_allclose(sums.squares, weights @ centred**2)
    plain = ColumnSums.of(rows_of(X, y, weights), False)
    np.testing.assert_allclose(plain.cross[:, 0], X.T @ (weights * y))
    np.testing.assert_allclose(plain.squares, weights @ X**2)
    assert not plain.mean.any()


def test_blocks_without_weight_change_no_sum() -> None:
    X, y, weights = problem()
    weights[:250] = 0.0
    sums = ColumnSums.of(rows_of(X, y, weights), True)
    rest = ColumnSums.of(rows_of(X[250:], y[250:], weights[250:]), True)
    np.testing.assert_allclose(sums.mean, rest.mean)
    np.testing.assert_allclose(sums.cross, rest.cross)


def test_a_sketch_of_full_rank_is_the_inverse() -> None:
    X, y, weights = problem()
    rows = rows_of(X, y, weights)
    sums, alphas = ColumnSums.of(rows, True), np.array([3.0])
    inverse = nystrom.sketch(rows, 12, sums, alphas)
    centred = (X - sums.mean[:12]) * np.sqrt(weights)[:, None]
    v = np.random.default_rng(1).normal(size=(12, 1))
    exact = np.linalg.solve(centred.T @ centred + 3.0 * np.eye(12), v)
    np.testing.assert_allclose(inverse(v, np.arange(1)), exact, rtol=1e-2, atol=1e-4)


def test_float32_that_does_not_contract_goes_over_to_float64() -> None:
    X, y, _ = problem()
    X[:, 1:] = X[:, :1] + 1e-6 * X[:, 1:]  # condition number 1e12 in the Gram matrix
    ours = Ridge(1e-10, solver="mixed_cholesky", tol=1e-3).fit(X, y)
    assert ours.solver_ != "mixed_cholesky"
    assert "had not converged" in ours.plan_.explain()


@pytest.mark.parametrize("solver", NEW)
@pytest.mark.parametrize("unit", [1e18, 1e20, 1e40])
@pytest.mark.parametrize("d", [12, 240])
@pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")
def test_a_column_whose_squares_overflow_float32_is_not_lost(
    solver: str, unit: float, d: int
) -> None:
    X, y, _ = problem(d=d)
    X[:, 0] *= unit
    ours = Ridge(solver=solver).fit(X, y)
    theirs = linear_model.Ridge(solver="cholesky").fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5, atol=1e-5)


def test_a_user_limit_of_steps_warns() -> None:
    X, y, _ = problem()
    with pytest.warns(Warning, match="`sketched_cg` stopped at 2 steps"):
        Ridge(solver="sketched_cg", max_iter=2, tol=1e-10).fit(X, y)


@pytest.mark.parametrize("solver", NEW)
def test_without_a_penalty_they_are_refused(solver: str) -> None:
    X, y, _ = problem()
    with pytest.raises(InputError, match="needs a positive penalty"):
        LinearRegression(solver=solver).fit(X, y)
    with pytest.raises(InputError, match=f"needs a positive penalty.*{solver}"):
        plan(LinearTask("squared"), X, y, methods=[solver])


@pytest.mark.parametrize("solver", NEW)
def test_a_plan_of_gradient_descent_can_use_them(solver: str) -> None:
    X, y, _ = problem()
    with closing(executor()) as where:
        task = problem_of(LinearTask("squared", l2=0.1), X, y, where)
        training = BY_NAME[solver].begin(task, RelativeGap(1e-13), 100, None)
        training.advance(100)
    assert training.done
    assert training.converged
    theirs = linear_model.Ridge(0.1 * len(X), solver="svd").fit(X, y)
    np.testing.assert_allclose(training.coefficients(0)[0][0], theirs.coef_, rtol=1e-7)


def test_sparse_rows_are_refused_with_the_way_out() -> None:
    X, y, _ = problem()
    with pytest.raises(InputError, match=r"needs dense rows: .* under `sparse_cg`"):
        Ridge(solver="mixed_cholesky").fit(sparse.csr_array(X), y)
