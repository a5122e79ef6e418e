"""From the arguments of `PCA` to its fitted attributes."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from mlopt.cluster import Executor, executor
from mlopt.errors import InputError
from mlopt.gd.estimator_base import (
    FLOATS,
    brought_if_few,
    plan_after,
    resources_of,
    see_columns,
)
from mlopt.gd.pricing import shape_of
from mlopt.gd.row_products import block_rows
from mlopt.parameters import check_count
from mlopt.pipeline.library.pca_plan import Shape, choose_solver
from mlopt.pipeline.library.pca_solvers import SOLVERS, Spectrum, Task
from mlopt.plan import Choice
from mlopt.rows import Rows
from mlopt.rows.source import is_dask

WAYS = {
    "full": "full-svd",
    "covariance_eigh": "covariance-eigh",
    "tsqr": "tsqr",
    "randomized": "randomized",
    "arpack": "arpack",
}
"""The way behind each name that the parameter ``svd_solver`` may have, but for "auto"."""
NAMES = {way: name for name, way in WAYS.items()}


def fit_pca(estimator: Any, X: Any) -> None:
    """Read the data, choose a solver, run it and set the estimator's attributes."""
    started = time.perf_counter()
    with closing(executor(rows=(X,))) as where:
        rows, shape, choice = prepare(estimator, X, where)
        task = Task(rows, shape, check_random_state(estimator.random_state))
        found = SOLVERS[choice.chosen](task)
        choice = replace(choice, notes=(*found.notes, *choice.notes))
    _learn(estimator, found, rows, estimator.n_components)
    estimator.plan_ = plan_after(choice, started)


def prepare(estimator: Any, X: Any, where: Executor) -> tuple[Rows, Shape, Choice]:
    """The rows, their shape and the choice of a solver; finds no component yet.

    Raises
    ------
    InputError
        When X or a parameter cannot work, or no solver has the memory it needs.
    """
    rows, told = _read(estimator, X, where), tuple[str, ...]()
    if not isinstance(X, Rows):  # whose place somebody else has chosen
        rows, told = brought_if_few(rows)
    shape = _shape(rows, estimator)
    wanted = WAYS.get(estimator.svd_solver, "auto")
    resources = resources_of(rows.executor)
    choice = choose_solver(str(estimator), wanted, shape, resources)
    return rows, shape, replace(choice, notes=told)


def _read(estimator: Any, X: Any, where: Executor) -> Rows:
    if isinstance(X, Rows):
        estimator.n_features_in_, rows = X.d, X
    elif is_dask(X):
        see_columns(estimator, X)
        rows = Rows.of(X, executor=where)
    else:
        # `Rows` looks for NaN and infinity, on all threads: once is enough.
        X = validate_data(
            estimator, X, accept_sparse="csr", dtype=FLOATS, ensure_all_finite=False
        )
        rows = Rows.of(X, executor=where, block_rows=block_rows(X))
    if rows.n < 2:
        raise InputError(
            f"X must have at least 2 rows, or nothing varies; got n_samples = {rows.n}."
        )
    return rows


def _shape(rows: Rows, estimator: Any) -> Shape:
    components = _components(estimator.n_components, min(rows.n, rows.d))
    return Shape(
        rows=shape_of(rows, 0),
        components=components,
        needs_all=not isinstance(estimator.n_components, Integral),
        oversamples=check_count("n_oversamples", estimator.n_oversamples),
        iterations=_iterations(estimator.iterated_power, components, rows),
    )


def _components(wanted: Any, rank: int) -> int:
    """How many components to find: all, when their variances decide how many to keep."""
    if wanted is None:
        return rank
    if isinstance(wanted, Integral) and not isinstance(wanted, bool):
        if 1 <= int(wanted) <= rank:
            return int(wanted)
    elif isinstance(wanted, Real) and 0 < float(wanted) < 1:
        return rank
    raise InputError(
        f"n_components={wanted!r} must be between 1 and min(n_samples, n_features)={rank}, "
        "or a share of the variance between 0 and 1, both excluded, or None for all."
    )


def _iterations(wanted: Any, components: int, rows: Rows) -> int:
    """As many as scikit-learn takes: more where there are few components to find."""
    if isinstance(wanted, str) and wanted == "auto":
        return 7 if components < 0.1 * min(rows.n, rows.d) else 4
    whole = isinstance(wanted, Integral) and not isinstance(wanted, bool)
    if whole and int(wanted) >= 0:
        return int(wanted)
    raise InputError(
        f"`iterated_power` must be 'auto' or an integer of at least 0, got {wanted!r}."
    )


def _learn(estimator: Any, found: Spectrum, rows: Rows, wanted: Any) -> None:
    """Attributes in the dtype of X; whatever is not kept is noise."""
    variances = found.singular**2 / (rows.n - 1)
    total = found.total / (rows.n - 1)
    ratios = variances / total if total > 0 else np.zeros_like(variances)
    k, rank = _kept(wanted, ratios), min(rows.n, rows.d)
    left = max(total - float(variances[:k].sum()), 0.0)
    dtype = rows.dtype
    estimator.n_components_ = k
    estimator.components_ = found.components[:k].astype(dtype)
    estimator.mean_ = found.mean.astype(dtype)
    estimator.explained_variance_ = variances[:k].astype(dtype)
    estimator.explained_variance_ratio_ = ratios[:k].astype(dtype)
    estimator.singular_values_ = found.singular[:k].astype(dtype)
    estimator.noise_variance_ = dtype.type(left / (rank - k)) if k < rank else 0.0
    estimator.n_samples_ = rows.n


def _kept(wanted: Any, ratios: Any) -> int:
    """As many components as were asked for, or as reach the share of the variance."""
    if wanted is None or isinstance(wanted, Integral):
        return len(ratios)
    reached = int(np.searchsorted(np.cumsum(ratios), wanted, side="right")) + 1
    return min(reached, len(ratios))
