"""Sums of columns in one pass are those of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlopt.kernels.moments import moments


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize("n", [0, 1, 7, 1024, 2063])
@pytest.mark.parametrize("vectors", [1, 3])
def test_they_are_products_of_matrices(dtype: Any, n: int, vectors: int) -> None:
    rng = np.random.default_rng(n)
    X = rng.normal(scale=9, size=(n, 5)).astype(dtype)
    shift, weights = rng.normal(size=5), rng.random(n)
    V = rng.normal(size=(n, vectors))
    sums, squares, products = moments(X, shift, weights, V)
    centred = X.astype(np.float64) - shift
    assert sums.dtype == squares.dtype == products.dtype == np.float64
    np.testing.assert_allclose(sums, weights @ centred, atol=1e-9)
    np.testing.assert_allclose(products, centred.T @ V, atol=1e-9)
    np.testing.assert_allclose(squares, weights @ centred**2, atol=1e-9)


def test_many_rows_lose_no_digits() -> None:
    X = np.full((1_000_003, 1), 0.1)
    n = len(X)
    sums, squares, products = moments(X, np.zeros(1), np.ones(n), np.ones((n, 1)))
    assert sums[0] == pytest.approx(100_000.3, rel=1e-12)
    assert products[0, 0] == pytest.approx(100_000.3, rel=1e-12)
    assert squares[0] == pytest.approx(10_000.03, rel=1e-12)


def test_what_is_not_finite_shows() -> None:
    X = np.array([[1.0, 2.0], [np.nan, 3.0], [np.inf, 4.0]])
    sums, _, _ = moments(X, np.zeros(2), np.ones(3), np.ones((3, 1)))
    assert np.isnan(sums[0])
    assert sums[1] == 9.0


def test_columns_in_any_order_of_memory() -> None:
    X = np.random.default_rng(0).normal(size=(50, 4))
    for rows in (np.asfortranarray(X), X[::-1], X[:, ::2]):
        d = rows.shape[1]
        sums, _, _ = moments(rows, np.zeros(d), np.ones(50), np.ones((50, 1)))
        np.testing.assert_allclose(sums, rows.sum(axis=0))
