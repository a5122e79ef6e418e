"""DAISY: orientations of edges, smoothed on rings around every point of a grid.

Shapes: images (n, height, width, 1), descriptors (n, m, d) with
``d = (rings * petals + 1) * orientations``.

Tola, Lepetit, Fua, "DAISY: an efficient dense descriptor applied to wide-baseline stereo",
PAMI 32, 2010; with the borders and bins of `skimage.feature.daisy`, many images at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from mlopt.errors import InputError
from mlopt.parameters import check_choice, check_count
from mlopt.pipeline.library.image.arrays import (
    Images,
    Stateless,
    as_images,
    by_panel,
    joined,
    one_channel,
)

Array = NDArray[Any]


class Daisy(Stateless):
    """Descriptors on a grid: a centre, and rings of petals about it.

    Parameters
    ----------
    step : int, default=4
        Pixels between points of the grid.
    radius : int, default=15
        Of the outermost ring, in pixels; so far from the border the grid begins.
    rings, petals, orientations : int, default=3, 8, 8
        Rings, places on each, and bins of 0 ... 360 degrees at each place.
    norm : {"l1", "l2", "daisy", "off"}, default="l1"
        Of a whole descriptor; "daisy": L2 of each place.
    """

    def __init__(
        self,
        step: int = 4,
        radius: int = 15,
        rings: int = 3,
        petals: int = 8,
        orientations: int = 8,
        norm: str = "l1",
    ) -> None:
        self.step = step
        self.radius = radius
        self.rings = rings
        self.petals = petals
        self.orientations = orientations
        self.norm = norm

    def transform(self, X: Any) -> Array:
        """Descriptors row by row of the grid, (n, m, d).

        Raises
        ------
        InputError
            For several channels, or images with no place for a circle.
        """
        for name in ("step", "radius", "rings", "petals", "orientations"):
            check_count(name, getattr(self, name))
        check_choice("norm", self.norm, list(_NORMS))
        images = as_images(X)
        one_channel(images, "Daisy")
        if min(images.shape[1:3]) <= 2 * self.radius:
            height, width = images.shape[1:3]
            raise InputError(
                f"Images must have more than {2 * self.radius} pixels on each side for "
                f"`radius`={self.radius}, got {height} x {width}: take a smaller radius."
            )
        each = self.orientations * (self.rings + 2) * images[:1].size
        return by_panel(self._descriptors, images, each)

    def _descriptors(self, images: Images) -> Array:
        maps = _orientations(images[..., 0], self.orientations)
        found = np.stack(list(self._places(maps)), axis=3)
        found = _NORMS[self.norm](joined(found, 1, 3))
        return np.asarray(joined(found, 2, 4), images.dtype)

    def _places(self, maps: Array) -> Iterator[Array]:
        """For the centre, and each petal of each ring: (n, rows, columns, orientations)."""
        radius, step = self.radius, self.step
        height, width = (side - 2 * radius for side in maps.shape[2:])
        for ring in range(-1, self.rings):
            sigma = radius * (max(ring, 0) + 1) / (2 * self.rings)
            smooth = np.moveaxis(gaussian_filter(maps, sigma, axes=(2, 3)), 1, 3)
            far = radius * (ring + 1) / self.rings
            for petal in range(self.petals if ring >= 0 else 1):
                angle = 2 * np.pi * petal / self.petals
                top = radius + round(far * np.sin(angle))
                left = radius + round(far * np.cos(angle))
                rows, columns = slice(top, top + height), slice(left, left + width)
                yield smooth[:, rows, columns][:, ::step, ::step]


def _orientations(images: Array, count: int) -> Array:
    """How strong edges of each direction are, (n, count, height, width)."""
    across, down = np.zeros_like(images), np.zeros_like(images)
    across[:, :, :-1] = np.diff(images, axis=2)
    down[:, :-1] = np.diff(images, axis=1)
    strength, angle = np.hypot(across, down), np.arctan2(down, across)
    centres = 2 * np.pi * np.arange(count) / count - np.pi
    kind = images.dtype.type
    apart = angle[:, None] - centres.astype(images.dtype)[:, None, None]
    maps: Array = np.exp(kind(count / np.pi) * np.cos(apart)) * strength[:, None]
    return maps


def _scaled(power: int, axes: tuple[int, ...]) -> Callable[[Array], Array]:
    def scaled(found: Array) -> Array:
        found = found + found.dtype.type(1e-10)
        sums = (found**power).sum(axis=axes, keepdims=True)
        divided: Array = found / sums ** (1.0 / power)
        return divided

    return scaled


_NORMS: dict[str, Callable[[Array], Array]] = {
    "l1": _scaled(1, (2, 3)),
    "l2": _scaled(2, (2, 3)),
    "daisy": _scaled(2, (3,)),
    "off": lambda found: found,
}
