"""Few rows in their own space: the factor is that of the rows, however they are scaled."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mlopt.gd.narrow import factor_of
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
    L = factor_of(Rows.of(X))
    lengths = np.linalg.norm(X, axis=1)
    error = np.abs(L @ L.T - X @ X.T)
    assert np.all(error <= 1e-12 * np.outer(lengths, lengths) + 1e-24)
