"""Conjugate gradients stop where the objective is as near its minimum as was asked."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mlopt.cluster import Threads
from mlopt.gd.plans import mixed_cholesky, sketched_cg, sparse_cg
from mlopt.gd.plans.closed import LeastSquares
from mlopt.gd.plans.squares import Squares
from mlopt.rows import Rows

Array = NDArray[Any]
N, D = 6000, 40
WAYS = {
    "sketched_cg": sketched_cg.begin,
    "mixed_cholesky": mixed_cholesky.begin,
    "sparse_cg": sparse_cg.begin,
}


def rows_of_a_kind(kind: str, rng: np.random.Generator) -> Array:
    """Rows that samples tell much of, and rows that they tell little of."""
    if kind == "heavy tails":
        return rng.standard_t(2.1, size=(N, D))
    if kind == "rare":
        return (rng.random((N, D)) < np.logspace(-3.3, -0.5, D)).astype(float)
    X = rng.normal(size=(N, D))
    if kind == "ill-conditioned":
        return X @ rng.normal(size=(D, D)) * np.logspace(-4, 3, D)
    return X + 10 * rng.normal(size=(N, 3)) @ rng.normal(size=(3, D))


@pytest.mark.parametrize("solver", list(WAYS))
@pytest.mark.parametrize("kind", ["heavy tails", "rare", "ill-conditioned", "factors"])
@pytest.mark.parametrize("noise", [0.01, 3.0])
def test_the_gap_is_reached_and_no_more_steps_are_taken(
    solver: str, kind: str, noise: float
) -> None:
    rng = np.random.default_rng(3)
    X, alpha = rows_of_a_kind(kind, rng), 1e-3 * N
    y = X @ (rng.normal(size=D) / X.std(axis=0)) + noise * rng.standard_t(3, size=N)
    centred, target = X - X.mean(axis=0), y - y.mean()
    best = np.linalg.solve(centred.T @ centred + alpha * np.eye(D), centred.T @ target)

    def objective(coef: Array) -> float:
        return float(((centred @ coef - target) ** 2).sum() + alpha * coef @ coef)

    with closing(Threads(1)) as here:
        rows = Rows.of(X, executor=here).attach(targets=y[:, None], weights=np.ones((N, 1)))
        taken = []
        for gap in (1e-2, 1e-4, 1e-6):
            squares = Squares(rows, np.array([alpha]), True, 1e-12, 1e-3, None, gap)
            training = LeastSquares(squares, solver, WAYS[solver], 500)
            training.advance(500)
            found = training.found
            assert found is not None
            assert found.solver == solver
            assert objective(found.coef[:, 0]) <= objective(best) * (1 + gap)
            taken.append(0 if found.iterations is None else int(found.iterations.max()))
        assert taken == sorted(taken)
        assert taken[0] < taken[-1] or solver != "sketched_cg"
