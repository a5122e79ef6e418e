"""Classes as numbers to fit to: KeystoneML's indicators.

Shapes: ``n`` rows, ``K`` classes; two classes have one column of scores, more have K.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from mlopt.errors import InputError
from mlopt.gd.estimator_base import Sample

Array = NDArray[Any]


def classes_of(estimator: Any, sample: Sample) -> tuple[Array, NDArray[np.intp]]:
    """The classes (K,) in order, and the number of each row's.

    Raises
    ------
    InputError
        Unless two classes at least have rows of positive weight.
    """
    y = column_or_1d(sample.y, warn=True)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    present = np.unique(codes[sample.weights > 0])
    if len(present) < 2:
        raise InputError(
            f"{type(estimator).__name__} needs rows of at least two classes in y, got one "
            f"class of positive weight: {classes[present].tolist()}."
        )
    return classes, np.asarray(codes, np.intp)


def indicators(estimator: Any, sample: Sample) -> tuple[Array, NDArray[np.float64]]:
    """The classes, and 1 or -1 for each row and class: (n, K), or (n, 1) for two."""
    classes, codes = classes_of(estimator, sample)
    return classes, signs(codes, len(classes))


def signs(codes: NDArray[np.intp], count: int) -> NDArray[np.float64]:
    """1 where a row is of a class and -1 elsewhere; for two classes those of the second."""
    if count == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(count), 1.0, -1.0)
