"""The nearest centre of each row, and sums of the rows of each key, as of a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import kernel, part, read_only, stay_apart

Array = NDArray[Any]


@part
def _add_row(row: Array, weight: float, sums: Array) -> None:
    stay_apart()
    for j in range(row.shape[0]):
        sums[j] += weight * row[j]


@kernel
def _add(X: Array, keys: Array, weights: Array, sums: Array, totals: Array) -> None:
    for i in range(X.shape[0]):
        key = np.uint64(keys[i])
        totals[key] += weights[i]
        _add_row(X[i], weights[i], sums[key])


@kernel
def _choose(products: Array, squares: Array, nearest: Array) -> None:
    R, k = squares.shape
    for i in range(products.shape[0]):
        for r in range(R):
            best, least = 0, squares[r, 0] - 2 * products[i, r * k]
            for j in range(1, k):
                distance = squares[r, j] - 2 * products[i, r * k + j]
                if distance < least:
                    best, least = j, distance
            nearest[r, i] = best


def nearest_centres(products: Array, squares: Array) -> NDArray[np.int32]:
    """The first of the nearest centres of every start, (R, n).

    Parameters
    ----------
    products : float32 or float64 (n, R * k)
        Of rows and centres, start by start.
    squares : (R, k)
        Of the lengths of the centres, as precise.
    """
    nearest = np.empty((len(squares), len(products)), np.int32)
    _choose(*map(read_only, (np.ascontiguousarray(products), squares)), nearest)
    return nearest


def keyed_sums(
    X: Array, keys: NDArray[np.int32], weights: Array, count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted sums of the rows of each key, and of their weights.

    Parameters
    ----------
    X : float32 or float64 (n, d)
    keys : int32 (n,)
        In 0 ... count-1.
    weights : float64 (n,)
    count : int

    Returns
    -------
    sums : float64 (count, d)
    totals : float64 (count,)
    """
    sums, totals = np.zeros((count, X.shape[1])), np.zeros(count)
    _add(*map(read_only, (X, keys, weights)), sums, totals)
    return sums, totals
