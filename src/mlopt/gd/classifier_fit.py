"""From trainings to the fitted attributes of a linear classifier."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mlopt.cluster import between_passes
from mlopt.gd.choosing import plan_after
from mlopt.gd.classifier_plan import Shape
from mlopt.gd.columns import Model
from mlopt.gd.dual import DualCoordinateDescent
from mlopt.gd.newton import Newton
from mlopt.gd.quasi_newton import QuasiNewton
from mlopt.gd.sample import WIDEST
from mlopt.plan import Choice
from mlopt.rows import Rows
from mlopt.training import Limits, run

Array = NDArray[Any]
Planes = Sequence[tuple[Array, Array]]
"""Coefficients (planes, d) and intercepts (planes,), one pair a model; or none."""

_EPOCHS_BETWEEN_LOOKS = 100
_WIDE = 0.3
"""Of the tolerance, where columns are many: as near the optimum as scikit-learn's lbfgs
ends by the rule itself, since its steps are shorter."""


@dataclass(frozen=True)
class Outcome:
    """What a training came to: ``coef`` (planes, d), ``intercept`` (planes,)."""

    coef: Array
    intercept: Array
    passes: int
    converged: bool


def shape_of(rows: Rows, columns: int) -> Shape:
    """What the cost of training ``columns`` columns on these rows depends on."""
    return Shape(
        n=rows.n,
        d=rows.d,
        columns=columns,
        nonzero=rows.nonzero,
        itemsize=rows.dtype.itemsize,
        sparse=rows.sparse,
        blocks=len(rows.lengths),
    )


def beside(rows: Rows, targets: Array, weights: Array) -> Rows:
    """The rows with targets (n, T) and weights (n, S) in their dtype."""
    return rows.attach(
        targets=targets.astype(rows.dtype), weights=weights.astype(rows.dtype)
    )


def by_quasi_newton(
    rows: Rows, models: Sequence[Model], tol: float, max_iter: int, start: Planes
) -> Outcome:
    """Full passes until ``max |gradient| <= tol``, as scikit-learn's lbfgs does.

    The pass over the start, from which no step has been taken, is not one of ``max_iter``.
    """
    most = max_iter + 1
    if rows.d >= WIDEST or rows.d >= rows.n:
        # A gradient says little of flat directions, and there is no Hessian to look ahead.
        tol *= _WIDE
    training = QuasiNewton(rows, models, gtol=tol, max_passes=most, start=start or None)
    with between_passes():
        run(training, Limits(passes=most))
    planes = [training.coefficients(number) for number in range(len(models))]
    coef, intercept = (np.concatenate(parts) for parts in zip(*planes, strict=True))
    converged = bool(training.converged.all())
    return Outcome(coef, intercept, _steps(training.passes), converged)


def by_newton(
    rows: Rows, model: Model, tol: float, max_iter: int, start: Planes
) -> Outcome:
    """As `by_quasi_newton`, with the Hessian of all classes together."""
    first = start[0] if start else None
    training = Newton(rows, model, gtol=tol, max_passes=max_iter + 1, start=first)
    run(training, Limits(passes=max_iter + 1))
    done = bool(training.converged[0])
    return Outcome(*training.coefficients(), _steps(training.passes), done)


def _steps(passes: int) -> int:
    return max(passes - 1, 1)


def by_dual(training: DualCoordinateDescent, planes: int, max_iter: int) -> Outcome:
    """Epochs until no dual variable violates its optimality, as LIBLINEAR does."""
    run(training, Limits(passes=max_iter), step=_EPOCHS_BETWEEN_LOOKS)
    found = [training.coefficients(number) for number in range(planes)]
    coef, intercept = np.array([w for w, _ in found]), np.array([b for _, b in found])
    return Outcome(coef, intercept, training.passes, training.done)


def learn(
    estimator: Any, outcome: Outcome, dtype: Any, choice: Choice, started: float
) -> None:
    """Set coefficients and the plan; say when the training did not converge."""
    estimator.coef_ = np.ascontiguousarray(outcome.coef, dtype)
    estimator.intercept_ = outcome.intercept.astype(dtype)
    notes = (f"took {outcome.passes} passes", *choice.notes)
    estimator.plan_ = plan_after(estimator, replace(choice, notes=notes), started)
    if estimator.verbose:
        sys.stderr.write(f"{estimator.plan_}\n")
    if not outcome.converged:
        warnings.warn(
            f"{choice.chosen} failed to converge: {type(estimator).__name__} did not "
            f"reach `tol`={estimator.tol} in {outcome.passes} passes. Scale the features, "
            f"or increase `max_iter` ({estimator.max_iter}) or `tol`.",
            ConvergenceWarning,
            stacklevel=3,
        )
