"""Whether a linear model lies nearer to the minimum that both sides look for.

scikit-learn's solvers stop by `tol` of their own kind, or at `max_iter`; on columns of
unlike scale they are then far from the minimum, or in a flat valley along it. Such a
difference is documented, and is one only where mlopt's objective is not the larger one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from tests.judges.compare import inside

EQUAL = 1e-9
"""Relative to the objective: the `tol` that both solvers are given."""


def _square(model: Any) -> float:
    return float(np.sum(np.square(model.coef_)))


def _logistic(model: Any, X: Any, y: Any, weight: Any = 1.0) -> float:
    margins = np.asarray(model.decision_function(X), dtype=float)
    if margins.ndim == 1:
        margins = np.column_stack([np.zeros(len(margins)), margins])
    top = margins.max(axis=1, keepdims=True)
    total = top[:, 0] + np.log(np.exp(margins - top).sum(axis=1))
    own = margins[np.arange(len(margins)), np.searchsorted(model.classes_, y)]
    return 0.5 * _square(model) + float(model.C * np.sum(weight * (total - own)))


def _signs(model: Any, y: Any) -> Any:
    if len(model.classes_) == 2:
        return np.where(np.asarray(y) == model.classes_[1], 1.0, -1.0)
    return np.where(np.asarray(y)[:, None] == model.classes_, 1.0, -1.0)


def _svc(model: Any, X: Any, y: Any, weight: Any = 1.0) -> float:
    lost = np.maximum(0.0, 1.0 - _signs(model, y) * model.decision_function(X))
    norm = _square(model) + float(np.sum(np.square(model.intercept_)))
    each = np.sum(lost**2, axis=tuple(range(1, lost.ndim)))
    return 0.5 * norm + float(model.C * np.sum(weight * each))


def _ridge(model: Any, X: Any, y: Any) -> float:
    return _squares(model, X, y) + float(model.alpha) * _square(model)


def _signed(model: Any, X: Any, y: Any) -> float:
    off = _signs(model, y) - model.decision_function(X)
    return float(np.sum(off**2)) + float(model.alpha) * _square(model)


def _squares(model: Any, X: Any, y: Any) -> float:
    return float(np.sum((y - model.predict(X)) ** 2))


OBJECTIVES: dict[str, Callable[..., float]] = {
    "logistic": _logistic,
    "svc": _svc,
    "ridge": _ridge,
    "squares": _squares,
    "ridge classifier": _signed,
}
"""By the names of last steps that are solved iteratively."""


def nearer(last: str, ours: Any, theirs: Any, X: Any, y: Any, weight: Any = None) -> bool:
    """Whether mlopt's objective on rows X, y is not above scikit-learn's.

    With weights of the rows, of a "logistic" or a "svc" only.
    """
    if last not in OBJECTIVES or set(vars(ours)) ^ (set(vars(theirs)) - {"plan_"}):
        return False
    # In doubles: what is asked is where the model lies, not how its margins are rounded.
    rows = (X if sp.issparse(X) else np.asarray(X)).astype(np.float64)
    weights = () if weight is None else (weight,)
    mine, others = (
        OBJECTIVES[last](_in_doubles(model), rows, y, *weights) for model in (ours, theirs)
    )
    return bool(mine <= others + resolution(ours.coef_.dtype, len(y)) * abs(others))


def resolution(dtype: Any, n: int) -> float:
    """How far objectives lie apart, relatively, that a solver of a dtype tells apart.

    A sum of n losses, added by pairs, is known to that many roundings; doubles are solved
    to `tol`, which is more.
    """
    return max(EQUAL, float(np.finfo(dtype).eps) * max(1.0, float(np.log2(n))))


def _in_doubles(model: Any) -> Any:
    same = copy(model)
    same.coef_ = np.asarray(model.coef_, dtype=np.float64)
    same.intercept_ = np.asarray(model.intercept_, dtype=np.float64)
    return same


def is_chosen_alike(
    estimators: tuple[Any, Any], path: str, seen: Mapping[int, Any], y: Any
) -> bool:
    """Whether the models of two `SelectFromModel` lie in the same valley, ours not above.

    Parameters
    ----------
    estimators : tuple of Pipeline
        mlopt's and scikit-learn's.
    path : str
        Numbers of steps, such as "[1][0]".
    seen : mapping
        Rows that each transformer of scikit-learn's was fitted on, by its `id`.
    y : array-like of shape (n,)
    """
    ours, theirs = _at(estimators, path)
    if id(theirs) not in seen:
        return False
    rows = seen[id(theirs)]
    return nearer("logistic", ours.estimator_, theirs.estimator_, rows, y)


def chooses_alike(estimators: tuple[Any, Any], path: str) -> bool:
    """Whether two `SelectFromModel` leave the same columns to what is behind them."""
    ours, theirs = (one.get_support() for one in _at(estimators, path))
    return np.array_equal(ours, theirs)


def _at(estimators: tuple[Any, Any], path: str) -> tuple[Any, Any]:
    ours, theirs = estimators
    for number in map(int, re.findall(r"\d+", path)):
        ours, theirs = ((inside(one) or [])[number] for one in (ours, theirs))
    return ours, theirs
