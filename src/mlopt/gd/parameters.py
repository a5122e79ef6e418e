"""Checks of estimators' parameters: what must hold, what was given, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from mlopt.errors import InputError


def check_positive(
    name: str, value: Any, *, zero: bool = False, infinite: bool = False
) -> float:
    """A number above 0, or from 0 if ``zero``; finite unless ``infinite``."""
    real = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    if real and (value > 0 or (zero and value == 0)) and (infinite or np.isfinite(value)):
        return float(value)
    what = "at least 0" if zero else "positive"
    raise InputError(f"`{name}` must be a finite number, {what}; got {value!r}.")


def check_count(name: str, value: Any) -> int:
    """An integer of at least 1."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1:
        return int(value)
    raise InputError(f"`{name}` must be an integer of at least 1, got {value!r}.")


def check_choice(name: str, value: Any, allowed: Sequence[Any]) -> Any:
    """One of the values that are implemented."""
    if any(value is one or (type(value) is type(one) and value == one) for one in allowed):
        return value
    known = ", ".join(repr(one) for one in allowed)
    raise InputError(f"`{name}` must be one of {known}; got {value!r}.")
