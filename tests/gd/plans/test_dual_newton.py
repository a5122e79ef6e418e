"""Newton's method in the rows: the same minimum as in the columns, in few unknowns."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn import svm
from sklearn.utils.class_weight import compute_class_weight
from tests.gd.laws import obeys_the_laws

from mlopt.cluster import Threads
from mlopt.gd.plans import Task, plan
from mlopt.gd.plans.dual_newton import DualNewton
from mlopt.gd.plans.stop import GradientNorm, RelativeGap
from mlopt.gd.plans.task import problem_of
from mlopt.gd.svm import LinearSVC


def wide(layout: Any = np.asarray, classes: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 200)) * (rng.random((60, 200)) < 0.4) + 0.0
    X[1] = X[0]  # rows that depend on others have no factor of their own
    mixed = X[:, :classes] @ rng.normal(size=(classes, classes))
    return layout(X), (mixed + rng.normal(size=mixed.shape)).argmax(axis=1)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "multinomial"])
@pytest.mark.parametrize("intercept", [True, False])
def test_it_ends_where_other_methods_do(layout: Any, loss: str, intercept: bool) -> None:
    X, y = wide(layout, 3 if loss == "multinomial" else 2)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 60)
    task = Task(loss, l2=1e-3, fit_intercept=intercept)
    one, other = (
        plan(task, X, y, sample_weight=weights, tolerance=1e-9, methods=[name]).run()
        for name in ("dual-newton", "lbfgs")
    )
    assert one.converged
    assert one.claim == "proven"
    assert one.objective == pytest.approx(other.objective, rel=1e-8)
    np.testing.assert_allclose(one.coef, other.coef, rtol=1e-3, atol=1e-4)
    # Probabilities of a softmax are the same when all intercepts grow alike.
    free = 0.0 if one.coef.ndim == 1 else one.intercept.mean() - other.intercept.mean()
    np.testing.assert_allclose(one.intercept - free, other.intercept, atol=1e-3)


def test_the_minimum_is_that_of_an_independent_solver() -> None:
    X, y = wide()
    task, signs = Task("logistic", l2=0.01), np.where(y > 0, 1.0, -1.0)
    found = plan(task, X, y, tolerance=1e-10, methods=["dual-newton"]).run()

    def objective(w: Any) -> Any:
        z = signs * (X @ w[:-1] + w[-1])
        slope = -signs * expit(-z) / len(y)
        value = np.logaddexp(0, -z).mean() + 0.005 * w[:-1] @ w[:-1]
        return value, np.append(X.T @ slope + 0.01 * w[:-1], slope.sum())

    other = minimize(objective, np.zeros(201), jac=True, options={"gtol": 1e-9})
    assert found.objective == pytest.approx(other.fun, rel=1e-9)
    np.testing.assert_allclose(found.coef, other.x[:-1], atol=1e-6)


def test_it_obeys_the_laws_of_a_training() -> None:
    problem = problem_of(Task("logistic", l2=1e-4), *wide(), Threads(1))
    whole = obeys_the_laws(lambda: DualNewton(problem, RelativeGap(1e-12), 50), 2, 6)
    assert whole.passes == 6


def test_it_goes_on_from_the_weights_of_another() -> None:
    problem = problem_of(Task("logistic", l2=1e-4), *wide(), Threads(1))
    first = DualNewton(problem, RelativeGap(1e-10), 50)
    first.advance(50)
    again = DualNewton(problem, RelativeGap(1e-8), 50, first.coefficients())
    again.advance(50)
    assert again.converged[0]
    assert again.passes < 3 < first.passes


def test_a_gradient_that_is_asked_for_is_reached_in_every_column() -> None:
    X, y = wide()
    problem = problem_of(Task("logistic", l2=1e-4, fit_intercept=False), X, y, Threads(1))
    training = DualNewton(problem, GradientNorm(1e-5), 50)
    training.advance(50)
    coef, signs = training.coefficients()[0][0], np.where(y > 0, 1.0, -1.0)
    slopes = -signs * expit(-signs * (X @ coef)) / len(y)
    assert np.abs(X.T @ slopes + 1e-4 * coef).max() <= 1e-5


def test_it_is_for_few_rows_and_a_penalty() -> None:
    X, y = wide()
    tall = plan(Task("logistic", l2=1e-3), X[:, :20], y).refused["dual-newton"]
    assert "more equations" in tall
    free = plan(Task("logistic"), X, y).refused["dual-newton"]
    assert "positive penalty" in free


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_classes_of_few_rows_far_from_zero_are_separated(class_weight: Any) -> None:
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(90, 5))
    X = factors @ rng.normal(size=(5, 600)) + rng.normal(size=(90, 600))
    X, y = X + rng.uniform(5, 10, 600), factors[:, :3].argmax(axis=1)
    given = {"C": 100.0, "class_weight": class_weight}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = LinearSVC(**given).fit(X, y)
    assert "dual-newton" in str(ours.plan_)
    costs = compute_class_weight(class_weight, classes=np.arange(3), y=y)

    def objective(model: Any) -> float:
        own = y[:, None] == np.arange(3)
        losses = np.maximum(0, 1 - np.where(own, 1, -1) * model.decision_function(X)) ** 2
        planes = np.column_stack((model.coef_, model.intercept_))
        costly = 100.0 * (np.where(own, costs, 1.0) * losses).sum()
        return float(costly + 0.5 * (planes**2).sum())

    theirs = svm.LinearSVC(**given, dual=False).fit(X, y)
    assert objective(ours) <= 1.001 * objective(theirs)


def test_one_class_against_the_others_obeys_the_laws_of_a_training() -> None:
    X, y = wide(classes=3)
    problem = LinearSVC()._prepare(X, y, None, Threads(1))[1].ranked[0].problem
    whole = obeys_the_laws(lambda: DualNewton(problem, RelativeGap(1e-12), 50), 2, 4)
    found = whole.coefficients()
    assert found[0].shape == (3, 200)
    again = DualNewton(problem, RelativeGap(1e-8), 50, found)
    again.advance(1)
    assert again.gap < whole.gap + 1e-8


def test_where_columns_of_many_scales_separate_the_classes_it_is_the_way() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1500)) * 10 ** rng.normal(size=1500)
    y = (X @ rng.normal(size=1500) > 0).astype(int)
    found = plan(Task("squared_hinge", l2=1e-4), X, y, tolerance=1e-5).run()
    assert found.methods == ("dual-newton",)
    assert found.converged
