"""Which classes are pipelines and unions: taken apart wherever they occur."""

from __future__ import annotations

from typing import Any

import sklearn.pipeline

PIPELINES: set[type] = {sklearn.pipeline.Pipeline}
"""`mlopt.Pipeline` is added where it is defined, which needs the modules that ask here."""
UNIONS: set[type] = {sklearn.pipeline.FeatureUnion}
"""Unions of columns; `gather` adds its own."""


def is_union(step: Any) -> bool:
    """Whether a step puts columns of its parts side by side."""
    return type(step) in UNIONS


def is_pipeline(step: Any) -> bool:
    """Whether a step is a pipeline itself; a subclass may do anything, and is not."""
    return type(step) in PIPELINES


def is_simple(pipeline: Any) -> bool:
    """Whether a pipeline is no more than its steps."""
    return pipeline.memory is None and not getattr(pipeline, "transform_input", None)
