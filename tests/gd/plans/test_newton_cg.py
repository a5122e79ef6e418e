"""Newton's method by products with the Hessian: the minimum of others, none of it made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from tests.gd.laws import obeys_the_laws, stops_and_goes_on

from mlopt.cluster import Threads
from mlopt.gd.plans import Task, plan
from mlopt.gd.plans.newton_cg import NewtonCG
from mlopt.gd.plans.stop import GradientNorm, RelativeGap
from mlopt.gd.plans.task import Problem, problem_of
from mlopt.kernels.one_row import curved, sloped
from mlopt.rows import Rows

NAME = "newton-cg"


def data(
    layout: Any = np.asarray, n: int = 80, d: int = 200, share: float = 0.5
) -> tuple[Any, Any]:
    """Rows of columns that are common or rare, and of different size."""
    rng = np.random.default_rng(0)
    often, sizes = rng.uniform(0.02, 0.5, d), np.exp(rng.normal(size=d))
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < often) * sizes
    side = X @ (rng.normal(size=d) / sizes) + rng.normal(size=n)
    return layout(X), (side > np.quantile(side, 1 - share)).astype(int)


def problem(loss: str = "logistic", l2: float = 1e-4, **how: Any) -> Problem:
    return problem_of(Task(loss, l2=l2), *data(**how), Threads(1))


def objective(task: Task, X: Any, y: Any, weights: Any) -> Any:
    """The objective of (w, b) and its gradient, by NumPy alone."""
    signs, c = np.where(y > 0, 1.0, -1.0), weights / weights.sum()

    def value(v: Any) -> tuple[float, Any]:
        margins = signs * (X @ v[:-1] + v[-1])
        if task.loss == "logistic":
            losses, slopes = np.logaddexp(0, -margins), -expit(-margins)
        else:
            short = np.maximum(1 - margins, 0.0)
            losses, slopes = short**2, -2 * short
        slopes = c * signs * slopes
        g = np.append(X.T @ slopes + task.l2 * v[:-1], task.fit_intercept * slopes.sum())
        return float(c @ losses) + 0.5 * task.l2 * float(v[:-1] @ v[:-1]), g

    return value


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("shape", [(80, 200), (300, 20)])
def test_the_minimum_is_that_of_an_independent_solver(
    layout: Any, loss: str, intercept: bool, shape: tuple[int, int]
) -> None:
    X, y = data(layout, *shape)
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(y))
    task = Task(loss, l2=0.01, fit_intercept=intercept)
    found = plan(
        task, X, y, sample_weight=weights, tolerance=1e-10, methods=[NAME]
    ).run()  # fmt: skip
    assert found.converged
    assert found.claim == "proven"
    of, settings = objective(task, X, y, weights), {"gtol": 1e-10, "maxiter": 5000}
    other = minimize(of, np.zeros(shape[1] + 1), jac=True, method="BFGS", options=settings)
    assert found.objective == pytest.approx(other.fun, rel=1e-9)
    np.testing.assert_allclose(found.coef, other.x[:-1], atol=1e-5)
    assert found.intercept == pytest.approx(other.x[-1], abs=1e-5)


def test_it_is_the_model_of_scikit_learn() -> None:
    X, y = data(sparse.csr_array, share=0.1)
    found = plan(Task("logistic", l2=1e-3), X, y, tolerance=1e-11, methods=[NAME]).run()
    theirs = LogisticRegression(
        C=1 / (1e-3 * len(y)), solver=NAME, tol=1e-10, max_iter=1000
    ).fit(X, y)
    np.testing.assert_allclose(found.coef, theirs.coef_[0], atol=1e-5)
    assert found.intercept == pytest.approx(theirs.intercept_[0], abs=1e-5)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("l2", [1e-7, 1e-3])
@pytest.mark.parametrize("share", [0.5, 0.05])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-7])
def test_what_it_claims_of_separable_and_of_rare_classes_holds(
    loss: str, l2: float, share: float, tolerance: float
) -> None:
    X, y = data(sparse.csr_array, share=share)
    task = Task(loss, l2=l2)
    one = plan(task, X, y, tolerance=tolerance, methods=[NAME]).chosen
    found = one.run(max_iter=2000)
    best = plan(task, X, y, tolerance=1e-10, methods=["dual-newton"]).run()
    near = found.objective <= best.objective * (1 + tolerance)
    # Squared hinges of classes that can be separated take steps without number.
    assert near or (loss == "squared_hinge" and l2 == 1e-7)
    assert found.converged == near


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_start_beside_the_minimum_takes_a_few_passes(dtype: Any) -> None:
    X, y = data(sparse.csr_array)
    one = problem_of(Task("logistic", l2=1e-3), X.astype(dtype), y, Threads(1))
    first = NewtonCG(one, RelativeGap(1e-9), 1000)
    first.advance(1000)
    again = NewtonCG(one, RelativeGap(1e-8), 1000, first.coefficients())
    again.advance(1000)
    assert first.converged
    assert again.converged
    assert again.passes == 1


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("far", [2000.0, 20.0, -20.0, -2000.0])
@pytest.mark.parametrize("intercept", [0.0, 1.0])
def test_a_start_where_no_row_has_curvature_leads_to_the_minimum(
    loss: str, far: float, intercept: float
) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([-1.0, 1.0], 40)
    X = rng.normal(size=(80, 3)) + 5 * y[:, None]
    there = problem_of(Task(loss, l2=1e-4), X, y, Threads(1))
    start = np.full((1, 3), far), np.full(1, far * intercept)
    one = NewtonCG(there, GradientNorm(1e-7), 10_000, start)
    one.advance(10_000)
    best = NewtonCG(there, GradientNorm(1e-9), 10_000)
    best.advance(10_000)
    assert one.converged
    least = there.objective(*best.coefficients())
    assert there.objective(*one.coefficients()) == pytest.approx(least, rel=1e-2)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("before", [1, 2, 7, 20])
def test_it_obeys_the_laws_of_a_training(loss: str, before: int) -> None:
    whole = obeys_the_laws(
        lambda: NewtonCG(problem(loss), RelativeGap(1e-12), 50), before, 40
    )
    assert whole.passes == 40


def test_it_stops_at_its_own_limit_and_goes_on_to_another_gap() -> None:
    stops_and_goes_on(lambda *how: NewtonCG(problem(), *how), 1e-12, 5)


def test_a_gradient_that_is_asked_for_is_reached_in_every_column() -> None:
    one = problem()
    training = NewtonCG(one, GradientNorm(1e-6), 1000)
    training.advance(1000)
    assert training.converged
    of = objective(one.task, *data(), np.ones(80))
    coef, intercept = training.coefficients()
    assert np.abs(of(np.append(coef, intercept))[1]).max() <= 1e-6


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_it_ends_where_rounding_leaves_nothing_to_gain(loss: str) -> None:
    for stop in (GradientNorm(0.0), RelativeGap(1e-300)):
        training = NewtonCG(problem(loss, 1e-3), stop, 100_000)
        training.advance(100_000)
        assert training.done
        assert training.passes < 5000
        assert training.converged == isinstance(stop, GradientNorm)
        assert training.gap < 1e-15


def test_blocks_of_rows_make_no_difference() -> None:
    X, y = data(n=5000, d=30)
    task, found = Task("logistic", l2=1e-5), []
    for workers, size in ((1, None), (2, 700)):
        rows = Rows.of(X, executor=Threads(workers), block_rows=size)
        one = problem_of(task, rows, y, rows.executor)
        training = NewtonCG(one, RelativeGap(1e-9), 500)
        training.advance(500)
        assert training.converged
        found.append(training.coefficients()[0])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4, atol=1e-7)


def test_it_is_for_one_column_and_a_penalty() -> None:
    X, y = data()
    assert "penalty" in plan(Task("logistic"), X, y).refused[NAME]
    softmax = plan(Task("multinomial", l2=1.0), X, np.arange(len(y)) % 3)
    assert NAME not in {one.name for one in softmax.alternatives}


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_are_the_products_that_they_stand_for(layout: Any, dtype: Any) -> None:
    X, _ = data(layout)
    X, rng = X.astype(dtype), np.random.default_rng(2)
    ones = np.ones((X.shape[0], 1))
    whole = np.hstack((X.toarray() if sparse.issparse(X) else X, ones)).astype(np.float64)
    h, s = rng.random(80) * (rng.random(80) < 0.5), rng.normal(size=80)
    v = rng.normal(size=201)
    z, image = curved(X, h, v)
    np.testing.assert_allclose(z, whole @ v, atol=1e-12)
    np.testing.assert_allclose(image, whole.T @ (h * (whole @ v)), atol=1e-12)
    np.testing.assert_allclose(sloped(X, s, h), (whole.T @ s, (whole**2).T @ h), atol=1e-12)
