"""Hinges with a free intercept: the minimum, and a gap that is proven, on any rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from tests.gd.laws import obeys_the_laws

from mlopt.cluster import Threads
from mlopt.gd.plans import Task, plan
from mlopt.gd.plans.bracket import Bracket
from mlopt.gd.plans.methods import BY_NAME
from mlopt.gd.plans.stop import RelativeGap
from mlopt.gd.plans.task import problem_of

Array = NDArray[Any]
NAMES = ("interior-point", "dual-coordinate-descent")


def objective(X: Any, y: Array, l2: float, w: Array, b: float, c: Array) -> float:
    """Written down anew."""
    sign = np.where(y == y.max(), 1.0, -1.0)
    lacking = np.maximum(0.0, 1.0 - sign * (X @ w + b))
    return float(c @ lacking / c.sum() + 0.5 * l2 * w @ w)


def minimum(X: Array, y: Array, l2: float, c: Array) -> float:
    """Of the quadratic program in weights, intercept and losses, by SciPy."""
    (n, d), sign = X.shape, np.where(y == y.max(), 1.0, -1.0)
    share = c / c.sum()
    A = np.hstack([sign[:, None] * X, sign[:, None], np.eye(n)])
    found = minimize(
        lambda v: 0.5 * l2 * v[:d] @ v[:d] + share @ v[d + 1 :],
        np.append(np.zeros(d + 1), np.ones(n)),
        jac=lambda v: np.concatenate([l2 * v[:d], [0.0], share]),
        bounds=[(None, None)] * (d + 1) + [(0, None)] * n,
        constraints={"type": "ineq", "fun": lambda v: A @ v - 1, "jac": lambda v: A},
        method="SLSQP", options={"maxiter": 2000, "ftol": 1e-13},
    )  # fmt: skip
    return objective(X, y, l2, found.x[:d], found.x[d], c)


def drawn(seed: int, n: int = 24, d: int = 3) -> tuple[Array, Array, float, Array]:
    """Rows of some offset and scale, rare or separable classes, weights of which some 0."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * random.choice([1.0, 3.0], d) + random.normal()
    z = X @ random.normal(size=d)
    noise = random.choice([0.0, 1.0]) * random.logistic(size=n)
    y = (z + noise > np.quantile(z, random.uniform(0.2, 0.8))).astype(int)
    y[:2] = 0, 1
    c = random.choice([0.0, 1.0, 2.0], n)
    c[:2] = 1.0
    return X, y, float(10.0 ** random.uniform(-2, 0)), c


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(8))
def test_the_objective_is_that_of_the_quadratic_program(name: str, seed: int) -> None:
    X, y, l2, c = drawn(seed)
    task = Task("hinge", l2=l2)
    found = plan(task, X, y, tolerance=1e-6, sample_weight=c, methods=[name]).run()
    assert found.claim == "proven"
    reached = objective(X, y, l2, found.coef, found.intercept, c)
    assert found.objective == pytest.approx(reached, rel=1e-12)
    assert reached == pytest.approx(minimum(X, y, l2, c), rel=2e-6)


@pytest.mark.parametrize("name", NAMES)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_the_gap_is_true_wherever_a_run_ends(name: str, seed: int, passes: int) -> None:
    X, y, l2, c = drawn(seed)
    task = Task("hinge", l2=l2)
    ranked = plan(task, X, y, tolerance=1e-9, sample_weight=c, methods=[name])
    found = ranked.chosen.run(max_iter=passes)
    # An optimum that no other way comes to as near in as few steps.
    near = BY_NAME["interior-point"].begin(
        problem_of(task, X, y, Threads(1), c), RelativeGap(1e-10), 200, None
    )
    near.advance(200)
    v, b = near.coefficients(0)
    least = objective(X, y, l2, v[0], float(b[0]), c)
    reached = objective(X, y, l2, found.coef, found.intercept, c)
    assert reached - least <= found.gap * reached * (1 + 1e-9)
    assert (found.claim == "proven") == (found.gap <= 1e-9)


@given(st.integers(0, 2**32 - 1))
def test_any_variables_are_a_floor_and_any_weights_a_roof(seed: int) -> None:
    X, y, l2, c = drawn(seed)
    kept = c > 0
    if kept.sum() <= len(y) // 2:  # rows without a weight are left out where they are most
        X, y, c = X[kept], y[kept], c[kept]
    problem = problem_of(Task("hinge", l2=l2), X, y, Threads(1), c)
    near = BY_NAME["interior-point"].begin(problem, RelativeGap(1e-10), 200, None)
    near.advance(200)
    v, b = near.coefficients(0)
    least = objective(X, y, l2, v[0], float(b[0]), c)
    random, bracket = np.random.default_rng(seed), Bracket(problem)
    for _ in range(5):
        other: Array = random.normal(size=X.shape[1:])
        bracket.narrow(other, X @ other, random.uniform(-0.5, 1.5, len(y)) * bracket.cost)
        assert bracket.floor * l2 <= least * (1 + 1e-9)
        plane, best = bracket.best[:-1], float(bracket.best[-1])
        at = [objective(X, y, l2, plane, best + t, c) for t in (0.0, -0.01, 0.01)]
        assert bracket.value * l2 == pytest.approx(at[0], rel=1e-12)
        assert at[0] <= min(at[1:]) * (1 + 1e-12)  # the intercept is the best


def kinds() -> dict[str, tuple[Any, Array]]:
    """Rows with which first-order methods have a hard time, and ordinary ones."""
    random = np.random.default_rng(8)
    X, noise = random.normal(size=(2000, 20)), random.logistic(size=2000)
    w = random.normal(size=20)
    scales = np.logspace(-2, 2, 20)
    few = random.normal(size=(100, 3000))
    thin = sparse.random_array((2000, 3000), density=0.005, format="csr", rng=random)
    return {
        "ordinary": (X, X[:, 0] + noise > 0),
        "single": (X.astype(np.float32), X[:, 0] + noise > 0),
        "scaled": (X * scales, X @ w + noise > 1),
        "far": (X + 100.0, X[:, 0] + noise > 0),
        "separable": (X, X @ w > 2),
        "rare": (X, X[:, 0] + noise > 6),
        "wide": (few, few[:, :9].sum(axis=1) > 1),
        "sparse": (thin, thin @ random.normal(size=3000) > 0),
        "narrow and sparse": (thin[:, :200].tocsr(), X[:, 0] + noise > 0),
    }


KINDS = kinds()


@pytest.mark.parametrize("l2", [1e-1, 1e-4])
@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_is_proven_on_rows_of_all_kinds(kind: str, l2: float) -> None:
    X, y = KINDS[kind]
    found = plan(Task("hinge", l2=l2), X, y.astype(int), tolerance=1e-3).run()
    assert found.claim == "proven", found.message
    assert found.gap <= 1e-3
    assert found.n_iter < 300


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_training(name: str) -> None:
    X, y, l2, c = drawn(3)
    problem = problem_of(Task("hinge", l2=l2), X, y, Threads(1), c)
    make = partial(BY_NAME[name].begin, problem, RelativeGap(1e-9), 50, None)
    assert obeys_the_laws(make, 3, 8).passes == 8


def test_it_goes_on_from_weights() -> None:
    X, y = KINDS["ordinary"]
    problem = problem_of(Task("hinge", l2=1e-3), X, y.astype(int), Threads(1))
    method, stop = BY_NAME["interior-point"], RelativeGap(1e-6)
    first = method.begin(problem, stop, 100, None)
    first.advance(100)
    again = method.begin(problem, stop, 100, first.coefficients(0))
    assert -again.quality() == pytest.approx(-first.quality(), rel=1e-9)
    again.advance(100)
    assert again.converged


@pytest.mark.parametrize(
    ("task", "why"),
    [
        (Task("hinge", l2=1e-3, fit_intercept=False), "free intercept"),
        (Task("hinge"), "`l2` must be positive"),
    ],
)
def test_what_it_is_not_for_it_refuses(task: Task, why: str) -> None:
    X, y = KINDS["ordinary"]
    assert why in plan(task, X, y.astype(int)).refused["interior-point"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("l2", [1e-6, 1e-2])
def test_one_class_with_a_weight_has_no_loss(l2: float) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 4))
    y = np.where(X[:, 0] > 0, 1, -1)
    task, one = Task("hinge", l2=l2), (y == 1) * 1.0
    found = plan(task, X, y, sample_weight=one, tolerance=1e-4).run()
    assert found.converged
    assert found.objective == pytest.approx(0.0, abs=1e-12)
