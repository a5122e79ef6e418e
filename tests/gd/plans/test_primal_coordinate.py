"""Solvers that go from row to row or column to column: right, sure of it, repeatable."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, Ridge

from mlopt.cluster import Threads
from mlopt.costs import Cost
from mlopt.gd.plans import plan
from mlopt.gd.plans.methods import BY_NAME
from mlopt.gd.plans.stop import RelativeGap
from mlopt.gd.plans.task import Problem, Task, problem_of
from mlopt.resources import Resources
from mlopt.rows import Rows

Array = NDArray[Any]

PRIMAL = ("primal-coordinate-descent",)
SOLVERS = PRIMAL
LAYOUTS = {"dense": np.asarray, "csr": sparse.csr_array}
DTYPES: tuple[Any, ...] = (np.float64, np.float32)
SMOOTH = ("logistic", "squared", "squared_hinge", "huber")
N, D = 1500, 12


@cache
def data() -> tuple[Array, Array, Array]:
    """Rows, numbers and row weights; a third of the values are zeros."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.7) * np.logspace(-0.5, 0.5, D)
    y = X @ rng.normal(size=D) + 0.5 + rng.normal(size=N)
    return X, y, rng.integers(0, 4, N) / 2.0


def problem(
    task: Task, layout: str = "csr", dtype: Any = np.float64, weighted: bool = True
) -> Problem:
    X, y, c = data()
    return problem_of(
        task,
        LAYOUTS[layout](X.astype(dtype)),
        (y > 0).astype(int) if task.classifies else y,
        Threads(2),
        c if weighted else None,
    )


def objective(task: Task, weights: Array) -> float:
    """Of the weighted rows, written out."""
    X, y, c = data()
    z = X @ weights[:-1] + weights[-1]
    if task.classifies:
        m = np.where(y > 0, z, -z)
        values = {
            "logistic": np.logaddexp(0, -m),
            "squared_hinge": np.maximum(0, 1 - m) ** 2,
        }
    else:
        r = np.abs(z - y)
        huber = np.where(r <= task.delta, r**2 / 2, task.delta * (r - task.delta / 2))
        values = {"squared": r**2 / 2, "huber": huber}
    penalty = 0.5 * task.l2 * float(np.sum(weights[:-1] ** 2))
    return float(c @ values[task.loss_name] / c.sum()) + penalty


@cache
def least(task: Task) -> float:
    """The minimum, by SciPy."""
    free = np.append(np.ones(D), float(task.fit_intercept))
    found = minimize(
        lambda w: objective(task, w * free), np.zeros(D + 1), method="BFGS",
        options={"gtol": 1e-7, "maxiter": 2000},
    )  # fmt: skip
    return float(found.fun)


def gap(task: Task, solver: Any) -> float:
    coef, intercept = solver.coefficients(0)
    best = least(task)
    return (objective(task, np.append(coef[0], intercept)) - best) / best


def solved(name: str, given: Problem, tolerance: float) -> Any:
    solver: Any = BY_NAME[name].begin(given, RelativeGap(tolerance), 500, None)
    solver.advance(500)
    assert solver.converged
    assert solver.done
    return solver


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("name", PRIMAL)
def test_every_loss_ends_within_its_tolerance(
    name: str, loss: str, layout: str, dtype: Any
) -> None:
    task, tolerance = Task(loss, l2=1e-3, delta=0.8), 1e-5
    solver = solved(name, problem(task, layout, dtype), tolerance)
    assert gap(task, solver) <= 3 * tolerance + 1e-7


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SOLVERS)
def test_without_an_intercept(name: str, layout: str, dtype: Any) -> None:
    task, tolerance = Task("logistic", l2=1e-2, fit_intercept=False), 1e-5
    solver = solved(name, problem(task, layout, dtype), tolerance)
    assert gap(task, solver) <= 3 * tolerance + 1e-7
    assert solver.coefficients(0)[1] == 0


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("name", SOLVERS)
def test_the_gap_asked_for_is_the_gap_there_is(name: str, tolerance: float) -> None:
    task = Task("logistic", l2=1e-3, fit_intercept=False)
    solver = solved(name, problem(task), tolerance)
    assert gap(task, solver) <= 3 * tolerance


@pytest.mark.parametrize("name", PRIMAL)
def test_scikit_learn_has_the_same_solution(name: str) -> None:
    X, y, c = data()
    l2 = 1e-2
    ours = solved(name, problem(Task("logistic", l2=l2)), 1e-12)
    theirs = LogisticRegression(C=1 / (l2 * c.sum()), tol=1e-10, max_iter=1000)
    theirs.fit(X, y > 0, sample_weight=c)
    coef, intercept = ours.coefficients(0)
    np.testing.assert_allclose(coef, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(intercept, theirs.intercept_, atol=1e-4)
    ridge = Ridge(alpha=l2 * c.sum()).fit(X, y, sample_weight=c)
    coef, _ = solved(name, problem(Task("squared", l2=l2)), 1e-12).coefficients(0)
    np.testing.assert_allclose(coef[0], ridge.coef_, atol=1e-4)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SOLVERS)
def test_a_checkpoint_goes_on_alike(name: str, layout: str) -> None:
    given = problem(Task("logistic", l2=1e-4, fit_intercept=False), layout)
    stop, begin = RelativeGap(1e-10), BY_NAME[name].begin
    whole, first, second = (begin(given, stop, 50, None) for _ in range(3))
    whole.advance(9)
    first.advance(4)
    second.restore(first.state())
    second.advance(5)
    assert second.passes == whole.passes
    assert second.quality() == whole.quality()
    np.testing.assert_array_equal(second.coefficients(0)[0], whole.coefficients(0)[0])


@pytest.mark.parametrize("name", SOLVERS)
def test_blocks_do_not_matter(name: str) -> None:
    task, (X, y, c) = Task("logistic", l2=1e-3, fit_intercept=False), data()
    rows = Rows.of(sparse.csr_array(X), executor=Threads(2), block_rows=400)
    parts = problem_of(task, rows, y > 0, rows.executor, c)
    assert len(parts.rows.lengths) > 1
    one, many = (solved(name, given, 1e-6) for given in (problem(task), parts))
    np.testing.assert_allclose(one.coefficients(0)[0], many.coefficients(0)[0], atol=1e-9)


@pytest.mark.parametrize("name", PRIMAL)
def test_a_start_at_the_solution_takes_an_epoch(name: str) -> None:
    given = problem(Task("logistic", l2=1e-3))
    start = solved(name, given, 1e-10).coefficients(0)
    again = BY_NAME[name].begin(given, RelativeGap(1e-6), 100, start)
    again.advance(1)
    assert again.converged


@pytest.mark.parametrize("name", SOLVERS)
def test_the_limit_of_passes_is_kept(name: str) -> None:
    given = problem(Task("logistic", l2=1e-6, fit_intercept=False))
    solver = BY_NAME[name].begin(given, RelativeGap(1e-12), 2, None)
    solver.advance(10)
    assert solver.passes == 2
    assert solver.done
    assert not solver.converged


def test_what_cannot_be_used_says_why() -> None:
    price, resources = BY_NAME["dual-coordinate-descent"].price, Resources()
    said = price(problem(Task("hinge", l2=1e-3)).outline, resources)
    assert "`fit_intercept` must be False" in str(said)
    free = problem(Task("hinge", fit_intercept=False))
    assert "`l2` must be positive" in str(price(free.outline, resources))


def cost(name: str, given: Problem, epochs: float) -> Cost:
    price = BY_NAME[name].price(given.outline, Resources())
    assert not isinstance(price, str)
    return price(epochs)


@pytest.mark.parametrize("name", SOLVERS)
def test_more_epochs_cost_more(name: str) -> None:
    given = problem(Task("logistic", l2=1e-3, fit_intercept=False))
    one, two = (cost(name, given, epochs) for epochs in (10.0, 20.0))
    assert 0 < one.seconds(Resources()) < two.seconds(Resources())
    assert BY_NAME[name].passes(given.outline.shape) >= 1


def test_row_weights_are_shares() -> None:
    _, shares = problem(Task("logistic")).targets_and_shares()
    assert shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("l2", [0.0, 1e-3])
def test_numbers_that_are_far_from_zero_are_met_by_the_intercept(l2: float) -> None:
    X, y, _ = data()
    task, X = Task("huber", l2=l2), X[:200]
    near, far = (
        plan(task, X, y[:200] + by, tolerance=1e-6).run() for by in (0.0, 1e4)
    )  # fmt: skip
    assert far.objective == pytest.approx(near.objective, rel=1e-5)
    np.testing.assert_allclose(far.coef, near.coef, atol=0.02)
