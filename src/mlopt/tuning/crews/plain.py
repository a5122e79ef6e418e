"""Estimators that may be fitted in any process."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator


def is_plain(thing: Any) -> bool:
    """Whether it is scikit-learn's and holds nothing that is not.

    What such an estimator is given is all that it reads, and what it returns all that it
    does. Functions and classes of anybody else may count their calls, or read what is in
    this process alone.
    """
    if isinstance(thing, BaseEstimator):
        mine = type(thing).__module__.partition(".")[0] == "sklearn"
        return mine and all(map(is_plain, vars(thing).values()))
    if isinstance(thing, list | tuple):
        return all(map(is_plain, thing))
    if isinstance(thing, dict):
        return all(map(is_plain, thing.values()))
    return not callable(thing) or isinstance(thing, type | np.ufunc)
