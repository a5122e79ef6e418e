"""Which fitted steps treat each row by itself, with all that is within them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import BernoulliRBM
from sklearn.preprocessing import TargetEncoder

from mlopt.identity import class_of, is_known
from mlopt.pipeline.fits.registry import declared
from mlopt.pipeline.steps.copies import is_estimator
from mlopt.pipeline.steps.kinds import is_row_wise
from mlopt.pipeline.steps.nested import does_nothing, is_pipeline, parts_of

_FITTED: tuple[type, ...] = (TargetEncoder,)
"""Transformers that treat each row by itself once they are fitted, of which `fit_transform`
makes something else."""

_BY_CHANCE = ("stratified", "uniform")
"""Strategies of `DummyClassifier` that draw once for all rows."""

_DRAWN = (BernoulliRBM, "score_samples")
"""A method that draws a column of each row, once for all."""


def goes_by_rows(step: Any, method: str = "transform", *, fitted: bool = True) -> bool:
    """Whether what a fitted step makes of a row is known to depend on this row alone.

    Of one that is not ``fitted`` yet, also what its `fit_transform` makes.
    """
    if does_nothing(step) or isinstance(step, str):
        return True
    if is_pipeline(step):
        *before, last = (inner for _, inner in step.steps)
        alone = all(goes_by_rows(inner, fitted=fitted) for inner in before)
        return alone and goes_by_rows(last, method, fitted=fitted)
    if (class_of(step), method) == _DRAWN:
        return False
    if method != "transform":
        return _predicts_by_rows(step)
    if (parts := parts_of(step, fitted=fitted)) is not None:
        return all(goes_by_rows(inner, fitted=fitted) for _, inner in parts)
    if isinstance(step, FrozenEstimator):
        return goes_by_rows(step.estimator)
    return is_row_wise(step) or (fitted and class_of(step) in _FITTED)


def gives_lists(model: Any, method: str) -> bool:
    """Whether probabilities come as a list, an array for each target."""
    kinds = getattr(model, "classes_", None)
    return method.endswith("_proba") and isinstance(kinds, list)


def _predicts_by_rows(model: Any) -> bool:
    kind = class_of(model)
    if (said := declared(kind)) is not None:
        return said.row_wise
    if not is_known(kind) or getattr(model, "strategy", "") in _BY_CHANCE:
        return False
    return all(map(_is_by_rows, model.get_params(deep=False).values()))


def _is_by_rows(value: Any) -> bool:
    """Whether a parameter of a model leaves each row to itself, as far as is known."""
    if isinstance(value, list | tuple):
        return all(map(_is_by_rows, value))
    if is_estimator(value):
        return goes_by_rows(value, "predict") or goes_by_rows(value)
    if not callable(value) or isinstance(value, np.ufunc | type):
        return True
    said = declared(value)
    return said is not None and said.row_wise
