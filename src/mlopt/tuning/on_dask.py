"""What a search that was fitted says of a Dask collection: block by block, by a plan.

The model that was found stays scikit-learn's own, which would load a collection whole, or
look for columns of a frame that it is not.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from typing import Any

from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils.metaestimators import available_if

from mlopt.pipeline.compose import optimize
from mlopt.rows.source import collected, collected_together, held, is_dask

_SCORERS = "sklearn.metrics._scorer"
"""Where scikit-learn keeps its own, which ask a model for nothing but answers."""


def _planned(name: str) -> Any:
    """The method of scikit-learn's searches, lazy for a Dask collection."""

    def method(self: Any, X: Any) -> Any:
        return getattr(super(OnDask, self._for(X, optimize)), name)(X)

    def there(self: Any) -> bool:
        try:
            return all(getattr(super(OnDask, one), name) for one in _each(self))
        except AttributeError as error:
            raise error.__cause__ or error from None  # why it is not

    method.__name__, method.__doc__ = name, getattr(BaseSearchCV, name).__doc__
    method.__qualname__ = f"{BaseSearchCV.__name__}.{name}"
    return available_if(there)(method)


def _each(search: Any) -> list[Any]:
    """The search; before it has a model, as if each family were its only one."""
    if hasattr(search, "best_estimator_") or not isinstance(search.estimator, Mapping):
        return [search]
    return [over(search, estimator) for estimator, _ in search.estimator.values()]


def over(search: Any, estimator: Any) -> Any:
    """The search as one over this estimator alone."""
    one = copy.copy(search)
    one.estimator = estimator
    return one


class OnDask(BaseSearchCV):
    """A search whose model is planned where rows are Dask's."""

    predict = _planned("predict")
    predict_proba = _planned("predict_proba")
    predict_log_proba = _planned("predict_log_proba")
    decision_function = _planned("decision_function")
    score_samples = _planned("score_samples")
    transform = _planned("transform")
    inverse_transform = _planned("inverse_transform")

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """The score of the best model: of a Dask collection its predictions are computed,
        and nothing else of it gathered, unless a function of one's own is the scorer."""
        given = held({"X": X, "y": y, **params}, self.client)
        X, y = given.pop("X"), given.pop("y")
        known = getattr(self, "scorer_", None)
        scorers = known.values() if isinstance(known, dict) else [known]
        if any(type(one).__module__ != _SCORERS for one in scorers if one is not None):
            X, y, *values = collected_together(X, y, *given.values())
        else:
            y, *values = collected_together(y, *given.values())
        given = dict(zip(given, values, strict=True))
        found: float = super(OnDask, self._for(X, _Computed)).score(X, y, **given)
        return found

    def _for(self, X: Any, how: Callable[[Any], Any]) -> Any:
        """This search, with its model as it reads a Dask collection."""
        best = getattr(self, "best_estimator_", None)
        if not is_dask(X) or best is None or not optimize(best).__sklearn_is_fitted__():
            return self
        other = copy.copy(self)
        other.best_estimator_ = how(best)
        return other


class _Computed:
    """What scikit-learn's scorers are given: a planned model that answers at once."""

    def __init__(self, fitted: Any) -> None:
        self._fitted, self._planned = fitted, optimize(fitted)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._fitted, name)
        answers = name in vars(OnDask) and not name.startswith("_")
        return _computed(getattr(self._planned, name)) if answers else found

    def __sklearn_tags__(self) -> Any:
        return self._fitted.__sklearn_tags__()


def _computed(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def answer(*given: Any, **params: Any) -> Any:
        return collected(method(*given, **params))

    return answer
