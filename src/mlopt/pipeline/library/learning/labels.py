"""Classes as numbers to fit to: KeystoneML's indicators.

Shapes: ``n`` rows, ``K`` classes; two classes have one column of scores, more have K.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.estimator_base import Sample
from mlopt.gd.linear_model import encode

Array = NDArray[Any]


def indicators(estimator: Any, sample: Sample) -> tuple[Array, NDArray[np.float64]]:
    """The classes, and 1 or -1 for each row and class: (n, K), or (n, 1) for two."""
    classes, codes = encode(estimator, sample.y, sample.weights)
    return classes, signs(codes, len(classes))


def signs(codes: NDArray[np.intp], count: int) -> NDArray[np.float64]:
    """1 where a row is of a class and -1 elsewhere; for two classes those of the second."""
    if count == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(count), 1.0, -1.0)
