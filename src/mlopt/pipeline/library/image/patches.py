"""Patches of images, and whitening them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mlopt.errors import InputError
from mlopt.parameters import check_count, check_positive
from mlopt.pipeline.library.image.arrays import (
    Images,
    Stateless,
    as_images,
    joined,
    windows,
)


class Windower(Stateless):
    """All windows of every image.

    Parameters
    ----------
    size, stride : int
    """

    def __init__(self, size: int, stride: int = 1) -> None:
        self.size = size
        self.stride = stride

    def transform(self, X: Any) -> Images:
        """Windows, shape (n, windows, size, size, channels)."""
        return joined(windows(as_images(X), self.size, self.stride), 1, 3)


class PatchExtractor:
    """Patches at random places: a sample to learn filters from.

    Parameters
    ----------
    size : int
    n_patches : int
    random_state : int, RandomState or None, default=None
    """

    def __init__(self, size: int, n_patches: int, random_state: Any = None) -> None:
        self.size = size
        self.n_patches = n_patches
        self.random_state = random_state

    def sample(self, X: Any) -> Images:
        """Patches as rows, shape (n_patches, size * size * channels)."""
        images, count = as_images(X), check_count("n_patches", self.n_patches)
        if not len(images):
            raise InputError("X must hold an image at least, got none.")
        height, width = images.shape[1:3]
        if not 1 <= self.size <= min(height, width):
            raise InputError(
                f"`size` must lie in 1 ... {min(height, width)}, got {self.size}."
            )
        random = check_random_state(self.random_state)
        which = random.randint(len(images), size=count)
        tops = random.randint(height - self.size + 1, size=count)
        lefts = random.randint(width - self.size + 1, size=count)
        places = zip(which, tops, lefts, strict=True)
        found = [images[i, t : t + self.size, s : s + self.size] for i, t, s in places]
        return np.stack(found).reshape(count, -1)


class CenterCornerPatcher(Stateless):
    """The centre and the four corners of every image, and their mirror images if wanted.

    Parameters
    ----------
    size : int
    flip : bool, default=False
    """

    def __init__(self, size: int, flip: bool = False) -> None:
        self.size = size
        self.flip = flip

    def transform(self, X: Any) -> Images:
        """Patches, shape (n, 5 or 10, size, size, channels)."""
        images = as_images(X)
        down, across = images.shape[1] - self.size, images.shape[2] - self.size
        if self.size < 1 or min(down, across) < 0:
            raise InputError(f"`size` must fit in the images, got {self.size}.")
        corners = [(0, 0), (0, across), (down, 0), (down, across), (down // 2, across // 2)]
        found = [images[:, t : t + self.size, s : s + self.size] for t, s in corners]
        if self.flip:
            found += [part[:, :, ::-1] for part in found]
        return np.stack(found, axis=1)


class ZCAWhitener(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Rows without correlation, as close as possible to what they were.

    ``(x - mean) V diag(1 / sqrt(s^2 / (n - 1) + eps)) V'`` with the singular values ``s``
    and vectors ``V`` of the centred rows.

    Parameters
    ----------
    eps : float, default=0.1

    Attributes
    ----------
    mean_ : ndarray of shape (d,)
    whitener_ : ndarray of shape (d, d)
    """

    def __init__(self, eps: float = 0.1) -> None:
        self.eps = eps

    def fit(self, X: Any, y: Any = None) -> ZCAWhitener:
        """Learn from rows (n, d)."""
        del y
        eps = check_positive("eps", self.eps, zero=True)
        X = validate_data(self, X, dtype=(np.float64, np.float32), ensure_min_samples=2)
        self.mean_ = X.mean(axis=0)
        centred = X - self.mean_
        values, vectors = np.linalg.eigh(centred.T @ centred / (len(X) - 1))
        scale = 1.0 / np.sqrt(np.maximum(values, 0.0) + eps)
        self.whitener_ = (vectors * scale) @ vectors.T
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Whitened rows (n, d)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=(np.float64, np.float32), reset=False)
        return np.asarray((X - self.mean_) @ self.whitener_)
