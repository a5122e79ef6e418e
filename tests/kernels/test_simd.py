"""Lanes do what their plain Python bodies say, and what NumPy does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mlopt.kernels.compiled import kernel
from mlopt.kernels.simd import (
    lane_count,
    like,
    load,
    load_like,
    magnitude,
    muladd,
    number_at,
    put_number,
    select,
    some,
    splat,
    splat_at,
    splat_wide,
    store,
    total,
    turn,
)

Array = NDArray[Any]
REALS = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@kernel
def formulas(A: Array, out: Array) -> None:
    """Every operation on one register, on two, and on numbers."""
    L = lane_count(A.itemsize)
    v, w = load(A, 1), load(A, 1 + L)
    store(out, 0, select(v < w, v + w, v - w))
    store(out, L, muladd(-v, splat(A[0]), w / like(v, 2)))
    store(out, 2 * L, magnitude(v) * splat_at(A, 3))
    wide = load_like(splat_wide(A[0]), A, 0)
    store(out, 3 * L, select(wide > like(wide, 0.5), wide, like(wide, 0.5)))
    put_number(out, 5 * L, total(v) + number_at(A, 2))
    put_number(out, 5 * L + 1, select(A[0] <= A[1], magnitude(A[0]), like(A[1], 7)))
    put_number(out, 5 * L + 2, like(A[0], 1.0 if some(v == v) else 0.0))
    put_number(out, 5 * L + 3, like(A[0], 1.0 if some(v > v) else 0.0))


@kernel
def turned(A: Array, T: Array) -> None:
    turn(A, 1, A.shape[1], T, 2, T.shape[1])


@REALS
def test_operations_agree_with_numpy(dtype: Any) -> None:
    A = np.random.default_rng(0).normal(size=64).astype(dtype)
    L = lane_count(A.itemsize)
    out = np.zeros(6 * L, dtype)
    formulas(A, out)
    v, w, wide = A[1 : 1 + L], A[1 + L : 1 + 2 * L], A[: 2 * L]
    scalars = [
        v.sum() + A[2],
        np.abs(A[0]) if A[0] <= A[1] else 7,
        1,
        0,
    ]
    expected = np.concatenate(
        [
            np.where(v < w, v + w, v - w),
            w / 2 - v * A[0],
            np.abs(v) * A[3],
            np.maximum(wide, dtype(0.5)),
            scalars,
        ]
    )
    np.testing.assert_allclose(out[: len(expected)], expected, rtol=1e-5)
    assert not out[len(expected) :].any()


@REALS
def test_squares_of_lanes_are_transposed_in_place_of_others(dtype: Any) -> None:
    L = lane_count(np.dtype(dtype).itemsize)
    A = np.arange((L + 1) * (L + 3)).reshape(L + 1, L + 3).astype(dtype)
    T = np.zeros((L, L + 5), dtype)
    turned(A, T)
    np.testing.assert_array_equal(T[:, 2 : 2 + L], A[:L, 1 : 1 + L].T)
    assert not T[:, :2].any()
    assert not T[:, 2 + L :].any()


def test_lanes_are_32_bytes() -> None:
    assert lane_count(8) == 4
    assert lane_count(4) == 8
