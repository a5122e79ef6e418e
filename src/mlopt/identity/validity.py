"""Whether parameters are those that scikit-learn would take; a class is read once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import make_constraint

from mlopt.identity.code import is_known
from mlopt.identity.params import parameters

CONSTANT = (bool, int, float, str, type(None))
"""Types of values that never change."""


def is_valid(estimator: Any) -> bool:
    """Whether scikit-learn's ``_validate_params`` would find nothing.

    That makes its questions anew whenever it is asked. A class that asks otherwise is never
    valid here: only it can tell.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from mlopt.identity import is_valid
    >>> is_valid(LogisticRegression(C=2.0)), is_valid(LogisticRegression(C=-1.0))
    (True, False)
    """
    kind: Any = type(estimator)
    own = getattr(kind, "_validate_params", None) is BaseEstimator._validate_params
    if not own or "_parameter_constraints" in vars(estimator):
        return False
    questions = _kept(kind) if is_known(kind) else _questions(kind)
    return all(
        (_satisfied if type(value) in CONSTANT else _asked)(questions[name], value)
        for name, value in parameters(estimator).items()
        if name in questions
    )


def _questions(kind: Any) -> Mapping[str, tuple[Any, ...]]:
    return {
        name: tuple(map(make_constraint, given))
        for name, given in kind._parameter_constraints.items()
        if given != "no_validation"
    }


_kept = cache(_questions)


def _asked(questions: tuple[Any, ...], value: Any) -> bool:
    return any(one.is_satisfied_by(value) for one in questions)


_satisfied = lru_cache(maxsize=1024, typed=True)(_asked)
"""Most parameters are those of the estimator before."""
