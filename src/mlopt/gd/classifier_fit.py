"""From the outcome of a training to the fitted attributes of a linear classifier."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mlopt.gd.choosing import plan_after
from mlopt.gd.plans.running import Outcome
from mlopt.plan import Choice
from mlopt.rows import Rows

Array = NDArray[Any]


def beside(rows: Rows, targets: Array, weights: Array) -> Rows:
    """The rows with targets (n, T) and weights (n, S) in their dtype."""
    return rows.attach(
        targets=targets.astype(rows.dtype), weights=weights.astype(rows.dtype)
    )


def learn(
    estimator: Any, outcome: Outcome, dtype: Any, choice: Choice, started: float
) -> None:
    """Set coefficients and the plan; say when the training did not converge."""
    estimator.coef_ = np.ascontiguousarray(outcome.coef, dtype)
    estimator.intercept_ = outcome.intercept.astype(dtype)
    *left, last = outcome.methods
    then = f" by {' and '.join(left)}, and then {last}" if left else ""
    notes = (f"took {outcome.passes} passes{then}", *choice.notes)
    estimator.plan_ = plan_after(estimator, replace(choice, notes=notes), started)
    if estimator.verbose:
        sys.stderr.write(f"{estimator.plan_}\n")
    if not outcome.converged:
        warnings.warn(
            f"{last} failed to converge: {type(estimator).__name__} did not "
            f"reach `tol`={estimator.tol} in {outcome.passes} passes. Scale the features, "
            f"or increase `max_iter` ({estimator.max_iter}) or `tol`.",
            ConvergenceWarning,
            stacklevel=3,
        )
