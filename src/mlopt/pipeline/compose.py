"""Pipelines from parts: `make_pipeline`, `gather`, `optimize`."""

from __future__ import annotations

from typing import Any

import sklearn.pipeline
from sklearn.pipeline import FeatureUnion, _name_estimators

from mlopt.errors import InputError
from mlopt.pipeline.estimator import Pipeline
from mlopt.pipeline.nested import is_pipeline


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


def gather(*parts: Any, weights: Any = None) -> FeatureUnion:
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
        With parts named after their classes: a step like any other, and itself fitted with
        ``mlopt.optimize(gather(...)).fit(X)``.

    Raises
    ------
    InputError
        When there is no part, or not one weight a part.
    """
    if not parts:
        raise InputError("`gather` must have at least one part, got none.")
    named = _name_estimators(parts)
    if weights is None:
        return FeatureUnion(named)
    if len(weights) != len(parts):
        raise InputError(
            f"`weights` must have one number for each of {len(parts)} parts, got "
            f"{len(weights)}."
        )
    factors = {name: weight for (name, _), weight in zip(named, weights, strict=True)}
    return FeatureUnion(named, transformer_weights=factors)


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
