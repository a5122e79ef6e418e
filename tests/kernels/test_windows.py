"""Windows of images, against NumPy's views of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

from mlopt.kernels.windows import PIXELS, POOLS, both_signs, pool, unfold

RNG = np.random.default_rng(0)
DO: dict[str, Any] = {"identity": lambda x: x, "abs": np.abs, "square": np.square}
TYPES = st.sampled_from([np.float32, np.float64])


def views(images: Any, size: int, stride: int = 1) -> Any:
    """(n, rows, columns, size, size, c)."""
    seen = sliding_window_view(images, (size, size), axis=(1, 2))[:, ::stride, ::stride]
    return np.moveaxis(seen, 3, 5)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 3), st.integers(1, 5), st.integers(1, 3), st.integers(1, 3),
    st.sampled_from(sorted(POOLS)), st.sampled_from(sorted(PIXELS)), TYPES,
)  # fmt: skip
def test_pooling_is_that_of_numpy(
    n: int, size: int, stride: int, c: int, how: str, pixel: str, dtype: Any
) -> None:
    images = RNG.normal(size=(n, 7, 6, c)).astype(dtype)
    found = pool(images, size, stride, how, pixel)
    expected = getattr(DO[pixel](views(images, size, stride)), how)(axis=(3, 4))

    assert found.dtype == dtype
    assert found.shape == expected.shape
    assert np.allclose(found, expected, atol=1e-4 if dtype == np.float32 else 1e-12)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 3), st.integers(1, 5), st.integers(1, 3), TYPES)
def test_windows_are_unfolded_in_order(n: int, k: int, c: int, dtype: Any) -> None:
    images = RNG.normal(size=(n, 7, 6, c)).astype(dtype)
    assert np.array_equal(unfold(images, k), views(images, k).reshape(-1, k * k * c))


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 5), st.integers(1, 3), st.floats(0.01, 10))
def test_unfolded_windows_are_normalized(k: int, c: int, variance: float) -> None:
    images = 100.0 + RNG.normal(size=(2, 7, 6, c))
    patches = views(images, k).reshape(-1, k * k * c)
    centred = patches - patches.mean(axis=1, keepdims=True)
    spread = patches.var(axis=1, ddof=1, keepdims=True)

    assert np.allclose(unfold(images, k, variance), centred / np.sqrt(spread + variance))


@given(st.floats(-1, 1), st.floats(-1, 1), TYPES)
def test_both_signs_side_by_side(alpha: float, least: float, dtype: Any) -> None:
    images = RNG.normal(size=(2, 3, 4, 5)).astype(dtype)
    a, low = dtype(alpha), dtype(least)
    parts = [np.maximum(images - a, low), np.maximum(-images - a, low)]

    assert np.array_equal(both_signs(images, alpha, least), np.concatenate(parts, axis=3))


@pytest.mark.parametrize("how", sorted(POOLS))
def test_what_is_no_number_stays_no_number(how: str) -> None:
    images = np.zeros((1, 4, 4, 2))
    images[0, 1, 2, 1] = np.nan

    assert np.isnan(pool(images, 2, 2, how, "identity")).sum() == 1
    assert np.isnan(both_signs(images, 0.5, 0.0)).sum() == 2


def test_views_that_are_not_contiguous() -> None:
    images = RNG.normal(size=(3, 9, 8, 4))[:, 1:, ::2, 1:3]
    assert np.allclose(pool(images, 2, 1, "sum", "abs"),
                       np.abs(views(images, 2)).sum(axis=(3, 4)))  # fmt: skip
    assert np.array_equal(unfold(images, 2), views(images, 2).reshape(-1, 8))
