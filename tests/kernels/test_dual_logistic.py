"""Dual coordinate descent for logistic regression: optimal by duality."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mlopt.kernels.dual_logistic import LogisticState, logistic_epoch
from mlopt.kernels.one_row import squared_norms


@pytest.mark.parametrize("steep", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("layout", [np.ascontiguousarray, sparse.csr_array])
def test_the_primal_proves_the_dual_optimal(layout: Any, steep: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 5)) * (rng.random((50, 5)) < 0.6)
    X[0] = 0  # an empty row still has its loss
    y = np.where(X[:, 0] + rng.normal(size=50) > 0, 1.0, -1.0)
    C = steep * rng.integers(0, 3, 50) / 50
    rows, norms = layout(X), squared_norms(X)
    state = LogisticState.start(rows, y, C, seed=0)
    for _ in range(3000):
        logistic_epoch(rows, norms, y, C, state)
    w = state.w
    np.testing.assert_allclose(state.alpha + state.rest, C, rtol=1e-12)
    np.testing.assert_allclose(w, X.T @ (state.alpha * y), atol=1e-9 * max(1, steep))
    primal = 0.5 * float(w @ w) + float(C @ np.logaddexp(0, -y * (X @ w)))
    assert primal == pytest.approx(-state.objective(C), rel=1e-6)
