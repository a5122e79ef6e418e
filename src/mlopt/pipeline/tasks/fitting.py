"""What the tasks of a fit do: statistics of blocks, or a fit of all rows gathered."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from mlopt.cluster import alone
from mlopt.errors import InputError
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.blocks.panels import panels
from mlopt.pipeline.fits.base import Fit, ManyPasses, OnePass, PartialFit
from mlopt.pipeline.steps.copies import private_copy
from mlopt.pipeline.steps.nested import classifies
from mlopt.pipeline.tasks.functions import Unforeseen, lent, naming, settings_of_a_fit
from mlopt.rows import Rows


@dataclass(frozen=True)
class Job:
    """One fit, as far as it is known before there are data.

    Attributes
    ----------
    transforms : bool
        Whether the outcome of ``fit_transform`` is wanted too.
    way : Fit or None
        None: as scikit-learn does it.
    labelled : bool
        Whether rows have labels of their own in each block: see `tables.stack`.
    writes : str
        As of `Learn`.
    lengths : tuple of int, or None
        Rows of each block, where they come in one; None where blocks tell.
    settings : mapping
        scikit-learn's, under which it fits.
    vectors : (bool, bool)
        Whether it multiplies dense rows with few columns alone, and sparse ones: see `Own`.
    """

    step: str
    estimator: Any
    params: Mapping[str, Any]
    transforms: bool
    way: Fit | None
    labelled: bool = False
    writes: str = "never"
    lengths: tuple[int, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=settings_of_a_fit)
    vectors: tuple[bool, bool] = (False, False)


@dataclass(frozen=True, eq=False)
class Both:
    """A fitted model, and what it made of the rows it was fitted to, in their blocks."""

    model: Any
    output: Any = None
    edges: tuple[int, ...] = ()


class NoRows:
    """The statistics of a block of which a split has no rows."""


@dataclass(frozen=True)
class OrNone:
    """A function of blocks that may have no rows.

    Attributes
    ----------
    at : int
        Which argument is a block.
    none : rows
        What the function makes of no rows.
    """

    function: Callable[..., Any]
    at: int
    none: Any

    def __call__(self, *values: Any) -> Any:
        return self.function(*values) if tables.count_rows(values[self.at]) else self.none


def part(step: str, way: OnePass, estimator: Any, x: Any, y: Any, weight: Any) -> Any:
    """Statistics of one block."""
    if not tables.count_rows(x):
        return NoRows()
    x = tables.unlisted(x)
    with naming(step):
        if not way.panels:
            return way.part(estimator, x, y, weight)
        parts = (way.part(estimator, *panel) for panel in panels(x, y, weight))
        return functools.reduce(way.merge, parts)


def merge(step: str, way: OnePass, left: Any, right: Any) -> Any:
    """Statistics of neighbours together."""
    if isinstance(left, NoRows) or isinstance(right, NoRows):
        return right if isinstance(left, NoRows) else left
    with naming(step):
        return way.merge(left, right)


def finish(step: str, way: OnePass, estimator: Any, statistics: Any) -> Any:
    """The fitted model."""
    with naming(step):
        return way.finish(estimator, statistics)


def in_turn(
    step: str, way: PartialFit, writes: str, model: Any, blocks: Sequence[Any], classes: Any
) -> Any:
    """The model when it has learnt from one block more: rows, targets, weights."""
    x, y, weight = blocks
    if not tables.count_rows(x):
        return model
    with lent(step, writes, x) as own, naming(step):
        return way.turn(model, own, y, weight, classes)


def classes_of(estimator: Any, y: Sequence[Any] | None) -> Any:
    """The classes of all blocks of targets; None for what is no classifier."""
    if y is None or not classifies(estimator):
        return None
    return np.unique(np.concatenate([np.asarray(block) for block in y]))


def fit_gathered(job: Job, x: Sequence[Any], y: Any, weight: Any) -> Both:
    """Fit to all blocks of rows at once, here."""
    edges = _edges(job.lengths, x)
    whole = tables.stack(x, job.step, labelled=job.labelled)
    targets = None if y is None else tables.stack(y, "y")
    weights = None if weight is None else tables.stack(weight, "sample_weight")
    if isinstance(job.way, ManyPasses):
        with naming(job.step):
            rows = Rows.of(tables.as_numbers(whole, flattens=job.way.flattens))
            return Both(job.way.fit(job.estimator, rows, targets, weights))
    stacked = len(x) > 1 and job.writes == "alone"  # that is a copy
    writes = "never" if stacked else job.writes
    lone = job.vectors[tables.is_sparse(whole)]
    here = alone(briefly=True) if lone else nullcontext()
    with here, lent(job.step, writes, whole) as own, naming(job.step, job.settings):
        return _as_scikit_learn(job, own, targets, weights, edges)


def _as_scikit_learn(job: Job, x: Any, y: Any, weight: Any, edges: tuple[int, ...]) -> Both:
    fresh = private_copy(job.estimator)
    params = dict(job.params)
    if weight is not None and has_fit_parameter(fresh, "sample_weight"):
        params["sample_weight"] = weight
    if not job.transforms:
        fresh.fit(x, y, **params)  # what it returns is nobody's business, as in a pipeline
        return Both(fresh)
    if hasattr(fresh, "fit_transform"):
        output = fresh.fit_transform(x, y, **params)
    else:
        output = fresh.fit(x, y, **params).transform(x)
    if isinstance(output, tuple):
        raise Unforeseen(f"Step `{job.step}` gives a tuple from `fit_transform`, no rows.")
    got = tables.count_rows(output)
    if got != edges[-1]:
        raise InputError(
            f"Step `{job.step}` must return one row for each row it is given, got {got} "
            f"for {edges[-1]}. Select or drop rows before the pipeline, together with y."
        )
    return Both(fresh, output, edges)


def apply_gathered(
    step: str,
    labelled: bool,
    lengths: tuple[int, ...] | None,
    function: Any,
    model: Any,
    x: Sequence[Any],
) -> Both:
    """Apply a model to all blocks at once: its rows depend on each other."""
    edges = _edges(lengths, x)
    whole = tables.stack(x, step, labelled=labelled)
    return Both(model, function(model, whole), edges)


def _edges(lengths: tuple[int, ...] | None, x: Sequence[Any]) -> tuple[int, ...]:
    """Where blocks begin and end, of rows that come in them or in one."""
    counts = map(tables.count_rows, x) if lengths is None else lengths
    return tuple(int(edge) for edge in np.cumsum([0, *counts]))


def first(both: Both) -> Any:
    """The model alone."""
    return both.model


def piece(both: Both, number: int) -> Any:
    """The outcome's rows of one block."""
    return tables.row_range(both.output, both.edges[number], both.edges[number + 1])


def same(value: Any) -> Any:
    """The value."""
    return value
