"""What each way of convolving would cost: pure functions of sizes.

KeystoneML, section III: for n x n images of d channels and b filters of k x k, with
m = n - k + 1, operations are

    separable    d b k m^2 + b k^3             where filters are outer products
    matrix       d b k^2 m^2                   patches times filters
    fft          6 d b n^2 log n + 4 d b n^2   whatever k is

Here the operations are counted of what `convolution_ways` runs, on one thread: images are
shared out over threads by whoever has many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mlopt.costs import Cost
from mlopt.gd.pricing import arithmetic
from mlopt.pipeline.library.choosing import Options, calibrated
from mlopt.prices import price
from mlopt.resources import Resources

OPERATOR = "Convolver"
"""What calibrations call these ways."""
PANEL = 1 << 19
"""Bytes of results that a product adds to: they stay in the second-level cache."""

_SEPARABLE = price("convolution.separable")
_MATRIX = price("convolution.matrix")
_FFT = price("convolution.fft")
_PRODUCT = price("convolution.product")
_COPIED = price("convolution.copied")
_CALL = price("convolution.call")
_STEP = price("convolution.step")


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
    def wide(self) -> int:
        """Places of a filter in one row."""
        return self.width - self.k + 1

    @property
    def positions(self) -> int:
        """Places where a filter fits, in one image."""
        return (self.height - self.k + 1) * self.wide

    @property
    def written(self) -> float:
        """Bytes of what comes out."""
        return float(self.images * self.positions * self.filters * self.itemsize)


def costs(sizes: Sizes, resources: Resources) -> Options:
    """What each way costs on one thread, or why it cannot be used."""
    options: Options = {
        "separable": _separable(sizes)
        if sizes.separable
        else "the filters are no outer products",
        "matrix": _matrix(sizes),
        "fft": _fft(sizes),
    }
    return calibrated(OPERATOR, options, resources)


def _separable(sizes: Sizes) -> Cost:
    pairs = float(sizes.images * sizes.channels * sizes.filters)
    rows = sizes.height * sizes.wide
    # Four taps go at once, and a sweep takes as long as two more.
    taps = 4 * math.ceil(sizes.k / 4) + 2
    work = arithmetic(sizes, _SEPARABLE * 2.0 * pairs * taps * (rows + sizes.positions))
    turned = Cost(memory=3 * sizes.written)
    return work + turned + Cost(fixed=_STEP * sizes.images * sizes.filters)


def _matrix(sizes: Sizes) -> Cost:
    depth = sizes.k * sizes.channels
    strips = _COPIED * sizes.images * sizes.height * sizes.wide * depth * sizes.itemsize
    calls = sizes.k * (sizes.images + sizes.written / PANEL)
    places = float(sizes.images * sizes.positions)
    # Each product also loads and stores its panel: as long as some more columns.
    work = 2.0 * places * sizes.k * (depth + 12) * max(sizes.filters, 8)
    return (
        Cost(memory=strips)
        + arithmetic(sizes, _MATRIX * work)
        + Cost(memory=sizes.written, fixed=_CALL * calls)
    )


def _fft(sizes: Sizes) -> Cost:
    pixels = float(sizes.height * sizes.width)
    once = 2.5 * pixels * math.log2(max(2.0, pixels))
    bank = sizes.channels * sizes.filters
    # A filter's rows are few, so about half of its transform is left.
    transforms = sizes.images * (sizes.channels + sizes.filters) + 0.6 * bank
    products = 4.0 * sizes.images * bank * pixels
    work = arithmetic(sizes, _FFT * transforms * once + _PRODUCT * products)
    # Whole planes are transformed back, and what is valid of them is turned.
    turned = Cost(memory=3.0 * sizes.images * sizes.filters * pixels * sizes.itemsize)
    return work + turned + Cost(fixed=_STEP * (sizes.images + 1) * sizes.filters)
