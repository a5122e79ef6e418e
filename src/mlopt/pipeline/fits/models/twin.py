"""A way of fitting scikit-learn's estimator with mlopt's solver of the same problem.

Each solver is a way of its own, so that a plan names those that were rejected. What is
learnt is put into a copy of the user's estimator.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from mlopt.costs import Cost
from mlopt.pipeline.fits.base import ManyPasses
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats


class Twin(ManyPasses):
    """One solver of the estimator's own objective.

    Parameters
    ----------
    solver : str
        As the twin's parameter ``solver`` has it.

    Attributes
    ----------
    learnt : tuple of str
        The fitted attributes that scikit-learn's estimator has, beside those of its input.
    """

    learnt: ClassVar[tuple[str, ...]]

    def __init__(self, solver: str) -> None:
        self.name = self.solver = solver

    def refuses(self, estimator: Any, stats: Stats) -> str:
        if reason := self.differs(estimator, stats):
            return reason
        cost = self.priced(estimator, stats, Resources())
        return cost if isinstance(cost, str) else ""

    def cost(
        self,
        estimator: Any,
        stats: Stats,
        resources: Resources,
        passes: float | None = None,
    ) -> Cost | None:
        cost = self.priced(estimator, stats, resources, passes)
        return None if isinstance(cost, str) else cost

    def fit(self, estimator: Any, rows: Rows, y: Any, weight: Any) -> Any:
        twin = self.twin(estimator, rows)
        twin.fit(rows, y, **({} if weight is None else {"sample_weight": weight}))
        return with_columns(copied(twin, clone(estimator), self.learnt), rows)

    @abstractmethod
    def twin(self, estimator: Any, rows: Rows) -> Any:
        """mlopt's estimator with the same parameters."""

    @abstractmethod
    def differs(self, estimator: Any, stats: Stats) -> str:
        """Why mlopt's estimator would not minimise the same; "" when it does."""

    @abstractmethod
    def priced(
        self,
        estimator: Any,
        stats: Stats,
        resources: Resources,
        passes: float | None = None,
    ) -> Cost | str:
        """What the solver costs, or why it cannot be used."""


def copied(source: Any, target: Any, names: tuple[str, ...]) -> Any:
    """``target`` with those of the attributes that ``source`` has."""
    found = vars(source)
    vars(target).update({name: found[name] for name in names if name in found})
    return target


def with_columns(model: Any, rows: Rows) -> Any:
    """``model``, knowing how many columns it was fitted to, and their names."""
    model.n_features_in_ = rows.d
    if rows.names is not None:
        model.feature_names_in_ = np.asarray(rows.names, dtype=object)
    return model


def same(estimator: Any, *names: str) -> dict[str, Any]:
    """Parameters that mean the same in both."""
    return {name: getattr(estimator, name) for name in names}


def nonzero(stats: Stats) -> int:
    """Stored values of all rows."""
    return round(stats.nonzeros) if stats.sparse else stats.rows * stats.columns
