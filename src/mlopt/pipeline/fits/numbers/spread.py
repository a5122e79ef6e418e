"""Counts, means and sums of squares of columns, where some values may be missing.

Shapes: each of the three is (d,), or (k, d) for k classes, the counts (k, 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler
from sklearn.utils.sparsefuncs import min_max_axis

from mlopt.pipeline.library.moments import Moments, join


def together(a: Moments, b: Moments) -> Moments:
    """The moments of two samples together, where either may have seen nothing.

    Means of nothing may be anything, and stay NaN when neither has seen something.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return join(_usable(a, b[1]), _usable(b, a[1]))


def column_spread(X: Any) -> Moments:
    """The moments of each column in float64; NaN does not count.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d)
        Of floats.
    """
    # scikit-learn warns of columns that are missing everywhere; in one block that is
    # nothing to warn of.
    with np.errstate(invalid="ignore", divide="ignore"):
        return scaled_spread(StandardScaler(with_mean=False).fit(X))


def column_range(X: Any) -> tuple[Any, Any]:
    """The least and the largest value of each column of an array or sparse matrix."""
    return min_max_axis(X, axis=0) if sp.issparse(X) else (X.min(axis=0), X.max(axis=0))


def scaled_spread(scaler: Any) -> Moments:
    """The moments that a fitted `StandardScaler` holds."""
    count = np.broadcast_to(scaler.n_samples_seen_, scaler.mean_.shape)
    count = count.astype(np.float64)
    squares = np.zeros_like(count) if scaler.var_ is None else scaler.var_ * count
    return count, scaler.mean_, squares


def _usable(a: Moments, mean: Any) -> Moments:
    """``a`` with the other's mean where it has seen nothing, so that nothing moves."""
    none = np.equal(a[0], 0)
    return a[0], np.where(none, mean, a[1]), np.where(none, 0.0, a[2])
