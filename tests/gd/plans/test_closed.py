"""Least squares of many targets as a training of the table's methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mlopt.cluster import Threads
from mlopt.gd.least_squares_fit import SOLVERS, squares_problem
from mlopt.gd.plans.fitting import unfit
from mlopt.gd.plans.methods import BY_NAME, METHODS
from mlopt.gd.plans.stop import CoefficientError, RelativeGap, Stop
from mlopt.gd.plans.task import Problem
from mlopt.rows import Rows
from mlopt.training import Training

Array = NDArray[Any]
EXACT = CoefficientError(1e-8, 1e-8, 1e-12)
PENALTIES = (0.01, 0.1, 1.0)


def problem(n: int, d: int) -> tuple[Problem, Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + 3.0
    Y = X @ rng.normal(size=(d, 3)) / np.sqrt(d) + rng.normal(size=(n, 3))
    rows = Rows.of(X, executor=Threads(1)).attach(targets=Y, weights=np.ones((n, 1)))
    return squares_problem(rows, PENALTIES, intercept=True, positive=False), X, Y


def solution(X: Array, y: Array, l2: float) -> Array:
    """By the normal equations, written out."""
    centred = X - X.mean(axis=0)
    system = centred.T @ centred / len(X) + l2 * np.eye(X.shape[1])
    return np.asarray(np.linalg.solve(system, centred.T @ (y - y.mean()) / len(X)))


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("stop", [EXACT, RelativeGap(1e-12)], ids=["exact", "gap"])
def test_every_target_is_solved_with_its_own_penalty(name: str, stop: Stop) -> None:
    given, X, Y = problem(*((20, 40) if name == "dual_cholesky" else (400, 12)))
    training = BY_NAME[name].begin(given, stop, 500, None)
    training.advance(500)
    assert training.converged
    for k, l2 in enumerate(PENALTIES):
        coef, intercept = training.coefficients(k)
        expected = solution(X, Y[:, k], l2)
        np.testing.assert_allclose(coef[0], expected, atol=1e-5)
        middle = Y[:, k].mean() - X.mean(axis=0) @ expected
        assert intercept[0] == pytest.approx(middle, abs=1e-4)


@pytest.mark.parametrize("name", SOLVERS)
def test_it_obeys_the_laws_of_a_training(name: str) -> None:
    given, _, _ = problem(*((20, 40) if name == "dual_cholesky" else (400, 12)))
    whole, parts, resumed = (BY_NAME[name].begin(given, EXACT, 500, None) for _ in range(3))
    assert isinstance(whole, Training)
    whole.advance(4)
    parts.advance(1)
    parts.advance(2)
    resumed.restore(parts.state())
    for other in (parts, resumed):
        other.advance(1)
        assert other.passes == whole.passes
        assert other.done == whole.done
        np.testing.assert_array_equal(other.coefficients(1)[0], whole.coefficients(1)[0])


def test_a_target_without_variance_has_its_mean_as_intercept() -> None:
    given, X, _ = problem(100, 3)
    flat = given.rows.attach(targets=np.full((len(X), 3), 7.0), weights=np.ones((100, 1)))
    training = BY_NAME["sparse_cg"].begin(given.on(flat), EXACT, 500, None)
    training.advance(5)
    coef, intercept = training.coefficients(0)
    assert not coef.any()
    assert intercept[0] == pytest.approx(7.0)


def test_only_least_squares_can_stop_at_an_error_of_coefficients() -> None:
    outline = problem(100, 3)[0].outline
    able = {
        method.name for method in METHODS if not unfit(method, outline.loss, False, EXACT)
    }
    assert able == set(SOLVERS)
    why = unfit(BY_NAME["lbfgs"], outline.loss, False, EXACT)
    assert why == "it cannot stop at a coefficient error of 1e-08"
