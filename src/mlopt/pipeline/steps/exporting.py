"""A pipeline without mlopt: the same fitted steps in scikit-learn's own classes."""

from __future__ import annotations

import copy
from typing import Any

import sklearn.pipeline
from sklearn.pipeline import FeatureUnion

from mlopt.pipeline.steps.copies import rebuilt
from mlopt.pipeline.steps.nested import is_pipeline, is_union

_OURS = ("memory_budget", "optimize", "plan_")


def exported(pipeline: Any) -> Any:
    """A copy in which pipelines and unions are scikit-learn's, wherever they are."""
    return rebuilt(pipeline, _plain)


def _plain(original: Any, attributes: dict[str, Any]) -> Any:
    kind = type(original)
    if is_pipeline(original):
        kind = sklearn.pipeline.Pipeline
        attributes = {n: value for n, value in attributes.items() if n not in _OURS}
    elif is_union(original):
        kind = FeatureUnion
    fresh = copy.copy(original) if kind is type(original) else kind([])
    fresh.__dict__.clear()
    fresh.__dict__.update(attributes)
    return fresh
