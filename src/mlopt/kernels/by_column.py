"""A step along the columns of arrays that have few of them, and what it comes to.

A row is too short to be worth a loop, so several rows are taken at a time: arrays (n, B)
are gone through as if they had `LANES` columns or more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import kernel

Array = NDArray[Any]

LANES = 64
"""Columns that are worth a loop: of four, steps take a tenth longer with 16 of them, and a
twentieth less with 256 (`prices.py --methods step`)."""


@kernel
def _step(x: Array, along: Array, factor: Array, other: Array, sums: Array) -> None:
    width = factor.shape[0]
    for start in range(0, x.shape[0], width):
        for k in range(min(width, x.shape[0] - start)):
            moved = x[start + k] + factor[k] * along[start + k]
            x[start + k] = moved
            sums[k] += moved * other[start + k]


def step_along(x: Array, along: Array, factor: Array, other: Array) -> NDArray[np.float64]:
    """``x += along * factor``, in place, and what ``x * other`` then sums to.

    Parameters
    ----------
    x : ndarray of shape (n, B)
        Float32 or float64, C-contiguous.
    along, other : ndarray of shape (n, B)
        Of the same kind.
    factor : ndarray of shape (B,)

    Returns
    -------
    ndarray of shape (B,), float64
    """
    rows = max(1, LANES // x.shape[1])
    factors = np.tile(factor.astype(x.dtype), rows)
    sums = np.zeros(len(factors))
    _step(_flat(x), _flat(along), factors, _flat(other), sums)
    return np.asarray(sums.reshape(rows, -1).sum(axis=0))


def _flat(a: Array) -> Array:
    return np.ascontiguousarray(a).reshape(-1)
