"""From the arguments of block least squares to its sweeps: read, plan, prepare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from mlopt.cluster import Executor
from mlopt.errors import InputError
from mlopt.gd.estimator_base import Sample, read, resources_of
from mlopt.gd.pricing import shape_of, shape_of_stats
from mlopt.parameters import check_count, check_positive
from mlopt.pipeline.budget import budget_bytes
from mlopt.pipeline.library.learning.block_cost import Work, choose_keeping, working_bytes
from mlopt.pipeline.library.learning.block_descent import BlockDescent, Keeping
from mlopt.pipeline.library.learning.feature_blocks import (
    Features,
    OwnColumns,
    block_rows,
    fitted_features,
)
from mlopt.plan import Choice, Plan, format_bytes
from mlopt.rows import Rows
from mlopt.stats import Stats

Array = NDArray[Any]
Targets = Callable[[Sample], Array]
"""From what was read to the targets (n, k)."""


@dataclass(frozen=True)
class Prepared:
    """A fit that is planned and has not begun.

    Attributes
    ----------
    sample : Sample
    features : Features
        Fitted.
    targets : ndarray of shape (n, k), float64
    alphas : ndarray of shape (k,)
    keeping : Keeping
    choice : Choice
    """

    sample: Sample
    features: Features
    targets: NDArray[np.float64]
    alphas: NDArray[np.float64]
    keeping: Keeping
    choice: Choice


def prepare(
    estimator: Any, X: Any, y: Any, weight: Any, targets: Targets, where: Executor
) -> Prepared:
    """Check parameters, read the data, fit the features and choose what is kept.

    Raises
    ------
    InputError
        When a parameter is out of range, or X, y or the weights are malformed.
    """
    size = check_count("block_size", estimator.block_size)
    passes = check_count("n_iter", estimator.n_iter)
    sample = read(
        estimator,
        X,
        y,
        weight,
        executor=where,
        numeric=is_regressor(estimator),
        block_rows=block_rows(size),
    )
    features = fitted_features(estimator.features, sample.rows)
    values = targets(sample)
    alphas = penalties(estimator.alpha, values.shape[1])
    work = work_of(sample.rows, features, values.shape[1], size, passes)
    resources = resources_of(where)
    budget = budget_bytes(estimator.memory_budget, where)
    keeping, choice = choose_keeping(type(estimator).__name__, work, resources, budget)
    note = f"{work.blocks} blocks of {min(size, work.features)} of {work.features} features"
    partial = (
        f"sums and panels of a process: {format_bytes(working_bytes(work, resources))}"
    )
    choice = replace(choice, step="sweeps", notes=(note, partial))
    return Prepared(sample, features, values, alphas, keeping, choice)


def plan_of(estimator: Any, choice: Choice) -> Plan:
    """The plan of one fit, not yet measured."""
    return Plan(f"fit {estimator}", (choice,), choice.predicted)


def work_of(rows: Rows, features: Features, outputs: int, size: int, passes: int) -> Work:
    """What the costs need to know."""
    per_value = features.flops_per_value(rows.nonzero / rows.n)
    shape = shape_of(rows, outputs)
    return Work(shape, features.n_features_out_, size, per_value, passes)


def work_to_come(estimator: Any, stats: Stats) -> Work | None:
    """The same before there are rows; None where only a fit tells how many features."""
    size = check_count("block_size", estimator.block_size)
    passes = check_count("n_iter", estimator.n_iter)
    shape = shape_of_stats(stats)
    features = estimator.features or OwnColumns(shape.d)
    count = getattr(features, "count", None)
    if count is None:
        return None
    per_value = features.flops_per_value(shape.nonzero / max(1, shape.n))
    return Work(shape, count(shape.d), size, per_value, passes)


def descent_of(estimator: Any, ready: Prepared) -> BlockDescent:
    """Of a fit that has not begun to sweep."""
    rows, weights = ready.sample.rows, ready.sample.weights
    mean = None
    if estimator.fit_intercept:
        mean = weights @ ready.targets / weights.sum()
    beside = rows.attach(
        targets=ready.targets.astype(rows.dtype),
        root=np.sqrt(weights)[:, None].astype(rows.dtype),
    )
    return BlockDescent(
        beside,
        ready.features,
        estimator.block_size,
        ready.alphas,
        float(weights.sum()),
        mean,
        ready.keeping,
    )


def penalties(alpha: Any, outputs: int) -> NDArray[np.float64]:
    """One penalty for each target; a number is that of all."""
    if np.ndim(alpha) == 0:
        return np.full(outputs, check_positive("alpha", alpha, zero=True))
    alphas = np.asarray(alpha, np.float64)
    if alphas.shape != (outputs,):
        raise InputError(
            f"`alpha` must be a number or have one entry for each of {outputs} targets, "
            f"got shape {alphas.shape}."
        )
    for one in alphas:
        check_positive("alpha", float(one), zero=True)
    return alphas
