"""Least squares of many rows as least squares of few: the same objective, d + 1 rows.

::

    X (n, d), y (n,)   ->   R (d, d), z (d,)   and one row of zeros for what no column says

``R`` is what a QR of the weighted, centred rows would give; here it comes from their Gram
matrix by Cholesky's decomposition, pivoted, so that dependent columns do no harm. A path of
penalties then never sees the n rows again.

Shapes: ``n`` rows, ``d`` columns, of rank ``r``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular

from mlopt.gd.plans.by_columns import Columns
from mlopt.gd.plans.column_products import PRODUCTS, Products

Array = NDArray[np.float64]

_PANEL = 1 << 18
"""Values of a panel of rows in float64, which stays in cache while BLAS reads it."""
_VISITS = 6.0
"""Reads of all columns that a penalty of a path takes at least: rounds, two reads each."""
_FINEST = 1e-8
"""A Gram matrix has half of the digits; who asks for more goes by the rows."""


def worth_condensing(n: int, d: int, penalties: int, tol: float) -> bool:
    """Whether a Gram matrix of dense rows pays for so many penalties."""
    pays = d / (2.0 * PRODUCTS) <= _VISITS * penalties
    return pays and n >= 2 * d and tol >= _FINEST


def condensed(X: NDArray, y: Array, weights: Array, intercept: bool) -> Columns:
    """The columns of the few rows.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y, weights : ndarray of shape (n,), float64
    intercept : bool
        Where there is one, the few rows need none: it is where the means are.
    """
    d, c = X.shape[1], weights / weights.sum()
    panels = [part for part in _panels(np.flatnonzero(c), d) if len(part)]
    mean, about = np.zeros(d), 0.0
    if intercept:
        mean = np.sum([c[part] @ X[part] for part in panels], axis=0)
        about = float(c @ y)
    gram = np.zeros((d + 1, d + 1))
    for part in panels:
        panel = np.empty((len(part), d + 1))
        panel[:, :d], panel[:, d] = X[part] - mean, y[part] - about
        panel *= np.sqrt(c[part])[:, None]
        gram += panel.T @ panel
    scale = np.sqrt(gram.diagonal()[:d])
    scale[scale == 0] = 1.0
    upper, pivots, rank, _ = lapack.dpstrf(gram[:d, :d] / np.outer(scale, scale))
    order = pivots - 1
    R = np.zeros((rank + 1, d))
    R[:rank, order] = np.triu(upper)[:rank]
    z = np.zeros(rank + 1)
    cross = (gram[:d, d] / scale)[order[:rank]]
    z[:rank] = solve_triangular(upper[:rank, :rank], cross, trans="T")
    z[rank] = np.sqrt(max(float(gram[d, d] - z @ z), 0.0))
    root = np.sqrt(rank + 1.0)  # their weights sum to 1, as those of the many do
    few = np.ascontiguousarray((root * R * scale).T)
    found = Columns(few, root * z, np.full(rank + 1, 1.0 / (rank + 1)), mean, about, True)
    found.__dict__["products"] = Products(few, found.uniform, gram[:d, :d])
    return found


def _panels(rows: NDArray[np.int64], columns: int) -> list[NDArray[np.int64]]:
    return np.array_split(rows, max(1, len(rows) * columns // _PANEL))
