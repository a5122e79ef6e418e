"""Patches drawn from images by what is in these: the same in whatever blocks they come.

Each image has a number that its pixels and the seed give. The images with the smallest
numbers are drawn, and their numbers say where the patches lie. So a sample of blocks,
merged, is the sample of all images.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.pipeline.library.image.arrays import Images, check_window

_U64 = np.uint64


@dataclass(frozen=True, eq=False)
class Drawn:
    """Patches of the images with the smallest numbers.

    Law: ``draw(a).merge(draw(b), m)`` holds what ``draw(a and b)`` does.

    Attributes
    ----------
    numbers : ndarray of uint64, shape (m,)
        In ascending order.
    patches : ndarray of shape (m, patches an image, k * k * channels)
    """

    numbers: NDArray[Any]
    patches: NDArray[Any]

    def merge(self, other: Drawn, most: int) -> Drawn:
        """The ``most`` images with the smallest numbers of both."""
        numbers = np.concatenate([self.numbers, other.numbers])
        first = np.argsort(numbers, kind="stable")[:most]
        patches = np.concatenate([self.patches, other.patches])
        return Drawn(numbers[first], patches[first])


def draw(images: Images, k: int, most: int, each: int, seed: int) -> Drawn:
    """``each`` patches of k x k of at most ``most`` images.

    Parameters
    ----------
    images : ndarray of shape (n, height, width, channels)
    k, most, each, seed : int

    Raises
    ------
    InputError
        When such patches do not fit in the images.
    """
    check_window(images, k)
    numbers = fingerprints(images, seed)
    first = np.argsort(numbers, kind="stable")[:most]
    numbers = numbers[first]
    n, (height, width, channels) = len(first), images.shape[1:]
    patches = np.empty((n, each, k, k, channels), images.dtype)
    for number in range(each):
        mixed = _mixed(numbers + _U64(2 * number + 1))
        tops = (mixed % _U64(height - k + 1)).astype(np.intp)
        lefts = (_mixed(mixed) % _U64(width - k + 1)).astype(np.intp)
        for at, (i, top, left) in enumerate(zip(first, tops, lefts, strict=True)):
            patches[at, number] = images[i, top : top + k, left : left + k]
    return Drawn(numbers, patches.reshape(n, each, k * k * channels))


def fingerprints(images: Images, seed: int) -> NDArray[Any]:
    """A number for each image, of its pixels as float64 and the seed, (n,) uint64."""
    pixels = images.reshape(len(images), int(np.prod(images.shape[1:])))
    random = np.random.default_rng(seed)
    factors = random.integers(0, 2**63, pixels.shape[1], dtype=_U64) * _U64(2) + _U64(1)
    out = np.empty(len(pixels), _U64)
    step = max(1, (1 << 18) // max(1, pixels.shape[1]))
    for start in range(0, len(pixels), step):
        # Adding 0.0 makes the two zeros one.
        bits = (pixels[start : start + step].astype(np.float64) + 0.0).view(_U64)
        out[start : start + step] = (bits * factors).sum(axis=1, dtype=_U64)
    return _mixed(out)


def _mixed(numbers: NDArray[Any]) -> NDArray[Any]:
    """Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014."""
    z = numbers + _U64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> _U64(30))) * _U64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> _U64(27))) * _U64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> _U64(31)))
