"""Estimators that may be fitted in any process."""

from __future__ import annotations

from typing import Any

import numpy as np

_VALUES = ("builtins", "numpy", "pandas", "scipy")
"""Whose objects are values, where they are no functions."""


def is_plain(thing: Any) -> bool:
    """Whether it is scikit-learn's and holds nothing that is not.

    What such an estimator is given is all that it reads, and what it returns all that it
    does, but for what it prints where it is verbose: that is read here. Functions and
    classes of anybody else may count their calls, or read what is in this process alone.
    """
    return _is_plain(thing, set())


def _is_plain(thing: Any, met: set[int]) -> bool:
    if isinstance(thing, type | np.ufunc) or id(thing) in met:
        return True
    met.add(id(thing))
    if isinstance(thing, list | tuple):
        return all(_is_plain(one, met) for one in thing)
    if isinstance(thing, dict):
        return all(_is_plain(one, met) for one in thing.values())
    home = type(thing).__module__.partition(".")[0]
    if home == "sklearn":
        held = getattr(thing, "__dict__", {})
        return not held.get("verbose") and _is_plain(held, met)
    return home in _VALUES and not callable(thing)
