"""Which ways there are to fit a class: one table, to which a new way is one line."""

from __future__ import annotations

from typing import Any

from numpy.random import Generator, RandomState

from mlopt.pipeline.fits.base import Fit, by_kind
from mlopt.pipeline.fits.images.filters import DrawPatches
from mlopt.pipeline.fits.models.table import MODELS
from mlopt.pipeline.fits.numbers.table import FITS
from mlopt.pipeline.fits.text.table import TEXT

WAYS: dict[type, tuple[Fit, ...]] = by_kind([*FITS, *TEXT, *MODELS, DrawPatches()])


def ways_of(estimator: Any) -> tuple[Fit, ...]:
    """The ways of fitting ``estimator`` besides scikit-learn's own; maybe none.

    A generator as ``random_state`` must be the user's own, which moves on with a fit: ways
    work on copies.
    """
    if isinstance(getattr(estimator, "random_state", None), RandomState | Generator):
        return ()
    return WAYS.get(type(estimator), ())
