"""Pipelines from parts: `make_pipeline`, `gather`, `optimize`."""

from __future__ import annotations

import copy
from typing import Any

import sklearn.pipeline
from sklearn.pipeline import FeatureUnion, _name_estimators

from mlopt.errors import InputError
from mlopt.pipeline.estimator import Pipeline
from mlopt.pipeline.steps.nested import UNIONS, is_pipeline
from mlopt.rows.source import is_dask


class Gathered(FeatureUnion):
    """A `FeatureUnion` that is planned when it is fitted by itself, too."""

    _plans = True

    def fit(self, X: Any, y: Any = None, **params: Any) -> Gathered:
        """Fit the parts; what they have in common once."""
        if params or not self._plans:
            super().fit(X, y, **params)
        else:
            self._planned("fit", X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """`fit`, and the columns of the parts side by side."""
        if params or not self._plans:
            return super().fit_transform(X, y, **params)
        return self._planned("fit_transform", X, y)

    def transform(self, X: Any, **params: Any) -> Any:
        """The columns of the parts side by side; lazily for a Dask collection."""
        if is_dask(X):
            return Pipeline([("gather", self)]).transform(X)
        return super().transform(X, **params)

    def _planned(self, method: str, X: Any, y: Any) -> Any:
        """What a pipeline of nothing else gives, with the same parts: where no plan holds,
        it comes back to its step."""
        twin = copy.copy(self)
        twin._plans = False
        found = getattr(Pipeline([("gather", twin)]), method)(X, y)
        self.transformer_list: Any = twin.transformer_list
        return found


for _method in ("fit_transform", "transform"):
    # The parts give what `set_output` asks for: scikit-learn would make one frame of all
    # rows, in this process.
    setattr(Gathered, _method, vars(Gathered)[_method].__wrapped__)
UNIONS.add(Gathered)


def make_pipeline(*steps: Any, **settings: Any) -> Pipeline:
    """A pipeline whose steps are named after their classes.

    Parameters
    ----------
    *steps : estimators
    **settings
        Of `Pipeline`: ``memory_budget``, ``optimize``, ``memory``, ``verbose``,
        ``transform_input``.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.preprocessing import StandardScaler
    >>> list(make_pipeline(StandardScaler(), Ridge()).named_steps)
    ['standardscaler', 'ridge']
    """
    return Pipeline(_name_estimators(steps), **settings)


def gather(*parts: Any, weights: Any = None) -> Gathered:
    """What several parts make of the same input, side by side (KeystoneML's gather).

    Parameters
    ----------
    *parts : transformers, pipelines, "drop" or "passthrough"
        At least one. What they have in common is done once.
    weights : sequence of float, optional
        What each part's columns are multiplied by.

    Returns
    -------
    FeatureUnion
        With parts named after their classes: a step like any other, and with `fit` and
        `transform` of its own.

    Raises
    ------
    InputError
        When there is no part, or not one weight a part.
    """
    if not parts:
        raise InputError("`gather` must have at least one part, got none.")
    named = _name_estimators(parts)
    if weights is None:
        return Gathered(named)
    if len(weights) != len(parts):
        raise InputError(
            f"`weights` must have one number for each of {len(parts)} parts, got "
            f"{len(weights)}."
        )
    factors = {name: weight for (name, _), weight in zip(named, weights, strict=True)}
    return Gathered(named, transformer_weights=factors)


def optimize(estimator: Any, **settings: Any) -> Pipeline:
    """The same as a pipeline that is planned; ``optimize(optimize(p)) is optimize(p)``.

    Parameters
    ----------
    estimator : Pipeline, ColumnTransformer, FeatureUnion, or any other estimator
        The steps of a pipeline, or one step named after its class. Steps are those of the
        original, not copies: what is fitted here is fitted there.
    **settings
        ``memory_budget`` and ``optimize`` of `Pipeline`.

    Raises
    ------
    InputError
        When it cannot be fitted.
    """
    if isinstance(estimator, Pipeline):
        return estimator.set_params(**settings) if settings else estimator
    if isinstance(estimator, sklearn.pipeline.Pipeline) and is_pipeline(estimator):
        return Pipeline(
            list(estimator.steps),
            memory=estimator.memory,
            verbose=estimator.verbose,
            transform_input=estimator.transform_input,
            **settings,
        )
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise InputError(
            "`optimize` must be given an estimator, such as a scikit-learn Pipeline, "
            f"got {estimator!r}."
        )
    return make_pipeline(estimator, **settings)
