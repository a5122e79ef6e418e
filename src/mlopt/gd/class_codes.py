"""Class labels as codes 0 ... K-1, and back from scores.

Shapes: ``n`` rows, ``K`` classes; two have one column of scores, more have one each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from mlopt.errors import InputError

Array = NDArray[Any]


def encode(
    estimator: Any, y: Any, weights: NDArray[np.float64]
) -> tuple[Array, NDArray[np.intp]]:
    """The classes (K,) in order, and the code of each row, (n,).

    Raises
    ------
    InputError
        Unless two classes at least have rows of positive weight; it names ``estimator``.
    """
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    present = np.unique(codes[weights > 0])
    if len(present) < 2:
        raise InputError(
            f"{type(estimator).__name__} needs rows of at least two classes in y, got one "
            f"class of positive weight: {classes[present].tolist()}."
        )
    return classes, np.asarray(codes, np.intp)


def winners(scores: Array, classes: Array) -> Array:
    """The class of the largest score; by the sign of (n,) or (n, 1), those of two."""
    if scores.ndim == 1 or scores.shape[1] == 1:
        return np.asarray(classes[(scores.ravel() > 0).astype(np.intp)])
    return np.asarray(classes[scores.argmax(axis=1)])
