"""Statistics of classes, where a block may lack some of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def united(a: Any, left: Sequence[Array], b: Any, right: Sequence[Array]) -> Any:
    """Tables of two blocks with rows for the classes of both.

    Parameters
    ----------
    a, b : ndarray of shape (j,)
        The classes of the blocks, in order.
    left, right : sequence of ndarray of shape (j, ...)
        A row for each of them.

    Returns
    -------
    (ndarray of shape (k,), tuple of ndarray of shape (k, ...), the same)
        All classes, in order, and the tables; zeros for classes that a block lacks.
    """
    classes = np.union1d(a, b)

    def placed(own: Any, values: Array) -> Array:
        found = np.zeros((len(classes), *values.shape[1:]))
        found[np.searchsorted(classes, own)] = values
        return found

    return (
        classes,
        tuple(placed(a, values) for values in left),
        tuple(placed(b, values) for values in right),
    )
