"""Fitted models put back into the pipeline they belong to, as scikit-learn has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline

Models = Mapping[str, Any]


def assemble(path: str, estimator: Any, models: Models, example: Any) -> Any:
    """The fitted counterpart of one step.

    Parameters
    ----------
    path : str
        Of the step: the names of the steps around it and its own, joined by "/".
    estimator : estimator, "passthrough" or "drop"
    models : mapping of path to fitted model
    example : callable
        From the path of a `ColumnTransformer` to some rows of what it is given.
    """
    if path in models:
        return models[path]
    if type(estimator) is Pipeline:
        steps = [
            (name, assemble(f"{path}/{name}", step, models, example))
            for name, step in estimator.steps
        ]
        return clone(estimator).set_params(steps=steps)
    if type(estimator) is FeatureUnion:
        return _union(path, estimator, models, example)
    if type(estimator) is ColumnTransformer:
        return _by_columns(path, estimator, models, example)
    return estimator


def _union(path: str, union: FeatureUnion, models: Models, example: Any) -> FeatureUnion:
    parts = [
        (name, assemble(f"{path}/{name}", part, models, example))
        for name, part in union.transformer_list
    ]
    fitted = clone(union)
    fitted.transformer_list = parts
    return fitted


def _by_columns(
    path: str, whole: ColumnTransformer, models: Models, example: Any
) -> ColumnTransformer:
    """scikit-learn's own bookkeeping on a few rows, around models that stay as they are."""
    fitted = clone(whole)
    frozen = {}

    def freeze(name: str, part: Any) -> Any:
        if part in ("drop", "passthrough"):
            return part
        model = assemble(f"{path}/{name}", part, models, example)
        frozen[name] = model
        return FrozenEstimator(model)

    original = whole.transformers
    fitted.transformers = [
        (name, freeze(name, part), columns) for name, part, columns in original
    ]
    fitted.remainder = freeze("remainder", whole.remainder)
    fitted.fit(example(path))
    fitted.transformers_ = [
        (name, frozen.get(name, part), columns) if isinstance(part, FrozenEstimator) else
        (name, part, columns)
        for name, part, columns in fitted.transformers_
    ]  # fmt: skip
    fitted.transformers, fitted.remainder = original, whole.remainder
    return fitted
