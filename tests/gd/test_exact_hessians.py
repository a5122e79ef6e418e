"""Where a sample misses rare columns, a Hessian of all rows tells how near the end is."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
from scipy import sparse

from mlopt.cluster import Threads
from mlopt.gd import gap
from mlopt.gd.joint_hessian import Factor
from mlopt.gd.plans import Task
from mlopt.gd.plans.newton_cholesky import Newton
from mlopt.gd.plans.task import problem_of
from mlopt.gd.quasi_newton import QuasiNewton


@pytest.mark.parametrize("seed", range(4))
def test_steps_before_an_exact_hessian_say_nothing_of_the_gap_after_it(seed: int) -> None:
    """Nor do they make it go on: it ends at most a pass after the gap was reached."""
    rng, n, d = np.random.default_rng(seed), 30_000, 120
    X = sparse.csr_array((rng.random((n, d)) < np.logspace(-4, 0, d)).astype(float))
    y = rng.random(n) < 1 / (1 + np.exp(-X @ rng.normal(scale=4, size=d)))
    with closing(Threads(1)) as here:
        problem = problem_of(Task("logistic", l2=1e-5), X, y, here)
        best = QuasiNewton(problem.rows, [problem.model], tol=1e-13, max_passes=200)
        best.advance(200)
        least = problem.objective(*best.coefficients(0))
        training = QuasiNewton(problem.rows, [problem.model], tol=1e-9, max_passes=100)
        told, true = [], []
        while not training.done:
            training.advance(1)
            gap = problem.objective(*training.coefficients(0)) / least - 1
            if training._curvature.exact and not training.done:
                told.append(training.gap)
                true.append(gap)
    assert training.converged.all()
    assert gap <= 1e-9
    assert len(told) >= 3
    assert sum(gap <= 1e-9 for gap in true) <= 1
    for one, estimate in zip(true, told, strict=True):
        assert one < (3 if one < 0.01 else 4) * estimate


def test_a_start_from_all_rows_where_many_passes_would_follow() -> None:
    """A Hessian of a sample that misses rare columns is worth less than its seconds."""
    rng, n, d = np.random.default_rng(0), 30_000, 120
    X = sparse.csr_array((rng.random((n, d)) < np.logspace(-4, -1, d)).astype(float))
    y = rng.random(n) < 1 / (1 + np.exp(-X @ rng.normal(scale=2, size=d)))
    passes = {}
    with closing(Threads(1)) as here:
        problem = problem_of(Task("logistic", l2=1e-5), X, y, here)
        best = QuasiNewton(problem.rows, [problem.model], tol=1e-13, max_passes=200)
        best.advance(200)
        least = problem.objective(*best.coefficients(0))
        for tol in (1e-2, 1e-7):
            training = QuasiNewton(problem.rows, [problem.model], tol=tol, max_passes=100)
            training.advance(1)
            assert training._curvature.exact == (tol < 1e-2)
            training.advance(100)
            passes[tol] = training.passes
            assert problem.objective(*training.coefficients(0)) <= least * (1 + tol)
    assert passes[1e-7] <= 10


def test_of_classes_that_compete_the_bound_tells_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However little single classes' Hessians say there is to gain."""
    monkeypatch.setattr(gap, "safeguarded", lambda value, estimate, *past: 1e-3 * estimate)
    rng, n, d = np.random.default_rng(0), 3000, 12
    X = rng.normal(size=(n, d)) * np.logspace(-1, 1, d)
    y = (rng.random(n) < 0.5) + 2 * (X[:, 0] > 0)
    with closing(Threads(1)) as here:
        problem = problem_of(Task("multinomial", l2=1e-3), X, y, here)
        exact = Newton(problem.rows, problem.model, tol=1e-12, max_passes=200)
        exact.advance(200)
        least = problem.objective(*exact.coefficients(0))
        training = QuasiNewton(
            problem.rows, [problem.model], tol=1e-4, max_passes=300, certain=True
        )
        training.advance(300)
    assert training.converged.all()
    assert problem.objective(*training.coefficients(0)) <= least * (1 + 1e-4)


def test_what_rounding_leaves_of_a_hessian_has_a_factor() -> None:
    matrix = 1e-33 * np.array([[1.0, -1.5], [-1.5, 1.0]])
    right = np.array([[1.0], [1.0]])
    found = Factor.of(matrix).solve(right)
    assert np.isfinite(found).all()
    assert float((right * found).sum()) > 0  # which descends
