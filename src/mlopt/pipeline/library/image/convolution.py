"""Convolution with a bank of filters, in three ways; the cheapest for the sizes is taken.

KeystoneML, section III: for n x n images of d channels and b filters of k x k, with
m = n - k + 1, operations are

    separable    d b (2 k) m^2 + b k^3      where filters are outer products
    matrix       d b k^2 m^2                patches times filters, one matrix product
    fft          6 d b n^2 log n + 4 d b n^2    whatever k is
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray
from scipy.ndimage import correlate1d

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.pipeline.library.image.arrays import Images, Stateless, as_images, windows
from mlopt.resources import Resources

Array = NDArray[Any]

_PANEL = 1 << 22
"""Values of the patches that are in memory at a time."""
# How many times slower than a large matrix product an operation is: with columns and rows
# of a filter, of a product of patches, of a transform.
_SEPARABLE, _MATRIX, _FFT = 30.0, 2.0, 12.0


@dataclass(frozen=True)
class Sizes:
    """A convolution, as far as its cost depends on it.

    Parameters
    ----------
    images, height, width, channels : int
    filters, k : int
        How many, and their side.
    separable : bool
        Whether each filter is an outer product, channel by channel.
    itemsize : int, default=4
        Bytes of a value.
    """

    images: int
    height: int
    width: int
    channels: int
    filters: int
    k: int
    separable: bool
    itemsize: int = 4

    @property
    def positions(self) -> int:
        """Places where a filter fits, in one image."""
        return (self.height - self.k + 1) * (self.width - self.k + 1)


def costs(sizes: Sizes, resources: Resources) -> dict[str, Cost | str]:
    """What each way would cost, or why it cannot be used."""
    del resources
    one = sizes.images * sizes.channels * sizes.filters
    pixels = sizes.height * sizes.width
    places = one * sizes.positions
    separable = _SEPARABLE * 2.0 * places * 2 * sizes.k
    transforms = sizes.images * (sizes.channels + sizes.filters)
    fft = _FFT * (
        transforms * 2.5 * pixels * math.log2(max(2, pixels)) + 4.0 * one * pixels
    )
    return {
        "separable": _work(separable, sizes)
        if sizes.separable
        else "the filters are no outer products",
        "matrix": _work(_MATRIX * 2.0 * places * sizes.k**2, sizes),
        "fft": _work(fft, sizes),
    }


def _work(operations: float, sizes: Sizes) -> Cost:
    return Cost(flops32=operations) if sizes.itemsize == 4 else Cost(flops=operations)


class Convolver(Stateless):
    """Every image seen through every filter: correlation, where filters fit.

    Parameters
    ----------
    filters : ndarray of shape (b, k, k, channels) or (b, k, k)
    solver : {"auto", "separable", "matrix", "fft"}, default="auto"
        "auto": the least predicted time for the sizes at hand.
    offset : ndarray of shape (b,), optional
        Added to what comes out of each filter: whitening moves the mean there.
    normalize : bool, default=False
        Whether each patch is first made to have mean 0 and variance 1.
    variance : float, default=10.0
        Added to the variance of a patch before it is divided by.
    """

    def __init__(
        self,
        filters: Any,
        solver: str = "auto",
        offset: Any = None,
        normalize: bool = False,
        variance: float = 10.0,
    ) -> None:
        self.filters = filters
        self.solver = solver
        self.offset = offset
        self.normalize = normalize
        self.variance = variance

    def transform(self, X: Any) -> Images:
        """Images of b channels, (n, height - k + 1, width - k + 1, b)."""
        bank = self._bank()
        images = as_images(X, bank.shape[3])
        sizes = self._sizes(images, bank)
        found = _WAYS[self.choose(sizes)](images, bank, self)
        if self.offset is not None:
            found += np.asarray(self.offset, found.dtype)
        return found

    def choose(self, sizes: Sizes, resources: Resources | None = None) -> str:
        """The way that is taken for these sizes."""
        if self.normalize:
            return "matrix"
        if self.solver != "auto":
            if self.solver not in _WAYS:
                raise InputError(
                    f"`solver` must be 'auto' or one of {sorted(_WAYS)}, got "
                    f"{self.solver!r}."
                )
            return self.solver
        machine = resources or Resources()
        seconds = {
            name: cost.seconds(machine)
            for name, cost in costs(sizes, machine).items()
            if isinstance(cost, Cost)
        }
        return min(seconds, key=seconds.__getitem__)

    def _bank(self) -> Array:
        bank = np.asarray(self.filters)
        bank = bank[..., None] if bank.ndim == 3 else bank
        if bank.ndim != 4 or bank.shape[1] != bank.shape[2]:
            raise InputError(
                f"`filters` must have shape (b, k, k, channels), got {bank.shape}."
            )
        return bank

    def _sizes(self, images: Images, bank: Array) -> Sizes:
        n, height, width, channels = images.shape
        k = bank.shape[1]
        if k > min(height, width):
            raise InputError(
                f"Filters of {k} x {k} must fit in images of {height} x {width}."
            )
        separable = self.solver in ("auto", "separable") and factors(bank) is not None
        size = images.dtype.itemsize
        return Sizes(n, height, width, channels, len(bank), k, separable, size)


def factors(bank: Array) -> tuple[Array, Array] | None:
    """Columns and rows whose outer products are the filters, (b, channels, k) each.

    None when some filter has a rank above one.
    """
    left, values, right = np.linalg.svd(np.moveaxis(bank, 3, 1))
    if bank.shape[1] > 1 and (values[..., 1:] > 1e-6 * values[..., :1]).any():
        return None
    root = np.sqrt(values[..., :1])
    return left[..., :, 0] * root, right[..., 0, :] * root


def _separable(images: Images, bank: Array, convolver: Convolver) -> Images:
    """Rows of each filter first, then its columns."""
    del convolver
    found = factors(bank)
    if found is None:
        raise InputError("`filters` must be outer products for `solver`='separable'.")
    down, across = (part.astype(images.dtype) for part in found)
    k, (n, height, width, channels) = bank.shape[1], images.shape
    out = np.zeros((n, height - k + 1, width - k + 1, len(bank)), images.dtype)
    low, high = k // 2, (k - 1) // 2
    for b in range(len(bank)):
        for c in range(channels):
            seen = correlate1d(images[..., c], across[b, c], axis=2, mode="constant")
            seen = correlate1d(seen, down[b, c], axis=1, mode="constant")
            out[..., b] += seen[:, low : height - high, low : width - high]
    return out


def _matrix(images: Images, bank: Array, convolver: Convolver) -> Images:
    """Patches as rows of a matrix, some images at a time."""
    k = bank.shape[1]
    W = bank.reshape(len(bank), -1).T.astype(images.dtype)
    patches = windows(images, k, 1)
    n, rows, columns = patches.shape[:3]
    out = np.empty((n, rows, columns, len(bank)), images.dtype)
    step = max(1, _PANEL // (rows * columns * W.shape[0]))
    for start in range(0, n, step):
        part = patches[start : start + step].reshape(-1, W.shape[0])
        if convolver.normalize:
            part = normalized(part, convolver.variance)
        out[start : start + step] = (part @ W).reshape(-1, rows, columns, len(bank))
    return out


def _fft(images: Images, bank: Array, convolver: Convolver) -> Images:
    """Products of transforms; filters are turned, since this convolves."""
    del convolver
    k, (height, width) = bank.shape[1], images.shape[1:3]
    shape = [scipy.fft.next_fast_len(side, real=True) for side in (height, width)]
    turned = bank[:, ::-1, ::-1].astype(images.dtype)
    filters = scipy.fft.rfft2(turned, shape, axes=(1, 2))
    out = np.empty((len(images), height - k + 1, width - k + 1, len(bank)), images.dtype)
    for number, image in enumerate(images):
        seen = scipy.fft.rfft2(image, shape, axes=(0, 1))
        product = np.einsum("hwc,bhwc->bhw", seen, filters, optimize=True)
        full = scipy.fft.irfft2(product, shape, axes=(1, 2))
        out[number] = np.moveaxis(full[:, k - 1 : height, k - 1 : width], 0, 2)
    return out


def normalized(patches: Array, variance: float) -> Array:
    """Rows with mean 0, divided by the root of their variance plus ``variance``."""
    centred = patches - patches.mean(axis=1, keepdims=True)
    spread = (centred**2).mean(axis=1, keepdims=True) * patches.shape[1]
    spread /= max(1, patches.shape[1] - 1)
    return np.asarray(centred / np.sqrt(spread + variance), patches.dtype)


_WAYS = {"separable": _separable, "matrix": _matrix, "fft": _fft}
