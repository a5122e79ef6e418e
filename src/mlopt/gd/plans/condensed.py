"""Least squares of many rows as least squares of few: the same objective, d + 1 rows.

::

    X (n, d), y (n,)   ->   R (d, d), z (d,)   and one row of zeros for what no column says

``R`` is what a QR of the weighted, centred rows would give; here it comes from their Gram
matrix (`mlopt.gd.ridge_path`) by Cholesky's decomposition, pivoted, so that dependent
columns do no harm. A path of penalties then never sees the n rows again.

Shapes: ``n`` rows, ``d`` columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular

from mlopt.gd.normal_equations import Moments
from mlopt.gd.plans.by_columns import Columns
from mlopt.gd.plans.column_products import PRODUCTS, Products
from mlopt.gd.sizes import HALF
from mlopt.prices import price

Array = NDArray[np.float64]

VISITS = price("columns.path-visits")


def condensed(moments: Moments, weight: float) -> Columns:
    """The columns of few rows; where there is an intercept they need none.

    Parameters
    ----------
    moments : Moments
        Of one target.
    weight : float
        The sum of the many rows' weights.
    """
    gram, mean = moments.gram / weight, moments.mean[:-1]
    d, about = len(mean), float(moments.mean[-1])
    scale = np.sqrt(np.maximum(gram.diagonal()[:d], 0.0))
    scale[scale == 0] = 1.0
    upper, pivots, rank, _ = lapack.dpstrf(gram[:d, :d] / np.outer(scale, scale))
    order = pivots - 1
    R = np.zeros((rank + 1, d))
    R[:rank, order] = np.triu(upper)[:rank]
    z = np.zeros(rank + 1)
    cross = (gram[:d, d] / scale)[order[:rank]]
    z[:rank] = solve_triangular(upper[:rank, :rank], cross, trans="T")
    # What no column says of the target; weights sum to 1, as those of the many do.
    z[rank] = np.sqrt(max(float(gram[d, d] - z @ z), 0.0))
    root = np.sqrt(rank + 1.0)
    few = np.ascontiguousarray((root * R * scale).T)
    each = np.full(rank + 1, 1.0 / (rank + 1))
    found = Columns(few, root * z, each, mean, about, centred=True)
    found.__dict__["products"] = Products(few, found.uniform, gram[:d, :d])
    return found


def worth_condensing(n: int, d: int, sets: int, penalties: int, tol: float) -> bool:
    """Whether Gram matrices of dense rows pay for so many penalties on each row set."""
    pays = d / (2.0 * PRODUCTS) <= VISITS * penalties
    return pays and n >= (sets + 1) * d and tol >= HALF  # more goes by the rows
