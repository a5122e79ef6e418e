"""Experiments with the ways of convolving images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.pipeline.calibration.cases import Case
from mlopt.pipeline.library.image import Convolver
from mlopt.pipeline.library.image.convolution_plan import OPERATOR, costs
from mlopt.resources import Calibration, Resources

_SIZES = (
    (200, 32, 3, 64, 3), (200, 32, 3, 64, 6), (20, 64, 1, 16, 9), (4, 128, 3, 32, 5),
    (4, 128, 3, 32, 15), (1, 256, 3, 50, 3), (1, 256, 3, 50, 10), (1, 256, 3, 50, 24),
)  # fmt: skip
_TINY = ((2, 16, 1, 4, 3), (2, 32, 3, 8, 7))


def cases(resources: Resources, *, tiny: bool = False) -> Iterator[Case]:
    """One problem after the other; data are made when they are asked for."""
    for n, side, channels, b, k in _TINY if tiny else _SIZES:
        yield case(*problem(n, side, channels, b, k), resources)


def problem(
    n: int, side: int, channels: int, b: int, k: int, *, outer: bool = True, seed: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Images (n, side, side, channels) and filters (b, k, k, channels) in float32.

    Filters are outer products, channel by channel, unless ``outer`` is False.
    """
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((n, side, side, channels), np.float32)
    if outer:
        parts = rng.standard_normal((2, b, k, channels), np.float32)
        return images, np.einsum("bic,bjc->bijc", *parts)
    return images, rng.standard_normal((b, k, k, channels), np.float32)


def case(images: Any, filters: Any, resources: Resources) -> Case:
    """A problem of `Convolver`."""
    plain = replace(resources, calibration=Calibration())
    convolver = Convolver(filters)
    sizes = convolver.sizes(images)

    def solve(name: str) -> None:
        Convolver(filters, solver=name).transform(images)

    def choose(machine: Resources) -> str:
        return convolver.choose(sizes, machine)

    n, side, _, channels = images.shape
    b, k = filters.shape[:2]
    label = f"{n} images {side} x {side} x {channels}, {b} filters {k} x {k}"
    return Case(OPERATOR, label, costs(sizes, plain), solve, choose)
