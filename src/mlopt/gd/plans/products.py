"""Products of rows with weights and with slopes, in float64 whatever the rows are in."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlopt.rows import Block

Array = NDArray[np.float64]

_CHUNK = 1 << 18
"""Values of rows that are converted to float64 at a time: 2 MB, which the cache holds."""


def margins(block: Block, coef: Array) -> Array:
    """``X w`` for weights (outputs, d): (rows, outputs)."""
    parts = [_float64(X) @ coef.T for X in _pieces(block.X)]
    return np.asarray(np.concatenate(parts), np.float64)


def combination(block: Block) -> Array:
    """``X' s`` with the slopes (rows, outputs) beside the rows: (outputs, d)."""
    slopes, start = block.extra["slopes"], 0
    total = np.zeros((slopes.shape[1], block.X.shape[1]))
    for X in _pieces(block.X):
        total += (_float64(X).T @ slopes[start : start + X.shape[0]]).T
        start += X.shape[0]
    return total


def _pieces(X: Any) -> list[Any]:
    """The rows; a few at a time where they must be converted first."""
    if X.dtype == np.float64 or sp.issparse(X):
        return [X]
    size = max(_CHUNK // X.shape[1], 1)
    return [X[start : start + size] for start in range(0, len(X), size)]


def _float64(X: Any) -> Any:
    return X if X.dtype == np.float64 else X.astype(np.float64)
