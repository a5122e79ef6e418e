"""Local colour statistics: mean and deviation of colours in a grid of small patches.

Shapes: images (n, height, width, c), descriptors (n, m, 32 c). Of a descriptor, the channel
changes slowest, then the row of the patch, its column, and mean before deviation.

KeystoneML's ``LCSExtractor``, after Clinchant, Csurka, Perronnin, Renders, "XRCE's
participation to ImageEval", 2007.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError
from mlopt.parameters import check_count
from mlopt.pipeline.library.image.arrays import (
    Images,
    Stateless,
    as_images,
    by_panel,
    joined,
)

Array = NDArray[Any]

GRID = 4
"""Patches along each side of a descriptor."""


class LCS(Stateless):
    """Means and standard deviations of every channel in 4 x 4 patches, on a grid.

    Parameters
    ----------
    step : int, default=4
        Pixels between descriptors.
    size : int, default=6
        Side of a patch in pixels; a descriptor reads ``4 * size`` by ``4 * size`` of them.
    margin : int, default=0
        Pixels on each side of the image that no descriptor reads.
    """

    def __init__(self, step: int = 4, size: int = 6, margin: int = 0) -> None:
        self.step = step
        self.size = size
        self.margin = margin

    def transform(self, X: Any) -> Array:
        """Descriptors row by row of the grid, (n, m, 32 * channels).

        Raises
        ------
        InputError
            When images are too small for a descriptor.
        """
        step, size = check_count("step", self.step), check_count("size", self.size)
        margin = check_count("margin", self.margin, least=0)
        images = as_images(X)
        height, width = images.shape[1:3]
        if min(height, width) < GRID * size + 2 * margin:
            raise InputError(
                f"Images must have {GRID * size + 2 * margin} pixels on each side for "
                f"`size`={size} and `margin`={margin}, got {height} x {width}: take "
                "smaller ones."
            )
        function = partial(_descriptors, step=step, size=size, margin=margin)
        return by_panel(function, images, 8 * images[:1].size)


def _descriptors(images: Images, step: int, size: int, margin: int) -> Array:
    means, deviations = _statistics(images, size)
    both = np.stack([means, deviations], axis=-1)
    height, width = images.shape[1:3]
    rows, columns = (
        np.arange(margin, side - margin - GRID * size + 1, step) for side in (height, width)
    )
    patches = size * np.arange(GRID)
    down = (rows[:, None] + patches)[:, None, :, None]
    across = (columns[:, None] + patches)[None, :, None, :]
    # (n, rows, columns, patch rows, patch columns, channels, 2)
    found = both[:, down, across].transpose(0, 1, 2, 5, 3, 4, 6)
    return np.asarray(joined(joined(found, 3, 7), 1, 3), images.dtype)


def _statistics(images: Images, size: int) -> tuple[Array, Array]:
    """Mean and deviation of the square that begins at each pixel, in float64."""
    # About the mean of each image, so that squares lose no digits.
    middle = images.mean(axis=(1, 2), keepdims=True, dtype=np.float64)
    centred = images - middle
    means = _square_sums(centred, size) / size**2
    squares = _square_sums(np.square(centred), size) / size**2
    deviations = np.sqrt(np.maximum(squares - np.square(means), 0.0))
    return means + middle, deviations


def _square_sums(images: Array, size: int) -> Array:
    """Sums over all squares, by an image of sums from the first corner."""
    n, height, width, channels = images.shape
    sums = np.zeros((n, height + 1, width + 1, channels))
    sums[:, 1:, 1:] = images.cumsum(axis=1).cumsum(axis=2)
    low, high = sums[:, :-size], sums[:, size:]
    found: Array = high[:, :, size:] - high[:, :, :-size]
    found -= low[:, :, size:] - low[:, :, :-size]
    return found
