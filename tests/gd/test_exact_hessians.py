"""Where a sample misses rare columns, a Hessian of all rows tells how near the end is."""

from __future__ import annotations

from contextlib import closing

import numpy as np
from scipy import sparse

from mlopt.cluster import Threads
from mlopt.gd.plans import Task
from mlopt.gd.plans.task import problem_of
from mlopt.gd.quasi_newton import QuasiNewton


def test_steps_before_an_exact_hessian_say_nothing_of_the_gap_after_it() -> None:
    rng, n, d = np.random.default_rng(0), 30_000, 120
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
            if training._shape.exact and not training.done:
                told.append(training.gap)
                true.append(gap)
    assert training.converged.all()
    assert gap <= 1e-9
    assert len(told) >= 3
    np.testing.assert_array_less(np.array(told), 50 * np.array(true))
    np.testing.assert_array_less(np.array(true), 3 * np.array(told))
