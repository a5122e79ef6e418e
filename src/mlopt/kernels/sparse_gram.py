"""``X' diag(h) X`` of CSR rows, where the result is a small dense matrix.

A row with s stored values touches s (s + 1) / 2 entries, all in cache where d is moderate:
far fewer than a product of dense rows, and without the bookkeeping of a sparse one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import kernel

Array = NDArray[Any]


@kernel
def _accumulate(data: Array, indices: Array, indptr: Array, h: Array, out: Array) -> None:
    for row in range(len(h)):
        first, last = indptr[row], indptr[row + 1]
        for p in range(first, last):
            scaled = h[row] * data[p]
            into = out[indices[p]]
            into[indices[p]] += scaled * data[p]
            for q in range(first, p):
                # A column that is stored twice meets itself in both orders.
                times = 2 if indices[q] == indices[p] else 1
                into[indices[q]] += times * scaled * data[q]


def sparse_gram(X: Any, h: Array) -> Array:
    """Return ``X' diag(h) X``, symmetric, of shape (d, d), float64.

    Parameters
    ----------
    X : CSR matrix or array of shape (n, d)
        A column may be stored more than once in a row; values then add up.
    h : ndarray of shape (n,)
    """
    d = X.shape[1]
    half = np.zeros((d, d))
    weights = np.ascontiguousarray(h, np.float64)
    _accumulate(X.data, X.indices, X.indptr, weights, half)
    # Each pair of stored values was added once, in whichever order they are stored.
    return np.asarray(half + half.T - np.diag(np.diag(half)))
