"""Primal coordinate descent: margins stay those of the weights, the objective falls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from mlopt.kernels.coordinates import column_slopes, coordinate_epoch
from mlopt.kernels.one_row import combination, products
from mlopt.kernels.pointwise import losses_and_slopes

Array = NDArray[Any]
N, D, L2, DELTA = 80, 6, 0.01, 0.5
STEEPEST = {"logistic": 0.25, "squared": 1.0, "squared_hinge": 2.0, "huber": 1.0}


def rows() -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.5)
    c = rng.random(N)
    return X, np.sign(X[:, 0] + rng.normal(size=N)), c / c.sum()


@pytest.mark.parametrize("layout", [np.ascontiguousarray, sparse.csr_array])
@pytest.mark.parametrize("loss", STEEPEST)
def test_epochs_descend_and_keep_the_margins(loss: str, layout: Any) -> None:
    X, y, c = rows()
    bound = STEEPEST[loss] * np.append(c @ X**2, 1.0) + np.append(np.full(D, L2), 0.0)
    w, z, curvature = np.zeros(D + 1), np.zeros(N), bound.copy()
    values, slopes = losses_and_slopes(loss, z, y, DELTA)
    slopes, objectives = slopes * c, [float(c @ values)]
    columns = layout(X.T)
    for _ in range(60):
        coordinate_epoch(
            columns, y, c, np.arange(D + 1), loss=loss, l2=L2, delta=DELTA, trifle=0.0,
            bound=bound, z=z, slopes=slopes, w=w, curvature=curvature,
        )  # fmt: skip
        values, expected = losses_and_slopes(loss, X @ w[:-1] + w[-1], y, DELTA)
        np.testing.assert_allclose(slopes, c * expected, atol=1e-12)
        objectives.append(float(c @ values) + 0.5 * L2 * float(w[:-1] @ w[:-1]))
    assert np.diff(objectives).max() <= 1e-12
    gradient = column_slopes(columns, slopes) + L2 * np.append(w[:-1], 0.0)
    assert np.abs(gradient).max() < 1e-7


@pytest.mark.parametrize("l2", [0.0, L2])
def test_epochs_descend_where_a_loss_is_straight(l2: float) -> None:
    X, y, c = rows()
    y = y + 1e4  # all rows are far from where Huber's loss bends
    bound = np.append(c @ X**2 + l2, 1.0)
    w, z, curvature = np.zeros(D + 1), np.zeros(N), bound.copy()
    values, slopes = losses_and_slopes("huber", z, y, DELTA)
    slopes, objectives = slopes * c, [float(c @ values)]
    for _ in range(40):
        coordinate_epoch(
            np.ascontiguousarray(X.T), y, c, np.arange(D + 1), loss="huber", l2=l2,
            delta=DELTA, trifle=0.0, bound=bound, z=z, slopes=slopes, w=w,
            curvature=curvature,
        )  # fmt: skip
        values, _ = losses_and_slopes("huber", X @ w[:-1] + w[-1], y, DELTA)
        objectives.append(float(c @ values) + 0.5 * l2 * float(w[:-1] @ w[:-1]))
    assert np.diff(objectives).max() <= 1e-9 * objectives[0]
    assert objectives[-1] < 1.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", [np.ascontiguousarray, sparse.csr_array])
def test_products_are_those_of_numpy(layout: Any, dtype: Any) -> None:
    X, y, _ = rows()
    X, w = X.astype(dtype), np.arange(D) / 3.0
    np.testing.assert_allclose(products(layout(X), w), X.astype(float) @ w, atol=1e-12)
    np.testing.assert_allclose(combination(layout(X), y), y @ X.astype(float), atol=1e-12)
