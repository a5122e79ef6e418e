"""What labels a query's task can learn from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError

Array = NDArray[Any]


def checked(task: str | None, y: Array) -> Array:
    """The labels: classes as they are, or float64 numbers.

    Parameters
    ----------
    task : {"classification", "regression"} or None
        None for a gradient of the user's, which is given numbers.
    y : ndarray of shape (n,)

    Raises
    ------
    InputError
        Numbers are asked for and there are none, or classes and there are fractions.
    """
    if task != "classification":
        if y.dtype.kind not in "fiub":
            raise InputError(
                f"Labels of a regression must be numbers, but one is `{y[0]}`: RUN "
                "classification, or name another column as the label."
            )
        return y.astype(np.float64)
    if y.dtype.kind == "f":
        fractional = y[y != np.floor(y)]
        if len(fractional):
            raise InputError(
                f"Labels of a classification must be classes, but {fractional[0]:g} is a "
                "fraction: RUN regression, or name another column as the label."
            )
    return y
