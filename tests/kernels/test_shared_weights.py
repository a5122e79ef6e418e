"""Losses of rows of one weight: the logarithm of a product is as right as a sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from mlopt.kernels.linear import Pass, linear_pass
from mlopt.kernels.losses import LOGISTIC

Array = NDArray[Any]
FORMATS: dict[str, Callable[[Array], Any]] = {"dense": lambda X: X, "csr": sparse.csr_array}

every_form = pytest.mark.parametrize("form", FORMATS)
every_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32])
one_and_many = pytest.mark.parametrize("models", [1, 3, 40])


def rows(n: int, dtype: Any) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    X = rng.normal(size=(n, 9))
    X[:, 0] = y * rng.uniform(0.5, 1.5, n)
    return X.astype(dtype), y.astype(dtype)


def weights_of(models: int, scale: float, dtype: Any) -> Array:
    """Margins of the right sign, about ``scale`` times 1, 2, 3 and so on."""
    W = np.zeros((9, models), dtype)
    W[0] = scale * (1 + np.arange(models) % 3)
    return W


def run(X: Any, y: Array, c: Array, W: Array) -> Pass:
    B = W.shape[1]
    segment = np.array([[0, B, LOGISTIC, 0, 0, 1]])
    b, delta = np.zeros(B, W.dtype), np.ones(1, W.dtype)
    return linear_pass(X, W, b, y[:, None], c[:, None], segment, delta)


def assert_right(form: str, X: Array, y: Array, c: Array, W: Array) -> None:
    got = run(FORMATS[form](X), y, c, W)
    Z, signs = X.astype(np.float64) @ W.astype(np.float64), y.astype(float)[:, None]
    loss = c.astype(float) @ np.logaddexp(0, -signs * Z)
    slope = -c[:, None] * signs * np.exp(-np.logaddexp(0, signs * Z))
    assert got.gradient is not None
    assert got.intercept_gradient is not None
    tolerance = 1e-11 if W.dtype == np.float64 else 3e-5
    # Relative to each loss, however small: margins themselves are rounded.
    np.testing.assert_allclose(got.loss, loss, rtol=tolerance)
    scale = np.abs(X).T @ np.abs(slope)
    error = np.abs(got.gradient - X.T @ slope)
    assert (error <= tolerance * scale).all()
    np.testing.assert_allclose(
        got.intercept_gradient, slope.sum(axis=0), atol=tolerance * len(y)
    )


@every_dtype
@every_form
@one_and_many
@pytest.mark.parametrize("n", [1, 7, 16, 250, 3000])
@pytest.mark.parametrize("scale", [0.0, 1.0, -4.0, 20.0])
def test_all_rows_with_one_weight(
    scale: float, n: int, models: int, form: str, dtype: Any
) -> None:
    X, y = rows(n, dtype)
    W = weights_of(models, scale, dtype)
    assert_right(form, X, y, np.ones(n, dtype), W)
    assert_right(form, X, y, np.full(n, 0.3, dtype), W)


@every_dtype
@every_form
@one_and_many
def test_rows_that_are_masked_out(models: int, form: str, dtype: Any) -> None:
    X, y = rows(3000, dtype)
    mask = np.random.default_rng(1).random(3000) < 0.7
    mask[:600] = False
    W = weights_of(models, 1.0, dtype)
    assert_right(form, X, y, np.where(mask, 2.5, 0).astype(dtype), W)
    assert_right(form, X, y, mask.astype(dtype), W)


@every_dtype
@every_form
@one_and_many
@pytest.mark.parametrize("odd", [0, 130, 2047, 2999])
def test_a_single_row_with_another_weight(
    odd: int, models: int, form: str, dtype: Any
) -> None:
    """Whether weights are shared is looked at block by block."""
    X, y = rows(3000, dtype)
    c = np.ones(3000, dtype)
    c[odd] = 700
    assert_right(form, X, y, c, weights_of(models, 1.0, dtype))


@every_form
@one_and_many
def test_each_block_has_a_weight_of_its_own(models: int, form: str) -> None:
    X, y = rows(4096, np.float64)
    c = np.repeat([1.0, 2.0, 0.0, 3.0], 1024)
    assert_right(form, X, y, c, weights_of(models, 1.0, np.float64))


@every_form
@one_and_many
@pytest.mark.parametrize(("dtype", "scale"), [(np.float64, 100.0), (np.float32, 40.0)])
def test_tiny_losses_keep_their_digits(
    dtype: Any, scale: float, models: int, form: str
) -> None:
    """Below what 1 + e can tell from 1."""
    X, y = rows(500, dtype)
    ones, W = np.ones(500, dtype), weights_of(models, scale, dtype)
    assert 0 < run(FORMATS[form](X), y, ones, W).loss.min() < np.finfo(dtype).eps
    assert_right(form, X, y, ones, W)


@every_form
@one_and_many
@pytest.mark.parametrize("n", [5, 3000])
def test_a_margin_that_is_no_number_shows(n: int, models: int, form: str) -> None:
    X, y = rows(n, np.float64)
    X[n // 2, 0] = np.nan
    got = run(FORMATS[form](X), y, np.ones(n), weights_of(models, 1.0, np.float64))
    assert np.isnan(got.loss).all()
