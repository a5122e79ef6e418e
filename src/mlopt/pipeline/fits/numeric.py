"""One-pass fits of steps on numbers and categories."""

from __future__ import annotations

from types import MappingProxyType

from mlopt.pipeline.fits.base import OnePass, by_kind
from mlopt.pipeline.fits.bayes import BAYES
from mlopt.pipeline.fits.discretizing import DISCRETIZING
from mlopt.pipeline.fits.encoding import ENCODING
from mlopt.pipeline.fits.imputing import IMPUTING
from mlopt.pipeline.fits.scaling import SCALING
from mlopt.pipeline.fits.selecting import SELECTING

FITS: tuple[OnePass, ...] = (
    *SCALING,
    *IMPUTING,
    *ENCODING,
    *DISCRETIZING,
    *SELECTING,
    *BAYES,
)
"""Every one of them: the contract suite tests what stands here."""

NUMERIC = MappingProxyType(by_kind(FITS))
"""The one-pass fits of each class of scikit-learn."""
