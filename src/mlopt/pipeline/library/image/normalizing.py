"""Patches made to have mean 0 and one variance, times filters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.windows import unfold
from mlopt.pipeline.library.image.arrays import Images, check_window

Array = NDArray[Any]

_PANEL = 1 << 17
"""Values of the patches, or of what comes out, that are made at a time: they stay in the
cache of a core until the product is done."""


def normalized_products(images: Images, filters: Any, variance: float) -> Images:
    """Each patch, its mean taken off and scaled, times each filter.

    Parameters
    ----------
    images : ndarray of shape (n, height, width, channels)
    filters : ndarray of shape (b, k, k, channels)
    variance : float
        Added to the variance of a patch before it is divided by.

    Returns
    -------
    ndarray of shape (n, height - k + 1, width - k + 1, b)
    """
    b, k = filters.shape[:2]
    check_window(images, k)
    W = np.ascontiguousarray(filters.reshape(b, -1).T, images.dtype)
    n, height, width = images.shape[:3]
    rows, columns = height - k + 1, width - k + 1
    out = np.empty((n, rows * columns, b), images.dtype)
    step = max(1, _PANEL // (rows * columns * max(W.shape)))
    for start in range(0, n, step):
        part = out[start : start + step]
        patches = unfold(images[start : start + step], k, variance)
        np.matmul(patches, W, out=part.reshape(len(patches), b))
    return out.reshape(n, rows, columns, b)


def normalized(patches: Array, variance: float) -> Array:
    """Rows with mean 0, divided by the root of their variance plus ``variance``."""
    centred = patches - patches.mean(axis=1, keepdims=True)
    spread = (centred**2).mean(axis=1, keepdims=True) * patches.shape[1]
    spread /= max(1, patches.shape[1] - 1)
    return np.asarray(centred / np.sqrt(spread + variance), patches.dtype)
