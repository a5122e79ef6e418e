"""Variance-reduced steps: sparse rows, brought up to date late, step as dense ones do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from mlopt.kernels.pointwise import losses_and_slopes
from mlopt.kernels.variance_reduced import variance_reduced_steps

Array = NDArray[Any]
N, D = 60, 7


def setting(seed: int, loss: str, l2: float) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "y": rng.choice([-1.0, 1.0], N), "c": rng.random(N) / N,
        "slopes": rng.normal(size=N), "order": rng.integers(0, N, 3 * N), "loss": loss,
        "rate": 0.3, "l2": l2, "delta": 0.5, "gradient": rng.normal(size=D + 1) / 9,
        "scale": rng.random(D + 1),
    }  # fmt: skip


def rows(dtype: Any) -> Array:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.4)
    return X.astype(dtype)


def by_hand(
    X: Array, w: Array, *, y: Array, c: Array, slopes: Array, order: Array, loss: str,
    rate: float, l2: float, delta: float, gradient: Array, scale: Array,
) -> Array:  # fmt: skip
    penalty = np.append(np.full(D, l2), 0.0)
    time = rate * scale
    for i in order:
        x = np.append(X[i], 1.0)
        slope = losses_and_slopes(loss, np.array([x @ w]), y[i : i + 1], delta)[1][0]
        w = w - time * c[i] * (slope - slopes[i]) * x
        flow = np.divide(
            -np.expm1(-time * penalty), penalty, out=time.copy(), where=penalty > 0
        )
        w = w - flow * (penalty * w + gradient)
    return w


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("l2", [0.0, 1e-5, 0.8])
@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge", "huber"])
def test_dense_and_csr_step_as_written_out(loss: str, l2: float, dtype: Any) -> None:
    X, given = rows(dtype), setting(1, loss, l2)
    start = np.linspace(-1, 1, D + 1)
    expected = by_hand(X.astype(float), start, **given)
    for layout in (np.asarray, sparse.csr_array):
        w = start.copy()
        variance_reduced_steps(layout(X), **given, w=w)
        np.testing.assert_allclose(w, expected, rtol=1e-8, atol=1e-9)


def test_at_the_solution_nothing_moves() -> None:
    X, given = rows(np.float64), setting(2, "logistic", 0.1)
    w = np.append(np.random.default_rng(3).normal(size=D), 0.2)
    slopes = losses_and_slopes("logistic", X @ w[:-1] + w[-1], given["y"])[1]
    given |= {"slopes": slopes, "gradient": np.append(-0.1 * w[:-1], 0.0)}
    after = w.copy()
    variance_reduced_steps(sparse.csr_array(X), **given, w=after)
    np.testing.assert_allclose(after, w, rtol=1e-10)
