"""Windows of images: unfolded to rows, or pooled to a number a channel.

Images (n, height, width, c), contiguous; a window at (r, q) has its top left corner at row
``r * stride`` and column ``q * stride``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel, read_only

Array = NDArray[Any]

POOLS = {"sum": 0, "mean": 0, "max": 1}
PIXELS = {"identity": 0, "abs": 1, "square": 2}
_MAX, _ABS, _SQUARE = 1, 1, 2


@kernel
def _unfold(images: Array, k: int, variance: Any, normalize: bool, out: Array) -> None:
    n, height, width, c = images.shape
    d, row = k * k * c, 0
    for i in range(n):
        for r in range(height - k + 1):
            for q in range(width - k + 1):
                patch = out[row]
                row += 1
                for a in range(k):
                    for b in range(k):
                        for channel in range(c):
                            at = (a * k + b) * c + channel
                            patch[at] = images[i, r + a, q + b, channel]
                if not normalize:
                    continue
                mean = 0.0
                for at in range(d):
                    mean += patch[at]
                mean /= d
                squares = 0.0
                for at in range(d):
                    squares += (patch[at] - mean) * (patch[at] - mean)
                scale = 1.0 / np.sqrt(squares / max(1, d - 1) + variance)
                for at in range(d):
                    patch[at] = (patch[at] - mean) * scale


def unfold(images: Array, k: int, variance: float | None = None) -> Array:
    """All k x k windows one pixel apart, as rows.

    Parameters
    ----------
    images : ndarray of float, shape (n, height, width, c)
    k : int
    variance : float, optional
        When given, rows are made to have mean 0, and are divided by the root of their
        variance plus this.

    Returns
    -------
    ndarray of shape (n * (height - k + 1) * (width - k + 1), k * k * c)
        Of the dtype of the images.
    """
    n, height, width, c = images.shape
    rows = n * (height - k + 1) * (width - k + 1)
    out = np.empty((rows, k * k * c), images.dtype)
    least = 0.0 if variance is None else float(variance)
    _unfold(read_only(images), k, least, variance is not None, out)
    return out


@inlined
def _changed(value: Any, pixel: int) -> Any:
    if pixel == _ABS:
        return abs(value)
    return value * value if pixel == _SQUARE else value


@kernel
def _pool(
    images: Array, size: int, stride: int, largest: bool, pixel: int, out: Array
) -> None:
    n, rows, columns, c = out.shape
    for i in range(n):
        for r in range(rows):
            for q in range(columns):
                best = out[i, r, q]
                best[:] = -np.inf if largest else 0.0
                for a in range(size):
                    for b in range(size):
                        seen = images[i, r * stride + a, q * stride + b]
                        if largest:
                            for channel in range(c):
                                value = _changed(seen[channel], pixel)
                                higher = value > best[channel] or value != value
                                best[channel] = value if higher else best[channel]
                        else:
                            for channel in range(c):
                                best[channel] += _changed(seen[channel], pixel)


def pool(images: Array, size: int, stride: int, how: str, pixel: str) -> Array:
    """One number for each window and channel, (n, rows, columns, c).

    Parameters
    ----------
    images : ndarray of float, shape (n, height, width, c)
    size, stride : int
        Of the windows; ``size`` fits in the images.
    how : one of `POOLS`
    pixel : one of `PIXELS`
        What is done to each pixel first.
    """
    n, height, width, c = images.shape
    rows, columns = (height - size) // stride + 1, (width - size) // stride + 1
    out = np.empty((n, rows, columns, c), images.dtype)
    _pool(read_only(images), size, stride, POOLS[how] == _MAX, PIXELS[pixel], out)
    if how == "mean":
        out /= images.dtype.type(size * size)
    return out


@kernel
def _both_signs(images: Array, alpha: Any, least: Any, out: Array) -> None:
    rows, c = images.shape
    for i in range(rows):
        for channel in range(c):
            above = images[i, channel] - alpha
            below = -images[i, channel] - alpha
            # Comparisons this way round let nan through, as NumPy's maximum does.
            out[i, channel] = least if above < least else above
            out[i, c + channel] = least if below < least else below


def both_signs(images: Array, alpha: float, least: float) -> Array:
    """``max(least, x - alpha)`` and ``max(least, -x - alpha)``, (n, height, width, 2 c)."""
    *shape, c = images.shape
    out = np.empty((*shape, 2 * c), images.dtype)
    flat = read_only(images.reshape(-1, c))
    numbers = images.dtype.type(alpha), images.dtype.type(least)
    _both_signs(flat, *numbers, out.reshape(-1, 2 * c))
    return out
