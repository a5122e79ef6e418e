"""The plan of a linear model's fit, before it: what chooses for `fit` is asked, no more."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import closing
from typing import Any

from sklearn.base import clone

from mlopt.cluster import Executor, executor
from mlopt.gd.as_scikit_learn import check_parameters, plan_as_scikit_learn
from mlopt.gd.choosing import plan_before
from mlopt.gd.plans.fitting import Chosen
from mlopt.plan import Plan


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
