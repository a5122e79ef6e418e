"""Symmetric products added up in place are the products of matrices."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from mlopt.kernels.linear import add_gram, mirror


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(0, 3), (1, 1), (50, 37), (20, 200)])
def test_it_adds_the_product_up_to_the_diagonal(dtype: Any, n: int, d: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(-9, 9, (n, d)).astype(dtype)
    total = rng.integers(-9, 9, (d, d)).astype(dtype)
    expected, above = total + X.T @ X, np.triu(total, 1)
    add_gram(X, total)
    np.testing.assert_array_equal(np.tril(total), np.tril(expected))
    np.testing.assert_array_equal(np.triu(total, 1), above)


@pytest.mark.parametrize("lie", ["in longer ones", "by columns", "backwards", "in float32"])
def test_rows_may_lie_in_memory_as_they_like(lie: str) -> None:
    whole = np.random.default_rng(0).integers(-9, 9, (30, 40)).astype(np.float64)
    X, total = whole[:, 7:20], np.zeros((13, 13))
    laid: dict[str, Any] = {
        "in longer ones": X,
        "by columns": np.asfortranarray(X),
        "backwards": X[::-1],
        "in float32": X.astype(np.float32),
    }
    add_gram(laid[lie], total)
    np.testing.assert_array_equal(mirror(total), X.T @ X)


@pytest.mark.parametrize("d", [0, 1, 64, 65, 200])
def test_what_is_above_the_diagonal_comes_from_below_it(d: int) -> None:
    total = np.random.default_rng(0).random((d, d))
    below = np.tril(total)
    found = mirror(total)
    assert found is total
    np.testing.assert_array_equal(np.tril(found), below)
    np.testing.assert_array_equal(found, found.T)


def test_threads_do_not_wait_for_each_other_nor_mix_their_sums() -> None:
    rng = np.random.default_rng(0)
    parts = [rng.integers(-9, 9, (300, 150)).astype(np.float64) for _ in range(8)]

    def added(X: Any) -> Any:
        total = np.zeros((150, 150))
        for _ in range(20):
            add_gram(X, total)
        return total

    with ThreadPoolExecutor(4) as pool:
        for X, total in zip(parts, pool.map(added, parts), strict=True):
            np.testing.assert_array_equal(mirror(total), 20 * X.T @ X)
