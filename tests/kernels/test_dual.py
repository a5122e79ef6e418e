"""Dual coordinate descent: optimal by duality, whatever the layout of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from mlopt.kernels import dual

Array = NDArray[Any]
BIAS = 0.7
COSTS = (0.5, 2.0)


def problem(seed: int, rows: int, columns: int) -> tuple[Array, Array, Array]:
    """Half numbers: rows of very different length would take any number of epochs."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (rows, columns)) / 2 * (rng.random((rows, columns)) < 0.6)
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


@pytest.mark.parametrize("squared", [False, True])
@given(problems)
@example(problem(118, 2, 1))  # both rows are violated alike
def test_the_primal_proves_the_dual_optimal(
    squared: bool, problem: tuple[Array, Array, Array]
) -> None:
    X, codes, weights = problem
    w, alpha = solve(X, codes, weights, squared)
    sign = np.where(codes == 1, 1.0, -1.0)
    cost = weights * np.where(codes == 1, COSTS[1], COSTS[0])
    assert alpha.min() >= 0.0
    assert squared or (alpha <= cost).all()

    lacking = np.maximum(0.0, 1.0 - sign * (X @ w[:-1] + BIAS * w[-1]))
    primal = 0.5 * w @ w + cost @ (lacking**2 if squared else lacking)
    extra = 0.25 * np.sum(alpha**2 / cost) if squared else 0.0
    # Any feasible pair bounds the other's optimum; where they meet, both are optimal.
    assert primal == pytest.approx(alpha.sum() - 0.5 * w @ w - extra, rel=1e-7)


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
