"""Whether a linear model lies nearer to the minimum that both sides look for.

scikit-learn's solvers stop by `tol` of their own kind, or at `max_iter`; on columns of
unlike scale they are then far from the minimum, or in a flat valley along it. Such a
difference is documented, and is one only where mlopt's objective is not the larger one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

EQUAL = 1e-9
"""Relative to the objective: the `tol` that both solvers are given."""
ROUNDED = 1e-6
"""The same of float32, of which each margin is rounded."""


def _square(model: Any) -> float:
    return float(np.sum(np.square(model.coef_)))


def _logistic(model: Any, X: Any, y: Any) -> float:
    margins = np.asarray(model.decision_function(X), dtype=float)
    if margins.ndim == 1:
        margins = np.column_stack([np.zeros(len(margins)), margins])
    top = margins.max(axis=1, keepdims=True)
    total = top[:, 0] + np.log(np.exp(margins - top).sum(axis=1))
    own = margins[np.arange(len(margins)), np.searchsorted(model.classes_, y)]
    return 0.5 * _square(model) + float(model.C * np.sum(total - own))


def _signs(model: Any, y: Any) -> Any:
    if len(model.classes_) == 2:
        return np.where(np.asarray(y) == model.classes_[1], 1.0, -1.0)
    return np.where(np.asarray(y)[:, None] == model.classes_, 1.0, -1.0)


def _svc(model: Any, X: Any, y: Any) -> float:
    lost = np.maximum(0.0, 1.0 - _signs(model, y) * model.decision_function(X))
    norm = _square(model) + float(np.sum(np.square(model.intercept_)))
    return 0.5 * norm + float(model.C * np.sum(lost**2))


def _ridge(model: Any, X: Any, y: Any) -> float:
    return _squares(model, X, y) + float(model.alpha) * _square(model)


def _signed(model: Any, X: Any, y: Any) -> float:
    off = _signs(model, y) - model.decision_function(X)
    return float(np.sum(off**2)) + float(model.alpha) * _square(model)


def _squares(model: Any, X: Any, y: Any) -> float:
    return float(np.sum((y - model.predict(X)) ** 2))


OBJECTIVES: dict[str, Callable[[Any, Any, Any], float]] = {
    "logistic": _logistic,
    "svc": _svc,
    "ridge": _ridge,
    "squares": _squares,
    "ridge classifier": _signed,
}
"""By the names of last steps that are solved iteratively."""


def nearer(last: str, ours: Any, theirs: Any, X: Any, y: Any) -> bool:
    """Whether mlopt's objective on rows X, y is not above scikit-learn's."""
    if last not in OBJECTIVES or set(vars(ours)) ^ set(vars(theirs)) - {"plan_"}:
        return False
    rows = X if sp.issparse(X) else np.asarray(X)
    mine, others = (OBJECTIVES[last](model, rows, y) for model in (ours, theirs))
    near = ROUNDED if ours.coef_.dtype == np.float32 else EQUAL
    return bool(mine <= others + near * abs(others))
