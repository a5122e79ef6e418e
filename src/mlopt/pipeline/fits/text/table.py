"""One-pass fits of vectorizers of text, and their faster ``transform``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfVectorizer,
)

from mlopt.pipeline.fits.base import OnePass
from mlopt.pipeline.fits.text.counting import (
    Counted,
    CountTerms,
    CountTfidf,
    apply_counts,
    columns_from,
)
from mlopt.pipeline.fits.text.frequencies import InverseFrequencies
from mlopt.pipeline.fits.text.hashing import apply_hashing

TEXT: tuple[OnePass, ...] = (CountTerms(), CountTfidf(), InverseFrequencies())
"""Every one of them."""

LIGHT = frozenset(InverseFrequencies.kinds)
"""Classes that go through their values once, as `numbers.table.LIGHT`."""


def _transform(fitted: Any, documents: Any) -> Any:
    if isinstance(documents, Counted):
        return columns_from(documents, fitted)
    known = np.dtype(fitted.dtype).kind in "fi" and np.dtype(fitted.dtype).itemsize >= 4
    return apply_counts(fitted, documents) if known else fitted.transform(documents)


APPLIES: dict[tuple[type, str], Callable[[Any, Any], Any]] = {
    (CountVectorizer, "transform"): _transform,
    (TfidfVectorizer, "transform"): _transform,
    (HashingVectorizer, "transform"): apply_hashing,
}
"""By class and method: a function of the fitted model and a block."""
