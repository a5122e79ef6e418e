"""What kind of step a step is. Pipelines and unions are taken apart wherever they occur."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.pipeline
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import has_fit_parameter

from mlopt.identity import class_of

PIPELINES: set[type] = {sklearn.pipeline.Pipeline}
"""`mlopt.Pipeline` is added where it is defined, which needs the modules that ask here."""
UNIONS: set[type] = {sklearn.pipeline.FeatureUnion}
"""Unions of columns; `gather` adds its own."""


def is_union(step: Any) -> bool:
    """Whether a step puts columns of its parts side by side."""
    return class_of(step) in UNIONS


def is_pipeline(step: Any) -> bool:
    """Whether a step is a pipeline itself; a subclass may do anything, and is not."""
    return class_of(step) in PIPELINES


def is_simple(pipeline: Any) -> bool:
    """Whether a pipeline is no more than its steps."""
    return pipeline.memory is None and not getattr(pipeline, "transform_input", None)


def parts_of(step: Any, *, fitted: bool = False) -> list[tuple[str, Any]] | None:
    """The steps within a pipeline, a union or columns, by name; None of any other step.

    Of columns that are ``fitted`` those that were fitted, if they were: a model that is may
    hold others that are not.
    """
    if is_pipeline(step):
        return list(step.steps)
    if is_union(step):
        return list(step.transformer_list)
    if class_of(step) is not ColumnTransformer:
        return None
    if fitted and hasattr(step, "transformers_"):
        return [(name, one) for name, one, _ in step.transformers_]
    return [(name, one) for name, one, _ in step.transformers] + [
        ("remainder", step.remainder)
    ]


def gives_frames(step: Any, given: bool) -> bool:
    """Whether what a step gives, and all that is joined within it, are surely frames.

    Each is asked: `set_output` does not reach the steps behind one that has no such method.

    Parameters
    ----------
    step : estimator, str or None
    given : bool
        Whether it is given a frame of that kind, with names: what passes is one then.
    """
    if isinstance(step, str) or step is None:
        return given or step == "drop"
    if is_pipeline(step):
        inner = working(step)
        return gives_frames(inner[-1], given) if inner else given
    if frames_of(step) == "default":
        return False
    if (parts := parts_of(step)) is not None:
        return all(gives_frames(one, given) for _, one in parts)
    # What a function makes is wrapped only if it is told how to name it.
    return hasattr(step, "set_output") and hasattr(step, "get_feature_names_out")


def frames_of(estimator: Any) -> str:
    """Of what kind of frame the columns are to be; "default" for arrays."""
    return str(_get_output_config("transform", estimator)["dense"])


def cannot_name(step: Any) -> bool:
    """Whether a step has `get_feature_names_out`, and a step within it has not.

    A part without it, directly in a union of frames, keeps the names of its frame.
    """
    if is_pipeline(step):
        inner = working(step)
        return any(not hasattr(one, "get_feature_names_out") for one in inner) or any(
            map(cannot_name, inner)
        )
    if isinstance(step, ColumnTransformer):
        return any(cannot_name(one) for _, one, _ in step.transformers)
    return is_union(step) and any(cannot_name(one) for _, one in step.transformer_list)


def working(pipeline: Any) -> list[Any]:
    """The steps of a pipeline that do something."""
    return [step for _, step in pipeline.steps if not does_nothing(step)]


def does_nothing(step: Any) -> bool:
    """Whether a step does nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def classifies(estimator: Any) -> bool:
    """Whether an estimator says that it is a classifier; one without tags says nothing."""
    try:
        return bool(is_classifier(estimator))
    except AttributeError:
        return False


def can_transform(step: Any) -> bool:
    """Whether steps may follow a step."""
    fits = hasattr(step, "fit") or hasattr(step, "fit_transform")
    return fits and hasattr(step, "transform")


def row_weights(end: tuple[str, Any], params: dict[str, dict[str, Any]]) -> Any:
    """Weights of the rows for the last step, taken out of its other arguments."""
    step, last = end
    weight = params.get(step, {}).get("sample_weight")
    if weight is None or np.ndim(weight) != 1:
        return None
    if not has_fit_parameter(last, "sample_weight"):
        return None  # the step itself will say so
    return params[step].pop("sample_weight")
