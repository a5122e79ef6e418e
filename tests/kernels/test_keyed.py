"""Nearest centres are those of all distances, sums of each key products with picks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlopt.kernels.keyed import keyed_sums, nearest_centres


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(0, 3), (1, 1), (257, 20)])
def test_sums_of_each_key_are_products_with_its_picks(dtype: Any, n: int, d: int) -> None:
    rng = np.random.default_rng(n)
    X, weights = rng.normal(size=(n, d)).astype(dtype), rng.random(n)
    keys = rng.integers(0, 4, n).astype(np.int32)  # of 5: one has no row
    sums, totals = keyed_sums(X, keys, weights, 5)
    picks = np.eye(5)[keys] * weights[:, None]
    assert sums.dtype == totals.dtype == np.float64
    np.testing.assert_allclose(sums, picks.T @ X.astype(np.float64), atol=1e-9)
    np.testing.assert_allclose(totals, picks.sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (1, 8), (3, 5)])
def test_the_first_of_the_nearest_centres_is_taken(
    dtype: Any, shape: tuple[int, int]
) -> None:
    rng, (R, k) = np.random.default_rng(0), shape
    X, centres = rng.integers(-9, 9, (97, 4)), rng.integers(-9, 9, (R, k, 4))
    centres[:, -1] = centres[:, 0]  # as near as the first
    X, centres = X.astype(dtype), centres.astype(dtype)
    found = nearest_centres(X @ centres.reshape(R * k, 4).T, np.square(centres).sum(axis=2))
    apart = np.square(X[None, :, None] - centres[:, None]).sum(axis=3)
    assert found.shape == (R, 97)
    np.testing.assert_array_equal(found, apart.argmin(axis=2))
