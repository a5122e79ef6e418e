"""Anderson's extrapolation: from the last few iterates to where they seem to lead.

Near its solution coordinate descent is a linear map; the combination of the last iterates
whose steps all but cancel is close to its fixed point (Bertrand, Massias, "Anderson
acceleration of coordinate descent", AISTATS 2021). The iterates must come from the same
map: the order of columns must not change.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.sizes import ROUNDED

Array = NDArray[np.float64]

MEMORY = 5
"""Iterates that one is extrapolated from: more are not on one line, as in the paper."""


def mixture(iterates: Array) -> Array | None:
    """Weights of sum 1 for the last K of the iterates, oldest first, (K,).

    Parameters
    ----------
    iterates : ndarray of shape (K + 1, d)

    Returns
    -------
    ndarray of shape (K,) or None
        None where the steps say nothing.
    """
    steps = np.diff(iterates, axis=0)
    with np.errstate(over="ignore", invalid="ignore"):  # of iterates that diverge
        gram = steps @ steps.T
    size = float(np.trace(gram))
    if not 0 < size < np.inf:
        return None
    gram[np.diag_indices_from(gram)] += ROUNDED * size
    found = np.linalg.solve(gram, np.ones(len(gram)))
    total = float(found.sum())
    if not np.isfinite(found).all() or total == 0:
        return None
    return np.asarray(found / total)
