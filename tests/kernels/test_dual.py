"""Dual coordinate descent against a box-constrained minimiser that knows nothing of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, sparse

from mlopt.kernels import dual

Array = NDArray[Any]
BIAS = 0.7
COSTS = (0.5, 2.0)


def problem(seed: int, rows: int, columns: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.6)
    return X, rng.integers(0, 2, rows).astype(float), rng.integers(1, 4, rows) / 2.0


problems = st.builds(
    problem, st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 4)
)


def solve(X: Any, codes: Array, weights: Array, squared: bool) -> tuple[Array, Array]:
    """Epochs until nothing is violated."""
    state = dual.DualState.start(len(codes), X.shape[1], seed=0)
    _, solved = dual.dual_epochs(
        X,
        dual.squared_norms(X),
        codes,
        weights,
        state,
        positive=1.0,
        costs=COSTS,
        squared=squared,
        bias=BIAS,
        tol=1e-9,
        epochs=100_000,
    )
    assert solved
    return state.w, state.alpha


def brute_force(X: Array, codes: Array, weights: Array, squared: bool) -> float:
    """The least dual objective, by L-BFGS-B on the explicit matrix."""
    sign = np.where(codes == 1, 1.0, -1.0)
    cost = weights * np.where(codes == 1, COSTS[1], COSTS[0])
    Z = np.column_stack((X, np.full(len(X), BIAS))) * sign[:, None]
    Q = Z @ Z.T + (np.diag(0.5 / cost) if squared else 0.0)
    found = optimize.minimize(
        lambda a: (0.5 * a @ Q @ a - a.sum(), Q @ a - 1.0),
        np.zeros(len(X)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None if squared else c) for c in cost],
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000},
    )
    return float(found.fun)


def dual_objective(
    w: Array, alpha: Array, codes: Array, weights: Array, squared: bool
) -> float:
    cost = weights * np.where(codes == 1, COSTS[1], COSTS[0])
    extra = 0.25 * np.sum(alpha**2 / cost) if squared else 0.0
    return float(0.5 * w @ w + extra - alpha.sum())


@pytest.mark.parametrize("squared", [False, True])
@given(problems)
def test_the_minimum_is_a_box_constrained_minimisers(
    squared: bool, problem: tuple[Array, Array, Array]
) -> None:
    X, codes, weights = problem
    w, alpha = solve(X, codes, weights, squared)
    best = brute_force(X, codes, weights, squared)
    assert dual_objective(w, alpha, codes, weights, squared) == pytest.approx(
        best, rel=1e-6, abs=1e-8
    )


@pytest.mark.parametrize("squared", [False, True])
@given(problems)
def test_w_stays_the_sum_of_its_rows(
    squared: bool, problem: tuple[Array, Array, Array]
) -> None:
    X, codes, weights = problem
    w, alpha = solve(X, codes, weights, squared)
    signed = alpha * np.where(codes == 1, 1.0, -1.0)
    np.testing.assert_allclose(w, np.append(signed @ X, BIAS * signed.sum()), atol=1e-9)


@pytest.mark.parametrize("squared", [False, True])
@given(problems)
def test_dense_csr_and_float32_agree(
    squared: bool, problem: tuple[Array, Array, Array]
) -> None:
    X, codes, weights = problem
    w, _ = solve(X, codes, weights, squared)
    sparse_w, _ = solve(sparse.csr_array(X), codes, weights, squared)
    np.testing.assert_allclose(sparse_w, w, atol=1e-9)
    single, _ = solve(X.astype(np.float32), codes, weights, squared)
    np.testing.assert_allclose(single, w, atol=1e-3)


def test_free_rows_are_left_alone() -> None:
    X, codes, weights = problem(3, 50, 3)
    weights[::2] = 0.0
    some, _ = solve(X, codes, weights, squared=True)
    few, _ = solve(X[1::2].copy(), codes[1::2], weights[1::2], squared=True)
    np.testing.assert_allclose(some, few, atol=1e-8)


def test_norms_of_dense_and_csr_rows_agree() -> None:
    X = np.array([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0]], np.float32)
    np.testing.assert_array_equal(dual.squared_norms(X), [25.0, 0.0, 1.0])
    np.testing.assert_array_equal(dual.squared_norms(sparse.csr_array(X)), [25, 0, 1])
