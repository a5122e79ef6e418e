"""Losses and slopes of margins one by one, for algorithms that are written in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError
from mlopt.kernels.compiled import kernel, read_only
from mlopt.kernels.elementary import exp
from mlopt.kernels.losses import LOSSES, MULTINOMIAL, loss_and_slope

Array = NDArray[Any]


@kernel
def _pointwise(
    loss: int, z: Array, y: Array, delta: Any, values: Array, slopes: Array
) -> None:
    for i in range(z.shape[0]):
        values[i], slopes[i] = loss_and_slope(loss, z[i], y[i], exp(-abs(z[i])), delta)


def number_of(loss: str) -> int:
    """That of a loss of one margin.

    Raises
    ------
    InputError
        When there is no such loss.
    """
    number = LOSSES.get(loss, MULTINOMIAL)
    if number == MULTINOMIAL:
        known = sorted(set(LOSSES) - {"multinomial"})
        raise InputError(f"`loss` must be one of {known}, got {loss!r}.")
    return number


def losses_and_slopes(
    loss: str, z: Array, y: Array, delta: float = 1.0
) -> tuple[Array, Array]:
    """The loss at every margin, and its derivative by the margin.

    Parameters
    ----------
    loss : str
        Any of `LOSSES` but "multinomial".
    z, y : ndarray of shape (n,)
        Margins and targets.
    delta : float, default=1
        Of the Huber loss.

    Returns
    -------
    values, slopes : ndarray of shape (n,), float64
    """
    number = number_of(loss)
    z, y = np.asarray(z, np.float64), np.asarray(y, np.float64)
    values, slopes = np.empty(z.shape), np.empty(z.shape)
    _pointwise(number, read_only(z), read_only(y), float(delta), values, slopes)
    return values, slopes
