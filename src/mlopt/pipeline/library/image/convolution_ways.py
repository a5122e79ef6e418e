"""Three ways of seeing images through filters: the same numbers, up to rounding.

Shapes: images (n, height, width, channels), filters (b, k, k, channels), and what comes out
(n, m, m', b) with ``m = height - k + 1`` and ``m' = width - k + 1``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, sgemm

from mlopt.errors import InputError
from mlopt.kernels.separable import separable
from mlopt.pipeline.library.image.arrays import Images
from mlopt.pipeline.library.image.convolution_plan import PANEL

Array = NDArray[Any]

_TRANSFORMS = 1 << 26
"""Bytes of transforms of images that are kept while filters go by."""
_TOGETHER = 16
"""Filters whose results are written side by side: a cache line of float32."""


def factors(bank: Array) -> tuple[Array, Array] | None:
    """Columns and rows whose outer products are the filters, (b, channels, k) each.

    None when some filter has a rank above one.
    """
    left, values, right = np.linalg.svd(np.moveaxis(bank, 3, 1))
    if bank.shape[1] > 1 and (values[..., 1:] > 1e-6 * values[..., :1]).any():
        return None
    root = np.sqrt(values[..., :1])
    return left[..., :, 0] * root, right[..., 0, :] * root


def by_separable(images: Images, bank: Array) -> Images:
    """Rows of each filter first, then its columns.

    Raises
    ------
    InputError
        When some filter is no outer product.
    """
    found = factors(bank)
    if found is None:
        raise InputError("`filters` must be outer products for `solver`='separable'.")
    down, across = (np.ascontiguousarray(part.astype(images.dtype)) for part in found)
    out = _room(images, bank)
    high, wide = out.shape[1:3]
    rows = np.empty(images.shape[1] * wide, images.dtype)
    for number, image in enumerate(np.moveaxis(images, 3, 1)):
        plane = np.ascontiguousarray(image)
        for some in _groups(len(bank)):
            seen = np.empty((len(across[some]), high * wide), images.dtype)
            separable(plane, across[some], down[some], rows, seen)
            out[number, :, :, some] = seen.reshape(-1, high, wide).transpose(1, 2, 0)
    return out


def by_matrix(images: Images, bank: Array) -> Images:
    """Products of rows of patches with rows of filters, added up.

    What a filter's row covers is copied, k times the pixels; patches themselves, k^2 times
    the pixels, are never made: each row of filters is one more product onto the same panel.
    """
    k, c = bank.shape[1], bank.shape[3]
    out = _room(images, bank)
    high, wide = out.shape[1:3]
    W = bank.reshape(len(bank), k, k * c).transpose(1, 2, 0).astype(images.dtype, order="C")
    product = sgemm if images.dtype == np.float32 else dgemm
    step = max(1, PANEL // (out.itemsize * wide * len(bank)))
    for number, image in enumerate(images):
        strips = _strips(image, k)
        for top in range(0, high, step):
            end = min(high, top + step)
            # BLAS counts columns first: in its eyes everything here is transposed.
            panel = out[number, top:end].reshape(-1, len(bank)).T
            for row in range(k):
                seen = strips[top + row : end + row].reshape(-1, k * c).T
                kept = 1.0 if row else 0.0
                product(1.0, W[row].T, seen, kept, panel, overwrite_c=1)
    return out


def _strips(image: Array, k: int) -> Array:
    """What the rows of filters see, (height, width - k + 1, k * channels)."""
    view = np.lib.stride_tricks.sliding_window_view(image, k, axis=1)
    return np.moveaxis(view, 3, 2).reshape(len(image), -1, k * image.shape[2])


def by_fft(images: Images, bank: Array) -> Images:
    """Products of transforms; filters are turned, since this convolves.

    A filter is transformed once for as many images as fit, an image once for all filters.
    What wraps around ends up where filters do not fit, so nothing is padded but to a size
    that is fast.
    """
    k, (height, width) = bank.shape[1], images.shape[1:3]
    shape = tuple(scipy.fft.next_fast_len(side, real=True) for side in (height, width))
    turned = np.moveaxis(bank[:, ::-1, ::-1], 3, 1).astype(images.dtype)
    out = _room(images, bank)
    size = 2 * images.itemsize * images.shape[3] * shape[0] * (shape[1] // 2 + 1)
    step = max(1, _TRANSFORMS // size)
    for start in range(0, len(images), step):
        part = np.ascontiguousarray(np.moveaxis(images[start : start + step], 3, 1))
        seen = scipy.fft.rfft2(part, shape)
        for some in _groups(len(bank)):
            # Of a filter all but k rows are zero: they need no transform of their own.
            rows = scipy.fft.rfft(turned[some], shape[1])
            filters = scipy.fft.fft(rows, shape[0], axis=2, overwrite_x=True)
            for number, image in enumerate(seen, start):
                full = scipy.fft.irfft2(_product(image, filters), shape, overwrite_x=True)
                valid = full[:, k - 1 : height, k - 1 : width]
                out[number, :, :, some] = valid.transpose(1, 2, 0)
    return out


def _product(image: Array, filters: Array) -> Array:
    """Transforms (channels, h, w) times those of filters (b, channels, h, w), summed."""
    total = np.empty((len(filters), *image.shape[1:]), image.dtype)
    buffer = np.empty_like(total[0])
    for b, one in enumerate(filters):  # one at a time stays in cache
        np.multiply(image[0], one[0], out=total[b])
        for c in range(1, len(image)):
            np.multiply(image[c], one[c], out=buffer)
            total[b] += buffer
    return total


def _room(images: Images, bank: Array) -> Images:
    k, (height, width) = bank.shape[1], images.shape[1:3]
    shape = (len(images), height - k + 1, width - k + 1, len(bank))
    return np.empty(shape, images.dtype)


def _groups(b: int) -> Iterator[slice]:
    return (slice(start, start + _TOGETHER) for start in range(0, b, _TOGETHER))


WAYS: dict[str, Callable[[Images, Array], Images]] = {
    "separable": by_separable,
    "matrix": by_matrix,
    "fft": by_fft,
}
