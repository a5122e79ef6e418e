"""One-pass fits of steps on numbers and categories."""

from __future__ import annotations

from mlopt.pipeline.fits.base import OnePass
from mlopt.pipeline.fits.numbers.bayes import BAYES
from mlopt.pipeline.fits.numbers.discretizing import DISCRETIZING
from mlopt.pipeline.fits.numbers.drawing import DRAWING
from mlopt.pipeline.fits.numbers.encoding import ENCODING
from mlopt.pipeline.fits.numbers.imputing import IMPUTING
from mlopt.pipeline.fits.numbers.scaling import SCALING
from mlopt.pipeline.fits.numbers.selecting import SELECTING

FITS: tuple[OnePass, ...] = (
    *SCALING,
    *IMPUTING,
    *ENCODING,
    *DISCRETIZING,
    *SELECTING,
    *DRAWING,
    *BAYES,
)
"""Every one of them: the contract suite tests what stands here."""

LIGHT = frozenset(
    kind
    for way in (*SCALING, *IMPUTING, *ENCODING, *DISCRETIZING, *SELECTING)
    for kind in way.kinds
)
"""Classes that go through their values once, and give no more than they are given."""
