"""One pass over rows for many linear models: losses, gradients and scores in sums.

Shapes: ``n`` rows, ``d`` columns, ``B`` columns of ``W``, ``M`` models, ``T`` targets,
``S`` sets of row weights. A model has ``K`` neighbouring columns: one for binary
classification and regression, one a class otherwise. Neighbouring models that share
loss, target, weights and ``K`` form a segment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp

from mlopt.kernels.losses import (
    HINGE,
    HUBER,
    LOGISTIC,
    LOSSES,
    MULTINOMIAL,
    SQUARED,
    SQUARED_HINGE,
    loss_and_slope,
)

__all__ = [
    "HINGE",
    "HUBER",
    "LOGISTIC",
    "LOSSES",
    "MULTINOMIAL",
    "SQUARED",
    "SQUARED_HINGE",
    "Pass",
    "decision",
    "hessian_weights",
    "linear_pass",
    "weighted_gram",
]


@dataclass(frozen=True)
class Pass:
    """Sums over the rows of one pass.

    Attributes
    ----------
    loss : ndarray of shape (B,), float64
        Weighted loss of each column; a multinomial model's loss is in its first column.
    gradient : ndarray of shape (d, B) or None
        Of `loss` by the weights; the memory order is not specified.
    intercept_gradient : ndarray of shape (B,) or None
    score : ndarray of shape (M,), float64, or None
        Per model: weighted number of right predictions, or weighted squared error.
    """

    loss: NDArray[np.float64]
    gradient: NDArray[Any] | None
    intercept_gradient: NDArray[Any] | None
    score: NDArray[np.float64] | None


@njit(cache=True, nogil=True)
def _slopes(loss, Z, y, c, delta, total):  # type: ignore[no-untyped-def]
    for i in range(Z.shape[0]):
        for k in range(Z.shape[1]):
            value, slope = loss_and_slope(loss, Z[i, k], y[i, k], delta)
            total[k] += c[i] * value
            Z[i, k] = c[i] * slope


def linear_pass(
    X: Any,
    W: NDArray[Any],
    b: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[Any],
    segments: NDArray[np.int64],
    deltas: NDArray[Any],
    score_weights: NDArray[Any] | None = None,
    gradient: bool = True,
) -> Pass:
    """Loss, gradient and score of all columns of ``W`` in one pass over ``X``."""
    n, B = X.shape[0], W.shape[1]
    Z = decision(X, W, b)
    total = np.zeros(B)
    scores: list[float] = []
    for (start, stop, loss, target, weight, K), delta in zip(
        segments.tolist(), deltas, strict=True
    ):
        y, c = targets[:, target], np.ascontiguousarray(weights[:, weight])
        for first in range(start, stop, K):
            z = Z[:, first : first + K]
            codes = np.arange(K) if K > 1 else np.zeros(1)
            if score_weights is not None:
                if K > 1:
                    hit = (z.argmax(axis=1) == y).astype(X.dtype)
                elif loss in (SQUARED, HUBER):
                    hit = (z[:, 0] - y) ** 2
                else:
                    hit = ((z[:, 0] > 0) == (y > 0)).astype(X.dtype)
                scores.append(float(hit @ score_weights[:, weight].astype(np.float64)))
            if loss == MULTINOMIAL:
                one_hot = y[:, None] == codes
                norm = logsumexp(z, axis=1)
                total[first] = c @ (norm - z[one_hot])
                z[:] = (np.exp(z - norm[:, None]) - one_hot) * c[:, None]
            else:
                signs = np.where(y[:, None] == codes, 1.0, -1.0) if K > 1 else y[:, None]
                _slopes(loss, z, signs.astype(X.dtype), c, delta, total[first : first + K])
    score = np.array(scores) if score_weights is not None else None
    if not gradient:
        return Pass(total, None, None, score)
    G = np.asarray(X.T @ Z) if n else np.zeros_like(W)
    return Pass(total, G, Z.sum(axis=0), score)


def decision(X: Any, W: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Return the margins ``X @ W + b``, shape (n, B)."""
    Z: NDArray[Any] = np.asarray(X @ W)
    Z += b
    return Z


def weighted_gram(X: Any, h: NDArray[Any]) -> NDArray[Any]:
    """Return ``X' diag(h) X``, shape (d, d)."""
    if sparse.issparse(X):
        G: NDArray[Any] = (X.T @ X.multiply(h[:, None]).tocsr()).toarray()
        return G
    return np.asarray(X.T @ (X * h[:, None]))


def hessian_weights(
    loss: int, z: NDArray[Any], y: NDArray[Any], delta: float = 1.0
) -> NDArray[Any]:
    """Return d2 loss / dz2 for margins ``z`` (n,) or (n, B) and targets ``y``.

    The hinge loss has none: 0. For `MULTINOMIAL` ``z`` is (n, K) and the result the
    diagonal ``p (1 - p)`` of the softmax, ``y`` is not used.
    """
    if loss == HINGE:
        return np.zeros_like(z)
    if loss == SQUARED:
        return np.ones_like(z)
    if loss == HUBER:
        return (np.abs(z - y) <= delta).astype(z.dtype)
    if loss == SQUARED_HINGE:
        return (2.0 * (y * z < 1)).astype(z.dtype)
    if loss == MULTINOMIAL:
        e = np.exp(z - z.max(axis=-1, keepdims=True))
        p = e / e.sum(axis=-1, keepdims=True)
        return np.asarray(p * (1 - p))
    e = np.exp(-np.abs(z))
    return np.asarray(e / (1 + e) ** 2)
