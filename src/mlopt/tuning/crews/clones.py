"""Clones of estimators that no other fit has at the same time."""

from __future__ import annotations

from copy import copy
from typing import Any

from sklearn.base import BaseEstimator, clone


def clone_apart(estimator: Any) -> Any:
    """As `sklearn.base.clone`, and a copy of what clones itself as itself.

    As a `FrozenEstimator` does: scikit-learn's meta-estimators leave marks on what they
    call, and take them away, which fits on other threads would see.
    """
    fresh = clone(estimator)
    if fresh is estimator:
        return copy(estimator)
    if hasattr(fresh, "get_params"):
        inside = fresh.get_params().items()
        shared = {name: copy(value) for name, value in inside if _stays(value)}
        if shared:
            fresh.set_params(**shared)
    return fresh


def _stays(value: Any) -> bool:
    """Whether a clone of it is the object itself, though it is an estimator."""
    itself = getattr(type(value), "__sklearn_clone__", None)
    if itself is None or itself is BaseEstimator.__sklearn_clone__:
        return False
    return bool(itself(value) is value)
