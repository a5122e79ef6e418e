"""A fitted pipeline applied to many rows: block by block, where steps go row by row."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from mlopt.cluster import executor
from mlopt.errors import InputError
from mlopt.identity import is_known
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.blocks.cut import gathered, usable
from mlopt.pipeline.blocks.panels import Chain, InPanels, array_bytes
from mlopt.pipeline.fits.applying import apply_fitted
from mlopt.pipeline.fits.registry import declared
from mlopt.pipeline.steps.copies import is_estimator
from mlopt.pipeline.steps.kinds import is_row_wise
from mlopt.pipeline.steps.nested import does_nothing, is_pipeline, is_union, working
from mlopt.resources.probe import memory_limit
from mlopt.rows.block import boundaries, check_unmasked
from mlopt.rows.source import is_dask

_MANY, _MANY_IMAGES = 4096, 256
_BY_CHANCE = ("stratified", "uniform")
"""Strategies of `DummyClassifier` that draw once for all rows."""
_PARALLEL = 8
"""Blocks of images, of which steps make much more than they are given."""


def apply_pipeline(pipeline: Any, method: str, X: Any) -> Any:
    """``pipeline.<method>(X)`` block by block.

    Returns
    -------
    The result; lazily, as a dask array, for a Dask collection. `NotImplemented` where it
    must be done in one piece: few rows, or steps that may not go row by row.
    """
    check_is_fitted(pipeline)
    steps = [step for _, step in pipeline.steps]
    blind = next((s for s in steps[:-1] if not goes_by_rows(s)), None)
    last = goes_by_rows if method == "transform" else predicts_by_rows
    if blind is None and not last(steps[-1]):
        blind = steps[-1]
    if blind is not None:
        if is_dask(X):
            return _gathered(pipeline, method, X, blind)
        return NotImplemented
    if is_dask(X):
        return _lazily(pipeline, method, X)
    check_unmasked(X, "X")
    if not hasattr(X, "__len__") and not hasattr(X, "shape"):
        return NotImplemented
    n, images = tables.count_rows(X), getattr(X, "ndim", 2) > 2
    if n < (_MANY_IMAGES if images else _MANY):
        return NotImplemented
    X = usable(X)
    edges = boundaries(n, tables.count_bytes(X), -(-n // _PARALLEL) if images else None)
    with closing(executor()) as where:
        if getattr(where, "client", None) is not None:
            return NotImplemented
        settings = get_config()  # of this thread; blocks are worked on in others
        parts = where.map(
            lambda edge: _with(settings, pipeline, method, tables.row_range(X, *edge)),
            list(pairwise(edges)),
        )
    return tables.stack(parts, pipeline.steps[-1][0])


def goes_by_rows(step: Any) -> bool:
    """Whether a fitted step, with all steps within, treats each row by itself."""
    if step is None or isinstance(step, str):
        return True
    if is_pipeline(step):
        return all(goes_by_rows(inner) for _, inner in step.steps)
    if is_union(step):
        return all(goes_by_rows(inner) for _, inner in step.transformer_list)
    if type(step) is ColumnTransformer:
        return all(goes_by_rows(inner) for _, inner, _ in step.transformers_)
    if isinstance(step, FrozenEstimator):
        return goes_by_rows(step.estimator)
    return is_row_wise(step)


def predicts_by_rows(model: Any) -> bool:
    """Whether a fitted last step is known, or declared, to judge each row by itself."""
    if does_nothing(model):
        return True
    if is_pipeline(model):
        *before, last = (step for _, step in model.steps)
        return all(map(goes_by_rows, before)) and predicts_by_rows(last)
    if (said := declared(type(model))) is not None:
        return said.row_wise
    if not is_known(type(model)) or getattr(model, "strategy", "") in _BY_CHANCE:
        return False
    return all(map(_is_by_rows, model.get_params(deep=False).values()))


def _is_by_rows(value: Any) -> bool:
    """Whether a parameter of a model leaves each row to itself, as far as is known."""
    if isinstance(value, list | tuple):
        return all(map(_is_by_rows, value))
    if is_estimator(value):
        return predicts_by_rows(value) or goes_by_rows(value)
    if not callable(value) or isinstance(value, np.ufunc | type):
        return True
    said = declared(value)
    return said is not None and said.row_wise


def apply_steps(pipeline: Any, method: str, X: Any, seen: list[int] | None = None) -> Any:
    """The steps one after the other, each in its fastest way.

    The bytes of arrays that are made on the way are added to ``seen``.
    """
    steps = working(pipeline)
    before = steps if method == "transform" else steps[:-1]
    for step in before:
        inside = is_pipeline(step)
        X = apply_steps(step, "transform", X, seen) if inside else _transformed(step, X)
        if seen is not None:
            seen.append(array_bytes(X))
    return X if method == "transform" else apply_fitted(steps[-1], X, method)


def _transformed(step: Any, X: Any) -> Any:
    return apply_fitted(step, X, "transform")


def _lazily(pipeline: Any, method: str, X: Any) -> Any:
    """One delayed call a block; a few rows tell what comes out."""
    import dask
    import dask.array as da

    if isinstance(X, da.Array):
        X = X.rechunk({1: -1}) if X.ndim > 1 else X
        blocks = list(X.to_delayed().ravel())
        lengths = list(X.chunks[0])
    else:
        blocks, lengths = list(X.to_delayed()), [np.nan] * X.npartitions
    example = apply_steps(pipeline, method, _some_rows(blocks))
    none = example[:0]
    model = dask.delayed(pipeline.export() if hasattr(pipeline, "export") else pipeline)
    call = dask.delayed(_with, pure=True)
    starts = [None if np.isnan(end) else int(end) for end in np.cumsum([0, *lengths[:-1]])]
    calls = [
        call(get_config(), model, method, block, none, start)
        for block, start in zip(blocks, starts, strict=True)
    ]
    if tables.kind_of(example) == "DataFrame" and hasattr(example, "iloc"):
        import dask.dataframe as dd

        return dd.from_delayed(calls, meta=none, verify_meta=False)
    if hasattr(example, "columns"):  # frames that Dask does not have
        return _gathered(pipeline, method, X, pipeline.steps[-1][1])
    rest = tuple(np.shape(example)[1:])
    arrays = [
        da.from_delayed(one, shape=(length, *rest), meta=none)
        for one, length in zip(calls, lengths, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def _some_rows(blocks: Sequence[Any]) -> Any:
    """Of the first block that has any."""
    import dask

    few: Any = None
    for block in blocks:
        few = dask.delayed(_few)(block).compute()
        if tables.count_rows(few):
            break
    return few


def _few(block: Any) -> Any:
    return tables.row_range(block, 0, min(4, tables.count_rows(block)))


def _with(
    settings: dict[str, Any],
    model: Any,
    method: str,
    X: Any,
    none: Any = None,
    start: int | None = None,
) -> Any:
    """The steps under scikit-learn's settings of the thread that asked.

    ``none`` is what they make of no rows: most steps take no empty block. Frames made of
    rows of an array are numbered on from ``start``.
    """
    if none is not None and not tables.count_rows(X):
        return none
    with config_context(**settings):
        found = InPanels(_Steps(model, method), (True,))(X)
    if start and isinstance(X, np.ndarray) and hasattr(found, "iloc"):
        return found.set_axis(found.index + start)
    return found


@dataclass(frozen=True)
class _Steps(Chain):
    """The steps of a fitted pipeline as one function of rows."""

    model: Any
    method: str

    def __call__(self, X: Any) -> Any:
        return apply_steps(self.model, self.method, X)

    def traced(self, X: Any) -> tuple[Any, int]:
        seen: list[int] = [0]
        result = apply_steps(self.model, self.method, X, seen)
        return result, max(*seen, array_bytes(result))


def _gathered(pipeline: Any, method: str, X: Any, blind: Any) -> Any:
    """All rows in this process: ``blind``, a step, may look at all of them."""
    name = next(name for name, step in pipeline.steps if step is blind)
    try:
        rows = gathered({"X": X}, memory_limit())["X"]
    except InputError as error:
        raise InputError(
            f"Step `{name}` is not known to treat each row by itself. {error}"
        ) from error
    return getattr(pipeline.export(), method)(rows)


def score(pipeline: Any, X: Any, y: Any, weight: Any) -> Any:
    """``pipeline.score`` of what it predicts block by block.

    Returns
    -------
    float, or `NotImplemented` for rows in memory and a last step with a score of its own.
    """
    check_is_fitted(pipeline)
    y, weight = (part.compute() if is_dask(part) else part for part in (y, weight))
    own = getattr(type(pipeline.steps[-1][1]), "score", None)
    for mixin, metric in _SCORES.items():
        if own is mixin.score:
            found = pipeline.predict(X)
            found = found.compute() if is_dask(found) else found
            return float(metric(y, found, sample_weight=weight))
    if not is_dask(X):
        return NotImplemented
    rows = gathered({"X": X}, memory_limit())["X"]
    return float(pipeline.export().score(rows, y, sample_weight=weight))


_SCORES = {ClassifierMixin: accuracy_score, RegressorMixin: r2_score}
"""What these score by, unless a class overrides it."""
