"""What a fitted model does to one block: as scikit-learn would, or faster and equal."""

from __future__ import annotations

from typing import Any

from mlopt.identity import class_of
from mlopt.pipeline.fits.numbers.applying import APPLY_NUMBERS, IN_PANELS
from mlopt.pipeline.fits.text.table import APPLIES

_QUICK = {**APPLY_NUMBERS, **APPLIES}


def is_thrifty(kind: type, method: str) -> bool:
    """Whether all that it makes of a large block is what it gives."""
    return (kind, method) in IN_PANELS


def apply_fitted(model: Any, x: Any, method: str) -> Any:
    """``model.<method>(x)``."""
    if quick := _QUICK.get((class_of(model), method)):
        return quick(model, x)
    return getattr(model, method)(x)
