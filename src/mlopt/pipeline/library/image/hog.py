"""Histograms of oriented gradients: which way edges go in each cell of an image.

Shapes: images (n, height, width, channels), cells (n, rows, columns, orientations).

Dalal, Triggs, "Histograms of oriented gradients for human detection", CVPR 2005; with the
borders, bins and norms of `skimage.feature.hog`, for many images at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError
from mlopt.parameters import check_choice, check_count
from mlopt.pipeline.library.image.arrays import (
    Images,
    Stateless,
    as_images,
    by_panel,
    joined,
)

Array = NDArray[Any]
_EPS = 1e-5
_AT_ONCE = 8
"""Arrays as large as the image that are there at a time."""


class HOG(Stateless):
    """Histograms of gradients, normalised block by block of cells, as one row an image.

    Parameters
    ----------
    orientations : int, default=9
        Bins of 0 ... 180 degrees.
    cell : int, default=8
        Side of a cell in pixels; what is left over at the right and below is not read.
    block : int, default=3
        Side of a block in cells; blocks are one cell apart.
    norm : {"L1", "L1-sqrt", "L2", "L2-Hys"}, default="L2-Hys"
        "L2-Hys": L2, clipped at 0.2, and L2 again.
    """

    def __init__(
        self, orientations: int = 9, cell: int = 8, block: int = 3, norm: str = "L2-Hys"
    ) -> None:
        self.orientations = orientations
        self.cell = cell
        self.block = block
        self.norm = norm

    def transform(self, X: Any) -> Array:
        """Rows of ``blocks * block * block * orientations`` numbers, (n, d).

        Of several channels, each pixel takes the gradient of the one where it is largest.

        Raises
        ------
        InputError
            When images have fewer cells than a block.
        """
        for name in ("orientations", "cell", "block"):
            check_count(name, getattr(self, name))
        check_choice("norm", self.norm, list(_NORMS))
        images = as_images(X)
        height, width = images.shape[1:3]
        if min(height, width) < self.cell * self.block:
            raise InputError(
                f"Images must have {self.block} x {self.block} cells of {self.cell} pixels "
                f"at least, got {height} x {width} pixels: take smaller cells or blocks."
            )
        size = (self.orientations, self.cell, self.block)
        function = partial(_descriptors, size=size, norm=_NORMS[self.norm])
        return by_panel(function, images, _AT_ONCE * images[:1].size)


def _descriptors(
    images: Images, size: tuple[int, int, int], norm: Callable[[Array], Array]
) -> Array:
    orientations, cell, block = size
    cells = _cells(*_gradients(images), orientations, cell)
    blocks = np.lib.stride_tricks.sliding_window_view(cells, (block, block), axis=(1, 2))
    # from (..., orientations, block, block): bins last, as cells have them
    flat = np.moveaxis(blocks, 3, -1).reshape(-1, block * block * orientations)
    rows = norm(flat).reshape(*blocks.shape[:3], flat.shape[1])
    return np.asarray(joined(rows, 1, 4), images.dtype)


def _gradients(images: Images) -> tuple[Array, Array]:
    """Differences down and across, (n, height, width); none at the border."""
    down, across = np.zeros_like(images), np.zeros_like(images)
    np.subtract(images[:, 2:], images[:, :-2], out=down[:, 1:-1])
    np.subtract(images[:, :, 2:], images[:, :, :-2], out=across[:, :, 1:-1])
    if images.shape[3] == 1:
        return down[..., 0], across[..., 0]
    strongest = np.hypot(down, across).argmax(axis=3)[..., None]
    first, second = (np.take_along_axis(g, strongest, 3) for g in (down, across))
    return first[..., 0], second[..., 0]


def _cells(down: Array, across: Array, orientations: int, cell: int) -> Array:
    """Mean magnitude of each orientation in each cell."""
    n, rows, columns = len(down), down.shape[1] // cell, down.shape[2] // cell
    down, across = (g[:, : rows * cell, : columns * cell] for g in (down, across))
    degrees = np.rad2deg(np.arctan2(down, across)) % 180
    # 180 itself comes of rounding
    bins = (degrees * (orientations / 180.0)).astype(np.intp) % orientations
    places = np.arange(n * rows * columns).reshape(n, rows, 1, columns, 1)
    shape = n, rows, cell, columns, cell
    numbers = places * orientations + bins.reshape(shape)
    length = n * rows * columns * orientations
    sums = np.bincount(numbers.ravel(), np.hypot(down, across).ravel(), length)
    return (sums / cell**2).reshape(n, rows, columns, orientations)


def _l2(rows: Array) -> Array:
    squares = np.einsum("ij,ij->i", rows, rows)[:, None]
    return np.asarray(rows / np.sqrt(squares + _EPS**2))


def _l1(rows: Array) -> Array:
    return np.asarray(rows / (np.abs(rows).sum(axis=1, keepdims=True) + _EPS))


_NORMS: dict[str, Callable[[Array], Array]] = {
    "L1": _l1,
    "L1-sqrt": lambda rows: np.sqrt(_l1(rows)),
    "L2": _l2,
    "L2-Hys": lambda rows: _l2(np.minimum(_l2(rows), 0.2)),
}
