"""The fit of every linear model: prepared, chosen, run and learnt from; or explained."""

from __future__ import annotations

import sys
import time
import warnings
from abc import abstractmethod
from contextlib import closing
from dataclasses import replace
from typing import Any, ClassVar, Self

from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mlopt.cluster import Executor, executor
from mlopt.gd.as_scikit_learn import fit_as_scikit_learn, plan_as_scikit_learn
from mlopt.gd.choosing import plan_after, plan_before
from mlopt.gd.estimator_base import check_parameters
from mlopt.gd.plans.fitting import Chosen
from mlopt.gd.plans.method import Start
from mlopt.gd.plans.running import Outcome
from mlopt.plan import Plan
from mlopt.rows import Rows

Array = NDArray[Any]

MAX_ITER = 1000
"""Steps or sweeps where `max_iter` is None, as in scikit-learn."""


class Explained:
    """An estimator that prepares its fit, and the choice of a solver, in `_prepare`."""

    _kind: ClassVar[type]
    """Of scikit-learn, whose own fit does what only it has a solver for."""
    max_iter: int | None
    plan_: Any

    def _fitted(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Itself, when the method that was chosen has run, or scikit-learn's own fit."""
        started = time.perf_counter()
        check_parameters(self)
        if why := self._not_ours(y):
            kind, theirs = self._kind, self._theirs()
            fit_as_scikit_learn(self, kind, why, X, y, sample_weight, **theirs)
            return self
        with closing(executor(n_jobs=getattr(self, "n_jobs", None))) as where:
            given, chosen = self._prepare(X, y, sample_weight, where)
            limit = MAX_ITER if self.max_iter is None else self.max_iter
            outcome = chosen.run(limit, self._start(given))
        notes = (*self._learn(given, outcome), *chosen.choice.notes)
        self.plan_ = plan_after(self, replace(chosen.choice, notes=notes), started)
        if getattr(self, "verbose", 0):
            sys.stderr.write(f"{self.plan_}\n")
        if not outcome.converged:
            why = self._what_lacks(outcome, limit)
            warnings.warn(why, ConvergenceWarning, stacklevel=3)
        return self

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

    @abstractmethod
    def _learn(self, given: Any, outcome: Outcome) -> tuple[str, ...]:
        """Set the attributes; returns what the plan has to say of the run."""

    @abstractmethod
    def _what_lacks(self, outcome: Outcome, limit: int) -> str:
        """What to tell who gets a fit that did not converge, and what to do."""

    def _start(self, given: Any) -> Start:
        """Where to begin; None for the method's own start."""
        del given
        return None

    def _theirs(self) -> dict[str, Any]:
        """Parameters that scikit-learn's own fit takes otherwise."""
        return {}


def beside(rows: Rows, targets: Array, weights: Array) -> Rows:
    """The rows with targets (n, T) and weights (n, S) in their dtype."""
    return rows.attach(
        targets=targets.astype(rows.dtype), weights=weights.astype(rows.dtype)
    )
