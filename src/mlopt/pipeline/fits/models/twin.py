"""A way of fitting an estimator with mlopt's solver of the same problem.

Each solver is a way of its own, so that a plan names those that were rejected. What is
learnt is put into a copy of the user's estimator: of scikit-learn, whose twin of mlopt
learns; or of mlopt, which learns itself.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from mlopt.costs import Cost
from mlopt.pipeline.fits.base import ManyPasses
from mlopt.pipeline.fits.telling import tell
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats


class Priced(ManyPasses):
    """A way whose price also tells where it cannot be taken."""

    def refuses(self, estimator: Any, stats: Stats) -> str:
        reason = self.unlike(estimator, stats)
        return reason or self.beyond(estimator, stats, Resources())

    def beyond(self, estimator: Any, stats: Stats, resources: Resources) -> str:
        cost = self.priced(estimator, stats, resources)
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

    @abstractmethod
    def unlike(self, estimator: Any, stats: Stats) -> str:
        """Why it would not learn what the estimator does; "" when it would."""

    @abstractmethod
    def priced(
        self,
        estimator: Any,
        stats: Stats,
        resources: Resources,
        passes: float | None = None,
    ) -> Cost | str:
        """What it costs, or why it cannot be used."""


class Twin(Priced):
    """One solver of the estimator's own objective.

    Parameters
    ----------
    solver : str
        As the twin's parameter ``solver`` has it.

    Attributes
    ----------
    ours : type
        mlopt's own class among ``kinds``, if there is one.
    asks : str
        The parameter by which it is told the solver.
    learnt : tuple of str
        The fitted attributes that scikit-learn's estimator has, beside those of its input.
    """

    ours: ClassVar[type | None] = None
    asks: ClassVar[str] = "solver"
    learnt: ClassVar[tuple[str, ...]]

    def __init__(self, solver: str) -> None:
        self.name = self.solver = solver

    def unlike(self, estimator: Any, stats: Stats) -> str:
        is_ours = type(estimator) is self.ours
        return (self.suits_not if is_ours else self.differs)(estimator, stats)

    def fit(self, estimator: Any, rows: Rows, y: Any, weight: Any) -> Any:
        learner = self.learner(estimator, rows)
        learner.fit(rows, y, **({} if weight is None else {"sample_weight": weight}))
        tell(*learner.plan_.choices[0].notes[:1])
        if type(estimator) is self.ours:
            setattr(learner, self.asks, getattr(estimator, self.asks))
            return with_columns(learner, rows)
        return with_columns(copied(learner, clone(estimator), self.learnt), rows)

    def learner(self, estimator: Any, rows: Rows) -> Any:
        """mlopt's estimator that this solver is to fit."""
        if type(estimator) is not self.ours:
            return self.twin(estimator, rows)
        own = clone(estimator)
        setattr(own, self.asks, self.named)
        return own

    @property
    def named(self) -> str:
        """The solver as the parameter of mlopt's class has it."""
        return self.solver

    def suits_not(self, estimator: Any, stats: Stats) -> str:
        """Why mlopt's own estimator would not take this solver; "" when it would."""
        del stats
        if why := estimator._not_ours():
            return f"scikit-learn fits it: {why}"
        if getattr(estimator, "warm_start", False):
            return "it starts where it was"
        if self.solver not in estimator._methods():
            return "it does not fit it with these parameters"
        asked = getattr(estimator, self.asks)
        return "" if asked in ("auto", self.named) else f"{self.asks}={asked!r} is asked"

    @abstractmethod
    def twin(self, estimator: Any, rows: Rows) -> Any:
        """mlopt's estimator with the parameters of scikit-learn's."""

    @abstractmethod
    def differs(self, estimator: Any, stats: Stats) -> str:
        """Why mlopt's estimator would not minimise the same; "" when it does."""


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
