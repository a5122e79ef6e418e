"""Which classes are pipelines: taken apart wherever they occur."""

from __future__ import annotations

from typing import Any

import sklearn.pipeline

PIPELINES: set[type] = {sklearn.pipeline.Pipeline}
"""`mlopt.Pipeline` is added where it is defined, which needs the modules that ask here."""


def is_pipeline(step: Any) -> bool:
    """Whether a step is a pipeline itself; a subclass may do anything, and is not."""
    return type(step) in PIPELINES


def is_simple(pipeline: Any) -> bool:
    """Whether a pipeline is no more than its steps."""
    return pipeline.memory is None and not getattr(pipeline, "transform_input", None)
