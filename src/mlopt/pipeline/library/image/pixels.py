"""Operators on pixels: scale, grey, crop, rectify, pool, flatten."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlopt.errors import InputError
from mlopt.kernels.windows import PIXELS, POOLS, both_signs, pool
from mlopt.pipeline.library.image.arrays import (
    Images,
    Stateless,
    as_images,
    check_window,
    joined,
)

_GREY = np.array([0.299, 0.587, 0.114])
"""Weights of red, green and blue (ITU-R BT.601)."""


class PixelScaler(Stateless):
    """Pixels of 0 ... 255 to 0 ... 1."""

    def transform(self, X: Any) -> Images:
        """Images divided by 255."""
        images = as_images(X)
        scaled: Images = images / images.dtype.type(255)
        return scaled


class GrayScaler(Stateless):
    """One channel: red, green and blue as bright as they look."""

    def transform(self, X: Any) -> Images:
        """Images of shape (n, height, width, 1); those of one channel stay."""
        images = as_images(X)
        if images.shape[3] == 1:
            return images
        grey = as_images(images, 3) @ _GREY.astype(images.dtype)
        return np.asarray(grey[..., None])


class Cropper(Stateless):
    """A rectangle of every image.

    Parameters
    ----------
    top, left, bottom, right : int
        First row and column; those after the last.
    """

    def __init__(self, top: int, left: int, bottom: int, right: int) -> None:
        self.top = top
        self.left = left
        self.bottom = bottom
        self.right = right

    def transform(self, X: Any) -> Images:
        """Images of shape (n, bottom - top, right - left, channels)."""
        images = as_images(X)
        rows, columns = images.shape[1:3]
        inside = 0 <= self.top < self.bottom <= rows and 0 <= self.left < self.right
        if not (inside and self.right <= columns):
            box = (self.top, self.left, self.bottom, self.right)
            raise InputError(f"{box} must lie within images of {rows} x {columns}.")
        return images[:, self.top : self.bottom, self.left : self.right]


class SymmetricRectifier(Stateless):
    """What is above a threshold, and what is below its negative, as channels of their own.

    Parameters
    ----------
    alpha : float, default=0.0
        Threshold.
    least : float, default=0.0
        Smallest value that comes out.
    """

    def __init__(self, alpha: float = 0.0, least: float = 0.0) -> None:
        self.alpha = alpha
        self.least = least

    def transform(self, X: Any) -> Images:
        """Twice as many channels: ``max(least, x - alpha)``, ``max(least, -x - alpha)``."""
        return both_signs(as_images(X), self.alpha, self.least)


class Pooler(Stateless):
    """One number for each window and channel.

    Parameters
    ----------
    size, stride : int
        Side of the windows, and how far apart they are.
    pool : {"sum", "mean", "max"}, default="sum"
    pixel : {"identity", "abs", "square"}, default="identity"
        What is done to pixels before.
    """

    def __init__(
        self, size: int, stride: int, pool: str = "sum", pixel: str = "identity"
    ) -> None:
        self.size = size
        self.stride = stride
        self.pool = pool
        self.pixel = pixel

    def transform(self, X: Any) -> Images:
        """Images of windows, (n, rows, columns, channels)."""
        for name, known in (("pool", POOLS), ("pixel", PIXELS)):
            if getattr(self, name) not in known:
                raise InputError(
                    f"`{name}` must be one of {sorted(known)}, got {getattr(self, name)!r}."
                )
        images = as_images(X)
        check_window(images, self.size, self.stride)
        return pool(images, self.size, self.stride, self.pool, self.pixel)


class ImageVectorizer(Stateless):
    """Every image as one row of numbers."""

    def transform(self, X: Any) -> Images:
        """Shape (n, height * width * channels)."""
        return joined(as_images(X), 1, 4)


class Flipper(Stateless):
    """Every image and its mirror image, as one row each: (2n, ...).

    For augmentation before training; `repeat_labels` gives the labels that go with them.
    """

    def transform(self, X: Any) -> Images:
        """Images, each followed by its mirror image."""
        images = as_images(X)
        both = np.stack([images, images[:, :, ::-1]], axis=1)
        return both.reshape(-1, *images.shape[1:])


def repeat_labels(y: Any, times: int) -> np.ndarray:
    """Labels for augmented images: each ``times`` times in a row."""
    return np.repeat(np.asarray(y), times, axis=0)
