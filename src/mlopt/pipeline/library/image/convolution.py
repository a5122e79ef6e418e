"""Convolution with a bank of filters; the cheapest of three ways for the sizes is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.pipeline.library.image.arrays import Images, Stateless, as_images
from mlopt.pipeline.library.image.convolution_plan import Sizes, costs
from mlopt.pipeline.library.image.convolution_ways import WAYS, factors
from mlopt.pipeline.library.image.normalizing import normalized_products
from mlopt.resources import Resources

Array = NDArray[Any]


class Convolver(Stateless):
    """Every image seen through every filter: correlation, where filters fit.

    Parameters
    ----------
    filters : ndarray of shape (b, k, k, channels) or (b, k, k)
    solver : {"auto", "separable", "matrix", "fft"}, default="auto"
        "separable": rows of each filter, then its columns; for filters that are outer
        products, channel by channel. "matrix": products with rows of patches. "fft":
        products of transforms. "auto": the least predicted time for the sizes at hand.
    offset : ndarray of shape (b,), optional
        Added to what comes out of each filter: whitening moves the mean there.
    normalize : bool, default=False
        Whether each patch is first made to have mean 0 and variance 1.
    variance : float, default=10.0
        Added to the variance of a patch before it is divided by.

    References
    ----------
    Sparks et al., "KeystoneML" (ICDE 2017), section III and Figure 7.
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
        way = self.choose(_sizes(images, bank, self.solver), Resources.remembered())
        if way == "fft" and not np.isfinite(images).all():
            way = "matrix"  # whose sums know where a pixel is that is no number
        if self.normalize:
            found = normalized_products(images, bank, self.variance)
        else:
            found = WAYS[way](images, bank)
        if self.offset is not None:
            found += np.asarray(self.offset, found.dtype)
        return found

    def sizes(self, X: Any) -> Sizes:
        """What the costs need to know of these images and filters."""
        bank = self._bank()
        return _sizes(as_images(X, bank.shape[3]), bank, "auto")

    def choose(self, sizes: Sizes, resources: Resources | None = None) -> str:
        """The way that is taken for these sizes; a pure function of its arguments."""
        ways = ["matrix"] if self.normalize else sorted(WAYS)
        if self.solver not in ("auto", *ways):
            beside = " with `normalize`" * self.normalize
            raise InputError(
                f"`solver` must be 'auto' or one of {ways}{beside}, got {self.solver!r}."
            )
        if self.normalize or self.solver != "auto":
            return "matrix" if self.normalize else self.solver
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
        if not np.isfinite(bank).all():
            raise InputError("`filters` must be finite numbers.")
        return bank if bank.dtype in (np.float32, np.float64) else bank.astype(np.float64)


def _sizes(images: Images, bank: Array, solver: str) -> Sizes:
    n, height, width, channels = images.shape
    k = bank.shape[1]
    if k > min(height, width):
        raise InputError(f"Filters of {k} x {k} must fit in images of {height} x {width}.")
    separable = solver in ("auto", "separable") and factors(bank) is not None
    size = images.dtype.itemsize
    return Sizes(n, height, width, channels, len(bank), k, separable, size)
