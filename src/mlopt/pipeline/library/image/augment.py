"""Random changes of images: mirrored, moved, or seen in part.

What is drawn for an image depends on the seed and on its own pixels. So it is the same in
whatever block the image stands, and every time that it is read: rows that are not kept are
made anew in every pass. That is why there must be a seed.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from mlopt.errors import InputError
from mlopt.parameters import check_count, check_positive
from mlopt.pipeline.library.image.arrays import Images, Stateless, as_images


def generators(images: Images, random_state: int) -> list[np.random.Generator]:
    """One for each image, from its pixels, in whatever type, and the seed."""
    seed = check_count("random_state", random_state, least=0)
    # Adding 0 makes the two zeros one.
    pixels = ((image.astype(np.float64) + 0.0).tobytes() for image in images)
    return [np.random.default_rng([seed, zlib.crc32(own)]) for own in pixels]


class RandomImageTransformer(Stateless):
    """Every image, maybe mirrored, and a random square of it.

    Parameters
    ----------
    chance : float, default=0.5
        That an image is mirrored.
    size : int, optional
        Side of the square in pixels; None: the whole image.
    random_state : int, default=0
        Equal images are changed alike.
    """

    def __init__(
        self, chance: float = 0.5, size: int | None = None, random_state: int = 0
    ) -> None:
        self.chance = chance
        self.size = size
        self.random_state = random_state

    def transform(self, X: Any) -> Images:
        """Images of shape (n, size, size, channels).

        Raises
        ------
        InputError
            When the square does not fit, or ``chance`` is not in 0 ... 1.
        """
        if check_positive("chance", self.chance, zero=True) > 1:
            raise InputError(f"`chance` must lie in 0 ... 1, got {self.chance}.")
        images = as_images(X)
        height, width = images.shape[1:3]
        shape = (height, width) if self.size is None else _square(images, self.size)
        found = np.empty((len(images), *shape, images.shape[3]), images.dtype)
        for number, random in enumerate(generators(images, self.random_state)):
            part = _part(images[number], shape, random)
            found[number] = part[:, ::-1] if random.random() < self.chance else part
        return found


class RandomPatcher(Stateless):
    """Squares at random places of every image.

    Each becomes an image of its own by ``patches.reshape(-1, size, size, channels)``, with
    labels from `repeat_labels`; `vote` makes their scores one again.

    Parameters
    ----------
    n_patches : int
        Of each image.
    size : int
        Side in pixels.
    random_state : int, default=0
    """

    def __init__(self, n_patches: int, size: int, random_state: int = 0) -> None:
        self.n_patches = n_patches
        self.size = size
        self.random_state = random_state

    def transform(self, X: Any) -> Images:
        """Patches, shape (n, n_patches, size, size, channels).

        Raises
        ------
        InputError
            When the square does not fit.
        """
        count, images = check_count("n_patches", self.n_patches), as_images(X)
        shape = _square(images, self.size)
        found = np.empty((len(images), count, *shape, images.shape[3]), images.dtype)
        for number, random in enumerate(generators(images, self.random_state)):
            for patch in range(count):
                found[number, patch] = _part(images[number], shape, random)
        return found


def _square(images: Images, size: Any) -> tuple[int, int]:
    least = min(images.shape[1:3])
    if check_count("size", size) > least:
        raise InputError(f"`size` must lie in 1 ... {least}, got {size}.")
    return int(size), int(size)


def _part(image: Any, shape: tuple[int, int], random: np.random.Generator) -> Any:
    """A rectangle at a random place."""
    spare = image.shape[0] - shape[0], image.shape[1] - shape[1]
    top, left = (int(random.integers(most + 1)) for most in spare)
    return image[top : top + shape[0], left : left + shape[1]]
