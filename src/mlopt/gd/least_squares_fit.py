"""From an estimator's arguments to its fitted attributes, for `Ridge` and its kin."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import linear_model
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mlopt.cluster import Executor, executor
from mlopt.errors import InputError
from mlopt.gd.choosing import plan_after, plan_before
from mlopt.gd.estimator_base import Sample, read, resources_of
from mlopt.gd.least_squares_plan import block_rows, choose_solver
from mlopt.gd.least_squares_shape import Shape
from mlopt.gd.least_squares_solvers import SOLVERS, Fit, Task, shape_of
from mlopt.gd.linear_regressor import LinearRegressor
from mlopt.gd.positive_squares import choose_positive, fit_positive
from mlopt.plan import Choice, Plan

_MAX_ITER = 1000
_NEAR = 0.2
"""Of `tol`, where there are fewer rows than columns: directions that the rows do not have
are as near the optimum as scikit-learn's conjugate gradients leave them."""


@dataclass(frozen=True)
class Settings:
    """What the estimators ask of their fit; see `Task`.

    A ``max_iter`` of None is 1000, a ``cutoff`` of None whatever rounding allows.
    """

    solver: str
    tol: float
    max_iter: int | None
    accuracy: float
    cutoff: float | None
    n_jobs: int | None = None
    positive: bool = False


def fit_least_squares(
    estimator: LinearRegressor,
    X: Any,
    y: Any,
    sample_weight: Any,
    alpha: Any,
    settings: Settings,
) -> Fit:
    """Read the data, choose a solver, run it and set the estimator's attributes."""
    started = time.perf_counter()
    with closing(executor(n_jobs=settings.n_jobs)) as where:
        sample, task, solve, choice = _prepare(
            estimator, X, y, sample_weight, alpha, settings, where
        )
        fit = solve(task)
    _learn(estimator, fit, sample)
    estimator.plan_ = plan_after(estimator, replace(choice, notes=fit.notes), started)
    if not fit.converged:
        warnings.warn(
            f"`{fit.solver}` stopped at {task.max_iter} steps above the accuracy that "
            f"`tol`={task.tol} asks for: increase `max_iter`, scale the features, or "
            "choose another `solver`.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return fit


def explain_least_squares(
    estimator: LinearRegressor,
    X: Any,
    y: Any,
    sample_weight: Any,
    alpha: Any,
    settings: Settings,
) -> Plan:
    """The plan of `fit_least_squares` for the same arguments; fits nothing."""
    twin = clone(estimator)
    with closing(executor(n_jobs=settings.n_jobs)) as where:
        choice = _prepare(twin, X, y, sample_weight, alpha, settings, where)[-1]
    return plan_before(estimator, choice)


def problem_shape(estimator: Any, X: Any, y: Any, settings: Settings) -> Shape:
    """What the costs of an estimator's solvers depend on; fits nothing."""
    with closing(executor(n_jobs=settings.n_jobs)) as where:
        task = _prepare(clone(estimator), X, y, None, estimator.alpha, settings, where)[1]
    return shape_of(task)


def _prepare(
    estimator: LinearRegressor,
    X: Any,
    y: Any,
    sample_weight: Any,
    alpha: Any,
    settings: Settings,
    where: Executor,
) -> tuple[Sample, Task, Callable[[Task], Fit], Choice]:
    sample = read(
        estimator, X, y, sample_weight, executor=where, numeric=True, block_rows=block_rows
    )
    task = _task(sample, alpha, estimator.fit_intercept, settings)
    here, name = resources_of(where), str(estimator)
    if settings.positive:
        chosen = choose_positive(name, task, here)
        return sample, task, partial(fit_positive, chosen=chosen), chosen.choice
    choice = choose_solver(name, settings.solver, shape_of(task), here)
    return sample, task, SOLVERS[choice.chosen], choice


def _task(sample: Sample, alpha: Any, intercept: bool, settings: Settings) -> Task:
    targets = sample.y.reshape(sample.rows.n, -1)
    rows = sample.rows
    limit = settings.max_iter
    return Task(
        rows=rows.attach(
            targets=targets.astype(rows.dtype),
            weights=sample.weights[:, None].astype(rows.dtype),
        ),
        alphas=_check_alphas(alpha, targets.shape[1]),
        intercept=intercept,
        tol=settings.tol * (_NEAR if rows.d >= rows.n else 1.0),
        max_iter=_MAX_ITER if limit is None else limit,
        accuracy=settings.accuracy,
        cutoff=max(rows.n, rows.d) * np.finfo(np.float64).eps
        if settings.cutoff is None
        else settings.cutoff,
    )


def _check_alphas(alpha: Any, outputs: int) -> NDArray[np.float64]:
    alphas = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
    if alphas.shape not in ((1,), (outputs,)):
        raise InputError(
            "Number of targets and number of penalties do not correspond: "
            f"{alphas.size} != {outputs}. `alpha` must be a number or have one entry for "
            f"each target, got shape {alphas.shape}."
        )
    if not (np.isfinite(alphas).all() and alphas.min() >= 0):
        raise InputError(f"`alpha` must be finite and at least 0, got {alpha!r}.")
    return np.broadcast_to(alphas, (outputs,))


def _learn(estimator: Any, fit: Fit, sample: Sample) -> None:
    """Coefficients and intercepts in the dtype of X and the shape of y."""
    dtype = sample.rows.dtype
    coef, intercept = fit.coef.T.astype(dtype), fit.intercept.astype(dtype)
    if not estimator.fit_intercept:
        estimator.coef_, estimator.intercept_ = coef, 0.0
    else:
        estimator.coef_, estimator.intercept_ = coef, intercept
    if sample.y.ndim == 1:
        estimator.coef_ = coef[0]
        estimator.intercept_ = intercept[0] if estimator.fit_intercept else 0.0
    elif len(coef) == 1 and isinstance(estimator, linear_model.Ridge):
        estimator.coef_ = coef[0]  # as scikit-learn's, of a column of y
    steps = fit.iterations
    estimator.n_iter_ = np.ones(len(coef), np.int64) if steps is None else steps
    estimator.solver_ = fit.solver
