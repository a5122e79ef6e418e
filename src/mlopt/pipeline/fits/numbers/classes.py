"""Statistics of classes, where a block may lack some of them.

The classes of two blocks together are the union of theirs, in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def placed(classes: Any, own: Any, values: Array) -> Array:
    """Rows of ``values``, one for each of ``own``, at their places among ``classes``.

    Parameters
    ----------
    classes : ndarray of shape (k,)
        In order.
    own : ndarray of shape (j,)
        Some of them, in order.
    values : ndarray of shape (j, ...)

    Returns
    -------
    ndarray of shape (k, ...)
        Zeros for classes that are not among ``own``.
    """
    found = np.zeros((len(classes), *values.shape[1:]))
    found[np.searchsorted(classes, own)] = values
    return found


def added(classes: Any, left: tuple[Any, Array], right: tuple[Any, Array]) -> Array:
    """The sum of two tables, each with the classes of its rows."""
    return placed(classes, *left) + placed(classes, *right)
