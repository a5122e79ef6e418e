"""exp and log in SIMD, against NumPy in higher precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mlopt.kernels.compiled import kernel
from mlopt.kernels.elementary import exp, log, log1p, twice_atanh

Array = NDArray[Any]


@kernel
def every_exp(x: Array, out: Array) -> None:
    for i in range(x.shape[0]):
        out[i] = exp(x[i])


@kernel
def every_log(x: Array, out: Array) -> None:
    for i in range(x.shape[0]):
        out[i] = log(x[i])


@kernel
def every_log1p(x: Array, out: Array) -> None:
    for i in range(x.shape[0]):
        out[i] = log1p(x[i])


@kernel
def every_twice_atanh(x: Array, out: Array) -> None:
    for i in range(x.shape[0]):
        out[i] = twice_atanh(x[i])


REALS = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@REALS
def test_exp_is_right_to_a_few_units_in_the_last_place(dtype: Any) -> None:
    x = np.linspace(-87 if dtype == np.float32 else -708, 80, 50_000).astype(dtype)
    out = np.empty_like(x)
    every_exp(x, out)
    expected = np.exp(x.astype(np.longdouble))
    assert np.abs(out / expected - 1).max() < 4 * np.finfo(dtype).eps


@REALS
def test_log_is_right_to_a_few_units_in_the_last_place(dtype: Any) -> None:
    x = np.concatenate([np.linspace(1.01, 9, 50_000), np.logspace(1, 30, 999)]).astype(
        dtype
    )
    out = np.empty_like(x)
    every_log(x, out)
    expected = np.log(x.astype(np.longdouble))
    assert np.abs(out / expected - 1).max() < 4 * np.finfo(dtype).eps


@REALS
def test_log1p_is_right_relative_to_small_arguments_too(dtype: Any) -> None:
    x = np.concatenate([np.logspace(-30, 30, 99_999), np.linspace(0.3, 0.5, 999)])
    x = x.astype(dtype)
    out = np.empty_like(x)
    every_log1p(x, out)
    expected = np.log1p(x.astype(np.longdouble))
    assert np.abs(out / expected - 1).max() < 4 * np.finfo(dtype).eps


@REALS
def test_atanh_is_right_relative_to_small_arguments_too(dtype: Any) -> None:
    x = np.logspace(-30, np.log10(1 / 3), 9_999).astype(dtype)
    out = np.empty_like(x)
    every_twice_atanh(x, out)
    expected = 2 * np.arctanh(x.astype(np.longdouble))
    assert np.abs(out / expected - 1).max() < 4 * np.finfo(dtype).eps


@REALS
def test_exp_never_underflows_and_keeps_nan(dtype: Any) -> None:
    x = np.array([-np.inf, -1e30, np.nan], dtype)
    out = np.empty_like(x)
    every_exp(x, out)
    assert (out[:2] >= np.finfo(dtype).tiny).all()
    assert np.isnan(out[2])


@REALS
@pytest.mark.parametrize(("every", "root"), [(every_log, 1.0), (every_log1p, 0.0)])
def test_logarithms_keep_nan_and_their_root(every: Any, root: float, dtype: Any) -> None:
    x = np.array([root, np.nan], dtype)
    out = np.empty_like(x)
    every(x, out)
    assert out[0] == 0
    assert np.isnan(out[1])
