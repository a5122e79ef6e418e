"""Few rows in their own space: the factor is that of the rows, however they are scaled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from mlopt import LinearSVC
from mlopt.gd.narrow import RowSpace
from mlopt.rows import Rows

N, D = 60, 400


def _rows(how: str) -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    match how:
        case "one is much longer":
            X[0] *= 1e9
        case "some are zeros":
            X[:10] = 0.0
        case "all are zeros":
            X[:] = 0.0
        case "all are one":
            X[:] = X[0]
        case "of rank 3, of any length":
            X = X[:, :3] @ rng.standard_normal((3, D))
            X *= np.exp(8 * rng.standard_normal((N, 1)))
    return X


@pytest.mark.parametrize(
    "how",
    [
        "one is much longer",
        "some are zeros",
        "all are zeros",
        "all are one",
        "of rank 3, of any length",
    ],
)
def test_each_row_keeps_its_products_to_its_own_rounding(how: str) -> None:
    X = _rows(how)
    (block,) = RowSpace.of(Rows.of(X)).rows(Rows.of(X)).map(lambda block: block.X)
    lengths = np.linalg.norm(X, axis=1)
    error = np.abs(block @ block.T - X @ X.T)
    assert np.all(error <= 1e-12 * np.outer(lengths, lengths) + 1e-24)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, np.float32])
def test_rows_far_from_zero_have_the_margins_and_the_weights_of_their_own_space(
    kind: Any,
) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, D))
    X[:, 7] += 1e6
    X = kind(X)
    narrow = RowSpace.of(Rows.of(X))
    (block,) = narrow.rows(Rows.of(X)).map(lambda block: block.X)
    wide = rng.standard_normal((3, D))
    found = narrow.inside(wide)
    coef = narrow.outside(found)
    np.testing.assert_allclose(block @ found.T, X @ wide.T, atol=1e-7)
    np.testing.assert_allclose(X @ coef.T, X @ wide.T, atol=1e-7)
    lengths = np.linalg.norm(coef, axis=1)
    np.testing.assert_allclose(lengths, np.linalg.norm(found, axis=1), rtol=1e-9)
    assert np.all(lengths < np.linalg.norm(wide, axis=1))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_minimum_of_rows_far_from_zero_is_one_of_all_columns(kind: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 60)) + 1e6 * rng.standard_normal(60)
    y = (rng.random(40) < 0.4).astype(int)
    model = LinearSVC(tol=1e-6)
    model._solver = "dual-newton"
    model.fit(kind(X), y)
    sign, w = np.where(y > 0, 1.0, -1.0), np.append(model.coef_[0], model.intercept_)
    short = np.maximum(0.0, 1.0 - sign * model.decision_function(X))
    near = X.mean(axis=0)
    slope = w - 2.0 * np.append(
        (X - near).T @ (sign * short) + near * (sign @ short), sign @ short
    )
    # Of a step along the gradient: what it gains is next to nothing.
    bent = slope @ slope + 2.0 * np.sum((short > 0) * (X @ slope[:-1] + slope[-1]) ** 2)
    assert (slope @ slope) ** 2 / bent < 1e-9
