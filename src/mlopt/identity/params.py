"""Parameters of estimators; a class that is known is asked for their names once."""

from __future__ import annotations

from functools import cache
from typing import Any

from sklearn.base import BaseEstimator

from mlopt.identity.code import class_of, is_known


def parameters(estimator: Any) -> dict[str, Any]:
    """What ``estimator.get_params(deep=False)`` gives.

    scikit-learn reads a signature whenever it is asked, which takes longer than all else.

    Examples
    --------
    >>> from sklearn.preprocessing import Binarizer
    >>> from mlopt.identity import parameters
    >>> parameters(Binarizer(threshold=2.0))
    {'copy': True, 'threshold': 2.0}
    """
    kind: Any = class_of(estimator)
    own = getattr(kind, "get_params", None) is BaseEstimator.get_params
    if not own or not is_known(kind):
        return dict(estimator.get_params(deep=False))
    return {name: getattr(estimator, name) for name in _names(kind)}


@cache
def _names(kind: type[BaseEstimator]) -> tuple[str, ...]:
    return tuple(kind._get_param_names())
