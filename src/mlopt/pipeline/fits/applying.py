"""What a fitted model does to one block: as scikit-learn would, or faster and equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

APPLIES: dict[tuple[type, str], Callable[[Any, Any], Any]] = {}
"""By class and method: a function of the fitted model and a block."""


def apply_fitted(model: Any, x: Any, method: str) -> Any:
    """``model.<method>(x)``."""
    if quick := APPLIES.get((type(model), method)):
        return quick(model, x)
    return getattr(model, method)(x)
