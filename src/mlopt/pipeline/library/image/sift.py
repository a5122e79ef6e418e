"""Dense SIFT: histograms of gradients in 4 x 4 bins, on a grid, at several scales.

Shapes: images (n, height, width, 1), descriptors (n, m, 128). Of a descriptor, the row of
the bin changes slowest, then its column, then the orientation.

A bin is a pyramid of ``2 bin - 1`` pixels about its centre, so that neighbours overlap by
half. Sums over pixels are two matrix products for all points of the grid: with the weights
of the rows, and with those of the columns.

Lowe, "Distinctive image features from scale-invariant keypoints", IJCV 60, 2004. Smoothing,
overlapping bins and a window that is flat within a bin are those of VLFeat's ``vl_dsift``,
which KeystoneML calls. Borders go on as the outermost pixel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from mlopt.errors import InputError
from mlopt.parameters import check_count, check_positive
from mlopt.pipeline.library.image.arrays import (
    Images,
    Stateless,
    as_images,
    by_panel,
    joined,
    one_channel,
)

Array = NDArray[Any]

BINS, ORIENTATIONS, CLIP = 4, 8, 0.2
_WINDOW = 2.0
"""Standard deviation of the window about a descriptor's centre, in bins."""


@dataclass(frozen=True)
class Scale:
    """A grid of descriptors of one size.

    Attributes
    ----------
    bin : int
        Pixels between centres of bins.
    step : int
        Pixels between descriptors.
    first : int
        Row, and column, of the first bin of the first descriptor.
    """

    bin: int
    step: int
    first: int

    def starts(self, side: int) -> NDArray[np.intp]:
        """The first bin of every descriptor along a side of so many pixels."""
        return np.arange(self.first, side - (BINS - 1) * self.bin, self.step)


class SIFT(Stateless):
    """SIFT descriptors of upright patches, at every point of a grid.

    Parameters
    ----------
    step : int, default=3
        Pixels between points of the grid, at the first scale.
    bin_size : int, default=4
        Pixels between the bins of a descriptor, at the first scale; a descriptor reaches
        over ``3 * bin_size + 1`` pixels from its first bin to its last.
    scales : int, default=1
        The bins of each further scale are 2 pixels larger; first points lie on each other.
    scale_step : int, default=0
        What the step grows by from scale to scale.
    smoothing : float, default=6.0
        Images are smoothed by a Gaussian of ``bin / smoothing`` pixels; infinite for none.
    contrast : float, default=0.005
        Descriptors that are not longer than this before they are scaled are zero: there
        is nothing to see. In pixel values a pixel, weighed by the window.
    """

    def __init__(
        self,
        step: int = 3,
        bin_size: int = 4,
        scales: int = 1,
        scale_step: int = 0,
        smoothing: float = 6.0,
        contrast: float = 0.005,
    ) -> None:
        self.step = step
        self.bin_size = bin_size
        self.scales = scales
        self.scale_step = scale_step
        self.smoothing = smoothing
        self.contrast = contrast

    def transform(self, X: Any) -> Array:
        """Descriptors scale by scale, each row by row of its grid, (n, m, 128).

        They are of length 1, clipped at 0.2, and scaled to length 1 again.

        Raises
        ------
        InputError
            For several channels, or images smaller than a descriptor.
        """
        images = as_images(X)
        gray = one_channel(images, "SIFT")
        grids = self.grids(*gray.shape[1:])
        each = max(_values(scale, *gray.shape[1:]) for scale in grids)
        contrast = check_positive("contrast", self.contrast, zero=True)
        found = [
            by_panel(partial(self._descriptors, scale, contrast), gray, each)
            for scale in grids
        ]
        return np.concatenate(found, axis=1)

    def grids(self, height: int, width: int) -> list[Scale]:
        """The scales for images of this size.

        Raises
        ------
        InputError
            When the largest descriptor does not fit, or a parameter is out of range.
        """
        for name in ("step", "bin_size", "scales"):
            check_count(name, getattr(self, name))
        check_positive("smoothing", self.smoothing, infinite=True)
        growth = check_count("scale_step", self.scale_step, least=0)
        largest = self.bin_size + 2 * (self.scales - 1)
        if min(height, width) <= (BINS - 1) * largest:
            raise InputError(
                f"Images must have {(BINS - 1) * largest + 1} pixels on each side for "
                f"descriptors of bins of {largest} pixels, got {height} x {width}: take a "
                "smaller `bin_size` or fewer `scales`."
            )
        return [
            Scale(
                bin=self.bin_size + 2 * number,
                step=self.step + growth * number,
                # Half of what a descriptor reaches over grows by 3 pixels a scale.
                first=(BINS - 1) * (self.scales - 1 - number),
            )
            for number in range(self.scales)
        ]

    def centres(self, height: int, width: int) -> Array:
        """Row and column of the middle of every descriptor, (m, 2), in pixels."""
        found = []
        for scale in self.grids(height, width):
            half = (BINS - 1) * scale.bin / 2
            rows, columns = scale.starts(height) + half, scale.starts(width) + half
            grid = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=2)
            found.append(grid.reshape(-1, 2))
        return np.concatenate(found)

    def _descriptors(self, scale: Scale, contrast: float, images: Images) -> Array:
        n, height, width = images.shape
        if np.isfinite(self.smoothing):
            sigma = scale.bin / self.smoothing
            images = gaussian_filter(images, sigma, mode="nearest", axes=(1, 2))
        maps = _orientations(images)
        across = _weights(scale, width).astype(images.dtype)
        down = _weights(scale, height).astype(images.dtype)
        sums = (down @ maps) @ across.T
        rows, columns = len(down) // BINS, len(across) // BINS
        bins = sums.reshape(n, ORIENTATIONS, rows, BINS, columns, BINS)
        flat = joined(joined(bins.transpose(0, 2, 4, 3, 5, 1), 3, 6), 1, 3)
        return normalized(np.ascontiguousarray(flat), contrast)


def normalized(rows: Array, contrast: float) -> Array:
    """Of length 1, clipped at 0.2, of length 1 again; zero up to ``contrast``.

    In place: they are by far the most that there is in memory.
    """
    lengths = _lengths(rows)
    seen = lengths > contrast
    rows *= np.where(seen, 1.0 / np.where(seen, lengths, 1.0), 0.0)
    np.minimum(rows, rows.dtype.type(CLIP), out=rows)
    rows /= np.where(seen, _lengths(rows), 1.0)
    return rows


def _lengths(rows: Array) -> Array:
    found = np.sqrt(np.einsum("...i,...i->...", rows, rows))[..., None]
    return np.asarray(found, rows.dtype)


def _values(scale: Scale, height: int, width: int) -> int:
    """What is made on the way from one image, in values."""
    rows, columns = (BINS * len(scale.starts(side)) for side in (height, width))
    return ORIENTATIONS * (2 * height * width + rows * width + 2 * rows * columns)


def _orientations(images: Array) -> Array:
    """Gradients, each shared by the two nearest orientations, (n, 8, height, width)."""
    n, height, width = images.shape
    pixels = height * width
    down, across = (_gradient(images, axis).ravel() for axis in (1, 2))
    strength = np.hypot(down, across)
    turn = np.arctan2(down, across) * images.dtype.type(ORIENTATIONS / (2 * np.pi))
    below = np.floor(turn)
    above = (turn - below) * strength
    number = below.astype(np.intp) % ORIENTATIONS
    places = np.arange(n)[:, None] * (ORIENTATIONS * pixels) + np.arange(pixels)
    maps = np.zeros(n * ORIENTATIONS * pixels, images.dtype)
    # Two orientations of a pixel are never one: nothing is written twice.
    maps[places.ravel() + number * pixels] = strength - above
    maps[places.ravel() + (number + 1) % ORIENTATIONS * pixels] = above
    return maps.reshape(n, ORIENTATIONS, height, width)


def _gradient(images: Array, axis: int) -> Array:
    """Half the difference of both neighbours; at the border, to the only neighbour."""
    return np.asarray(np.gradient(images, axis=axis), images.dtype)


def _weights(scale: Scale, side: int) -> Array:
    """How much each pixel counts in each bin of each descriptor, along one side.

    Shape (descriptors * 4, side); pixels beyond the border count for the outermost.
    """
    starts = scale.starts(side)
    weights = np.zeros((len(starts), BINS, side))
    offsets = np.arange(1 - scale.bin, scale.bin)
    triangle = (scale.bin - np.abs(offsets)) / scale.bin**2
    for number, start in enumerate(starts):
        for b in range(BINS):
            pixels = np.clip(start + b * scale.bin + offsets, 0, side - 1)
            np.add.at(weights[number, b], pixels, window(b, scale.bin) * triangle)
    return weights.reshape(-1, side)


def window(number: int, size: int) -> float:
    """The mean of the Gaussian window over one bin, along one side (VLFeat)."""
    middle = (number - (BINS - 1) / 2) * size
    apart = middle + np.arange(1 - size, size)
    return float(np.exp(-0.5 * (apart / (_WINDOW * size)) ** 2).mean())
