"""Logistic regression in its dual, a row at a time: the minimum of others, and a proof."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from tests.gd.laws import obeys_the_laws, stops_and_goes_on
from tests.gd.plans.test_newton_cg import data, objective, problem

import mlopt
from mlopt.cluster import Threads
from mlopt.gd.plans import Task, plan
from mlopt.gd.plans.dual_logistic import DualLogistic
from mlopt.gd.plans.stop import GradientNorm, RelativeGap
from mlopt.gd.plans.task import problem_of
from mlopt.kernels.dual_logistic import dual_logistic_epoch
from mlopt.kernels.one_row import seeded, squared_norms

NAME = "dual-logistic"


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shape", [(80, 200), (300, 20)])
@pytest.mark.parametrize("share", [0.5, 0.05])
def test_the_minimum_is_that_of_an_independent_solver(
    layout: Any, intercept: bool, shape: tuple[int, int], share: float
) -> None:
    X, y = data(layout, *shape, share=share)
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(y))
    weights[::7] = 0.0
    task = Task("logistic", l2=0.01, fit_intercept=intercept)
    found = plan(
        task, X, y, sample_weight=weights, tolerance=1e-10, methods=[NAME]
    ).run()  # fmt: skip
    assert found.converged
    assert found.claim == "proven"
    of, how = objective(task, X, y, weights), {"gtol": 1e-10, "maxiter": 5000}
    other = minimize(of, np.zeros(shape[1] + 1), jac=True, method="BFGS", options=how)
    assert found.objective == pytest.approx(other.fun, rel=1e-9)
    np.testing.assert_allclose(found.coef, other.x[:-1], atol=1e-4)
    assert found.intercept == pytest.approx(other.x[-1], abs=1e-4)


@pytest.mark.parametrize("l2", [1e-7, 1e-3, 10.0])
@pytest.mark.parametrize("share", [0.5, 0.05])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-7])
def test_what_it_claims_of_separable_and_of_rare_classes_holds(
    l2: float, share: float, tolerance: float
) -> None:
    X, y = data(sparse.csr_array, share=share)
    task = Task("logistic", l2=l2)
    found = plan(task, X, y, tolerance=tolerance, methods=[NAME]).run()
    best = plan(task, X, y, tolerance=1e-10, methods=["dual-newton"]).run()
    assert found.converged
    assert found.objective <= best.objective * (1 + tolerance)
    assert found.gap >= found.objective / best.objective - 1 - 1e-9


def test_rows_that_have_little_in_common_take_a_few_epochs() -> None:
    rng = np.random.default_rng(3)
    n, d, each = 600, 20_000, 60
    places = rng.integers(0, d, n * each), np.arange(0, n * each + 1, each)
    X = sparse.csr_array((rng.lognormal(size=n * each), *places), shape=(n, d))
    y = (rng.random(n) < 0.3).astype(int)
    for l2 in (1e-6, 1e-4, 1e-2):
        found = plan(Task("logistic", l2=l2), X, y, tolerance=1e-6, methods=[NAME]).run()
        assert found.converged
        assert found.n_iter <= 20


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("before", [1, 2, 7])
def test_it_obeys_the_laws_of_a_training(before: int, dtype: Any) -> None:
    X, y = data()
    one = problem_of(Task("logistic", l2=1e-4), X.astype(dtype), y, Threads(1))
    whole = obeys_the_laws(lambda: DualLogistic(one, RelativeGap(1e-15), 50), before, 12)
    assert whole.passes == 12


def test_it_stops_at_its_own_limit_and_goes_on_to_another_gap() -> None:
    stops_and_goes_on(lambda *how: DualLogistic(problem(), *how), 1e-14, 3)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_gradient_that_is_asked_for_is_reached_in_every_column(intercept: bool) -> None:
    X, y = data()
    task = Task("logistic", l2=1e-4, fit_intercept=intercept)
    training = DualLogistic(problem_of(task, X, y, Threads(1)), GradientNorm(1e-6), 1000)
    training.advance(1000)
    assert training.converged
    of = objective(task, X, y, np.ones(80))
    coef, found = training.coefficients()
    assert np.abs(of(np.append(coef, found))[1]).max() <= 1e-6


@pytest.mark.parametrize("intercept", [True, False])
def test_it_ends_where_rounding_leaves_nothing_to_gain(intercept: bool) -> None:
    task = Task("logistic", l2=1e-3, fit_intercept=intercept)
    for stop in (GradientNorm(0.0), RelativeGap(1e-300)):
        training = DualLogistic(problem_of(task, *data(), Threads(1)), stop, 100_000)
        training.advance(100_000)
        assert training.done
        assert training.passes < 1000
        assert training.converged == isinstance(stop, GradientNorm)
        if intercept and isinstance(stop, GradientNorm):
            assert training.gap == np.inf  # which no gradient bounds
        else:
            assert training.gap < 1e-13


def test_empty_rows_and_rows_of_one_block_or_many_make_no_difference() -> None:
    X, y = data(sparse.csr_array, n=500, d=900)
    X = sparse.vstack((X, sparse.csr_array((40, 900)))).tocsr()
    y = np.append(y, np.arange(40) % 2)
    found = []
    for threads in (1, 3):
        one = problem_of(Task("logistic", l2=1e-3), X, y, Threads(threads))
        training = DualLogistic(one, RelativeGap(1e-12), 500)
        training.advance(500)
        assert training.converged
        found.append(training.coefficients()[0])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-8)


def test_it_is_for_a_penalty_and_two_classes() -> None:
    X, y = data()
    assert "penalty" in plan(Task("logistic"), X, y).refused[NAME]
    for other in (Task("squared_hinge", l2=1.0), Task("multinomial", l2=1.0)):
        labels = y if other.loss == "squared_hinge" else np.arange(len(y)) % 3
        assert NAME not in {one.name for one in plan(other, X, labels).alternatives}


def test_estimators_that_start_from_their_last_fit_do_not_begin_anew() -> None:
    rng = np.random.default_rng(0)
    X = sparse.random_array((3000, 30_000), density=0.003, rng=rng, format="csr")
    y = (X @ rng.normal(size=30_000) > 0).astype(int)
    model = mlopt.LogisticRegression(C=1000.0, tol=1e-8, warm_start=True).fit(X, y)
    assert model.plan_.choices[0].chosen == NAME
    theirs = LogisticRegression(C=1000.0, tol=1e-8, solver="newton-cg", max_iter=10_000)
    theirs.fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-3)
    model.fit(X, y)
    assert model.plan_.choices[0].chosen != NAME
    assert model.n_iter_[0] <= 2


@given(
    z=st.floats(-50, 50), alpha=st.floats(1e-6, 1 - 1e-6), norm=st.floats(0, 1e4),
    cost=st.floats(1e-3, 1e4),
)  # fmt: skip
@example(z=-29.0, alpha=0.015625, norm=4202.0, cost=0.0078125)  # Newton's steps turn
@settings(max_examples=200, deadline=None)
def test_a_variable_is_best_when_it_was_visited(
    z: float, alpha: float, norm: float, cost: float
) -> None:
    X, w = np.array([[np.sqrt(norm)]]), np.zeros(2)
    share = np.array([alpha * cost])
    best = np.log((cost - share) / share)
    dual_logistic_epoch(
        X, squared_norms(X), np.ones(1), np.array([cost]), bias=0.0, intercept=z,
        alpha=share, margins=best, w=w, order=np.arange(1), random=seeded(0),
    )  # fmt: skip
    margin = z + w[0] * X[0, 0]
    assert share[0] == pytest.approx(cost / (1 + np.exp(best[0])), rel=1e-9, abs=1e-300)
    near = 1e-6 * max(1.0, 1e-6 * norm * cost)
    assert best[0] == pytest.approx(margin, rel=1e-6, abs=near)
