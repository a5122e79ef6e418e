"""What a Hessian is made of: the curvature of each row, and a weighted Gram matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlopt.kernels.losses import HINGE, HUBER, LOGISTIC, MULTINOMIAL, SQUARED, SQUARED_HINGE
from mlopt.kernels.sparse_gram import sparse_gram

Array = NDArray[Any]

_CACHE = 400_000
"""Bytes of weighted rows that go into a product while they are in cache."""
_DENSE = 4096
"""Columns up to which the Gram matrix of sparse rows is added up in a dense one."""


def weighted_gram(X: Any, h: Array) -> Array:
    """Return ``X' diag(h) X``, symmetric, of shape (d, d).

    For dense rows NumPy calls BLAS's symmetric product, on as many threads as it may use.

    Parameters
    ----------
    X : ndarray of shape (n, d) or CSR matrix or array, float32 or float64
    h : ndarray of shape (n,), not negative
    """
    if sparse.issparse(X) and X.shape[1] <= _DENSE:
        return sparse_gram(X, h).astype(X.dtype, copy=False)
    if sparse.issparse(X):
        root = np.sqrt(np.asarray(h, X.dtype))[:, None]
        scaled = sparse.csr_array(X).multiply(root).tocsr()
        return np.asarray((scaled.T @ scaled).toarray())
    (n, d) = X.shape
    root = np.sqrt(np.asarray(h, X.dtype))[:, None]
    # At least d rows: adding up squares of d must not cost more than the products.
    R = max(_CACHE // (d * X.itemsize), d, 256)
    G, buffer = np.zeros((d, d), X.dtype), np.empty((min(R, n), d), X.dtype)
    for start in range(0, n, R):
        rows = buffer[: min(R, n - start)]
        np.multiply(X[start : start + R], root[start : start + R], out=rows)
        G += rows.T @ rows
    return G


def hessian_weights(loss: int, z: Array, y: Array, delta: float = 1.0) -> Array:
    """Return d2 loss / dz2 at margins ``z``: what weighs the rows in a Hessian.

    Parameters
    ----------
    loss : int
        A number of `LOSSES`. The hinge loss has no curvature: 0.
    z : ndarray of shape (n,) or (n, B)
        For `MULTINOMIAL` (n, K), and the result is the diagonal ``p (1 - p)`` of the
        softmax; ``y`` is not used.
    y : ndarray that broadcasts to ``z``
    delta : float, default=1.0
        Of the Huber loss.

    Returns
    -------
    ndarray of the shape and dtype of ``z``
    """
    if loss == MULTINOMIAL:
        p = np.exp(z - z.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        return np.asarray(p * (1 - p))
    if loss == LOGISTIC:
        e = np.exp(-np.abs(z))
        return np.asarray(e / (1 + e) ** 2)
    curved = {
        SQUARED: np.full(z.shape, 1.0),
        HINGE: np.full(z.shape, 0.0),
        SQUARED_HINGE: np.where(y * z < 1, 2.0, 0.0),
        HUBER: np.where(np.abs(z - y) <= delta, 1.0, 0.0),
    }
    return curved[loss].astype(z.dtype)
