"""Batches of images: float arrays of shape (n, height, width, channels)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from mlopt.errors import InputError

Images = NDArray[Any]


def as_images(X: Any, channels: int | None = None) -> Images:
    """``X`` as float images; a batch without a last axis has one channel.

    Parameters
    ----------
    X : array-like of shape (n, height, width) or (n, height, width, channels)
        Integers and half precision become float32, floats that only NumPy has float64.
    channels : int, optional
        How many there must be.

    Raises
    ------
    InputError
        For another number of axes or channels, and for complex numbers.
    """
    images = np.asarray(X)
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4:
        raise InputError(
            "X must hold images: shape (n, height, width) or (n, height, width, channels), "
            f"got {images.shape}. Rows of pixels become images by `X.reshape(n, h, w)`."
        )
    if channels is not None and images.shape[3] != channels:
        raise InputError(f"X must have {channels} channels, got {images.shape[3]}.")
    if images.dtype.kind == "c":
        raise InputError(f"X must hold real numbers, got {images.dtype}.")
    if images.dtype in (np.float32, np.float64):
        return images
    wide = images.dtype.kind == "f" and images.itemsize > 4
    return images.astype(np.float64 if wide else np.float32)


class Stateless(TransformerMixin, BaseEstimator):
    """A transformer of images that learns nothing."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn nothing."""
        del X, y
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True
        tags.input_tags.three_d_array = True
        return tags


def joined(found: Images, start: int, end: int) -> Images:
    """Axes ``start ... end - 1`` as one, also where there are no images."""
    shape = found.shape
    return found.reshape(*shape[:start], math.prod(shape[start:end]), *shape[end:])


def windows(images: Images, size: int, stride: int) -> Images:
    """A view of all windows, shape (n, rows, columns, size, size, channels)."""
    check_window(images, size, stride)
    view = np.lib.stride_tricks.sliding_window_view(images, (size, size), axis=(1, 2))
    return np.moveaxis(view[:, ::stride, ::stride], 3, 5)


def check_window(images: Images, size: int, stride: int = 1) -> None:
    """Refuse windows that are larger than the images, and numbers below 1.

    Raises
    ------
    InputError
    """
    height, width = images.shape[1:3]
    if size < 1 or stride < 1 or size > min(height, width):
        raise InputError(
            f"`size` must lie in 1 ... {min(height, width)} and `stride` be at least 1, "
            f"got {size} and {stride}."
        )


PANEL = 1 << 22
"""Values that work on images may make on the way, at a time."""


def by_panel(
    function: Callable[[Images], Images], images: Images, each: int, panel: int = PANEL
) -> Images:
    """``function(images)``, some images at a time.

    Parameters
    ----------
    function : callable
        Of images that go by themselves; gives an array with one entry an image.
    images : ndarray of shape (n, height, width, channels)
    each : int
        Values that it makes on the way, of one image.
    panel : int
        Values of a panel.
    """
    step = max(1, panel // max(1, each))
    if len(images) <= step:
        return function(images)
    starts = range(0, len(images), step)
    return np.concatenate([function(images[start : start + step]) for start in starts])


def one_channel(images: Images, what: str) -> Images:
    """The only channel, (n, height, width).

    Raises
    ------
    InputError
        When there are more.
    """
    if images.shape[3] != 1:
        raise InputError(
            f"{what} takes images of one channel, got {images.shape[3]}: put `GrayScaler` "
            "in front of it."
        )
    return images[..., 0]
