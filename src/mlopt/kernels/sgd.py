"""Per-sample stochastic gradient descent for many linear models in lockstep.

One read of a row updates every model. The update rule is that of scikit-learn's
``SGDClassifier`` and ``SGDRegressor`` with an L2 penalty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from mlopt.kernels.losses import MULTINOMIAL, loss_and_slope

CONSTANT, INVSCALING, OPTIMAL = range(3)
SCHEDULES = {
    "constant": CONSTANT,
    "invscaling": INVSCALING,
    "optimal": OPTIMAL,
    "adaptive": CONSTANT,
}
"""Schedules by number; for "adaptive" the caller lowers `Steps.eta0` between epochs."""

SPARSE_INTERCEPT_DECAY = 0.01


@dataclass(frozen=True)
class Steps:
    """Step sizes of B columns; every array has shape (B,).

    Attributes
    ----------
    schedule : int64
        A number of `SCHEDULES`.
    alpha, eta0, power_t : float64
        L2 penalty, and the parameters of the schedule, as in scikit-learn.
    t : float64
        The number of the next step, from 1. `sgd_epoch` counts it up in place.
    intercept : float64
        Factor of the intercept's steps: 0 without intercept, 1 for dense rows,
        `SPARSE_INTERCEPT_DECAY` for sparse rows (as in scikit-learn).
    """

    schedule: NDArray[np.int64]
    alpha: NDArray[np.float64]
    eta0: NDArray[np.float64]
    power_t: NDArray[np.float64]
    t: NDArray[np.float64]
    intercept: NDArray[np.float64]

    def take(self, columns: NDArray[Any]) -> Steps:
        """Return the steps of some columns (indices or a mask)."""
        return Steps(*(getattr(self, f.name)[columns].copy() for f in fields(self)))


@njit(cache=True, nogil=True)
def _epoch(data, indices, indptr, order, y, c, W, b, B0, K, loss, delta, steps, total):  # type: ignore[no-untyped-def]
    schedule, alpha, eta0, power_t, t, intercept = steps
    for i in order:
        if c[i] == 0:
            continue
        lo, hi = indptr[i], indptr[i + 1]
        for k in range(W.shape[1]):
            z = b[k]
            for p in range(lo, hi):
                z += data[p] * W[indices[p], k]
            target = y[i] if K == 1 else (1.0 if y[i] == k % K else -1.0)
            value, slope = loss_and_slope(loss, z, target, math.exp(-abs(z)), delta)
            total[k] += value
            slope = min(max(slope, -1e12), 1e12)
            eta = eta0[k]
            if schedule[k] == INVSCALING:
                eta /= t[k] ** power_t[k]
            elif schedule[k] == OPTIMAL:
                eta = 1.0 / (alpha[k] * (1.0 / (alpha[k] ** 0.75) + t[k] - 1.0))
            scale = max(0.0, 1.0 - eta * alpha[k])
            for j in range(W.shape[0]):
                W[j, k] *= scale
            step = -eta * slope * c[i]
            for p in range(lo, hi):
                W[indices[p], k] += step * data[p]
            b[k] += step * intercept[k]
            t[k] += 1.0


def sgd_epoch(
    X: Any,
    order: NDArray[np.int64],
    targets: NDArray[Any],
    weights: NDArray[Any],
    W: NDArray[Any],
    b: NDArray[Any],
    segments: NDArray[np.int64],
    deltas: NDArray[Any],
    steps: Steps,
) -> NDArray[np.float64]:
    """Update ``W``, ``b`` and ``steps.t`` in place with one SGD step per row of ``order``.

    Parameters are those of `linear_pass`, and ``order``: row indices in the order in
    which they are visited. A row with weight 0 leaves the columns of that weight set
    untouched. Returns the unweighted losses before each step, summed, shape (B,).
    """
    S = sparse.csr_array(X)
    total = np.zeros(W.shape[1])
    arrays = tuple(getattr(steps, f.name) for f in fields(steps))
    for (start, stop, loss, target, weight, K), delta in zip(
        segments.tolist(), deltas, strict=True
    ):
        if loss == MULTINOMIAL:
            raise ValueError("`sgd_epoch` has no multinomial loss. Use one-vs-rest.")
        at = slice(start, stop)
        V = np.ascontiguousarray(W[:, at])
        _epoch(
            S.data, S.indices, S.indptr, order, targets[:, target], weights[:, weight], V,
            b[at], start, K, loss, delta, tuple(a[at] for a in arrays), total[at],
        )  # fmt: skip
        W[:, at] = V
    return total
