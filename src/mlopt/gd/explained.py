"""Around a linear model's fit: the plan before it, and what is learnt from its outcome."""

from __future__ import annotations

import sys
import warnings
from abc import abstractmethod
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mlopt.cluster import Executor, executor
from mlopt.gd.as_scikit_learn import check_parameters, plan_as_scikit_learn
from mlopt.gd.choosing import plan_after, plan_before
from mlopt.gd.plans.fitting import Chosen
from mlopt.gd.plans.running import Outcome
from mlopt.plan import Choice, Plan
from mlopt.rows import Rows

Array = NDArray[Any]

MAX_ITER = 1000
"""Steps or sweeps where `max_iter` is None, as in scikit-learn."""


class Explained:
    """An estimator that prepares its fit, and the choice of a solver, in `_prepare`."""

    def explain(self, X: Any, y: Any, sample_weight: Any = None) -> Plan:
        """The plan of `fit` for the same arguments; fits nothing.

        Returns
        -------
        Plan
            What would be chosen and rejected, with predicted seconds.
        """
        twin = clone(self)
        check_parameters(twin)
        if why := twin._not_ours(y):
            return plan_as_scikit_learn(self, why)
        with closing(executor(n_jobs=getattr(self, "n_jobs", None))) as where:
            _, chosen = twin._prepare(X, y, sample_weight, where)
        return plan_before(self, chosen.choice)

    @abstractmethod
    def _not_ours(self, y: Any) -> str:
        """Which parameter asks for what only scikit-learn has a solver for; or ""."""

    @abstractmethod
    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, where: Executor
    ) -> tuple[Any, Chosen]:
        """What `fit` trains on, and the solver that it chose."""


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
