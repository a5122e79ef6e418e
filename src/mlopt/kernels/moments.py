"""Sums of columns, of their squares, and products with a few vectors, in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import kernel, part, read_only, stay_apart

Array = NDArray[Any]

_ROWS = 1024
"""Added up by themselves first: rounding errors grow with their number."""


@part
def _add_row(row: Array, shift: Array, weight: float, sums: Array, squares: Array) -> None:
    stay_apart()
    for j in range(row.shape[0]):
        x = row[j] - shift[j]
        y = weight * x
        sums[j] += y
        squares[j] += y * x


@part
def _add_products(
    a: Array, b: Array, c: Array, e: Array, shift: Array, factors: Array, into: Array
) -> None:
    """Four rows, which are in cache, each times its factor."""
    stay_apart()
    v0, v1, v2, v3 = factors[0], factors[1], factors[2], factors[3]
    for j in range(a.shape[0]):
        m = shift[j]
        into[j] += (v0 * (a[j] - m) + v1 * (b[j] - m)) + (v2 * (c[j] - m) + v3 * (e[j] - m))


@part
def _add_rows(
    X: Array, start: int, stop: int, shift: Array, weights: Array, vectors: Array,
    sums: Array, squares: Array, products: Array,
) -> None:  # fmt: skip
    """Rows come from memory one after the other, which is as processors read ahead."""
    K, fours = vectors.shape[0], stop - (stop - start) % 4
    for first in range(start, fours, 4):
        for i in range(first, first + 4):
            _add_row(X[i], shift, weights[i], sums, squares)
        for k in range(K):
            _add_products(
                X[first], X[first + 1], X[first + 2], X[first + 3], shift,
                vectors[k][first : first + 4], products[k],
            )  # fmt: skip
    for i in range(fours, stop):
        _add_row(X[i], shift, weights[i], sums, squares)
        for k in range(K):
            for j in range(X.shape[1]):
                products[k, j] += vectors[k, i] * (X[i, j] - shift[j])


@kernel
def _moments(
    X: Array, shift: Array, weights: Array, vectors: Array, sums: Array, squares: Array,
    products: Array,
) -> None:  # fmt: skip
    own_sums, own_squares = np.empty_like(sums), np.empty_like(squares)
    own_products = np.empty_like(products)
    for start in range(0, X.shape[0], _ROWS):
        stop = min(start + _ROWS, X.shape[0])
        own_sums[:], own_squares[:], own_products[:] = 0.0, 0.0, 0.0
        _add_rows(
            X, start, stop, shift, weights, vectors, own_sums, own_squares, own_products
        )
        sums += own_sums
        squares += own_squares
        products += own_products


def moments(
    X: Array, shift: Array, weights: Array, vectors: Array
) -> tuple[Array, Array, Array]:
    """Weighted sums of shifted columns, of their squares, and products with vectors.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    shift : ndarray of shape (d,)
        Taken from every row.
    weights : ndarray of shape (n,)
        Of the rows, for the sums.
    vectors : ndarray of shape (n, k)
        Few of them: each is another loop over rows in cache.

    Returns
    -------
    sums, squares : ndarray of shape (d,), float64
    products : ndarray of shape (d, k), float64
        ``(X - shift)' vectors``.
    """
    d, k = X.shape[1], vectors.shape[1]
    sums, squares, products = np.zeros(d), np.zeros(d), np.zeros((k, d))
    inputs = (np.asarray(a, np.float64) for a in (shift, weights, vectors.T))
    _moments(read_only(_floating(X)), *map(read_only, inputs), sums, squares, products)
    return sums, squares, products.T


def _floating(X: Array) -> Array:
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
