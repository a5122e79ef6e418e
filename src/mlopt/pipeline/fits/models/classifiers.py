"""`LogisticRegression` and `LinearSVC`, scikit-learn's and mlopt's, by mlopt's solvers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn import linear_model, svm

from mlopt.costs import Cost
from mlopt.gd import logistic
from mlopt.gd import svm as mlopt_svm
from mlopt.gd.plans.dual_coordinate import DUAL_COORDINATE
from mlopt.gd.plans.dual_logistic import DUAL_LOGISTIC
from mlopt.gd.plans.fitting import prices
from mlopt.gd.plans.forecast import typical
from mlopt.gd.plans.methods import BY_NAME
from mlopt.gd.plans.outline import Outline
from mlopt.pipeline.fits.few import Few
from mlopt.pipeline.fits.models.objectives import (
    logistic_differs,
    svc_differs,
)
from mlopt.pipeline.fits.models.twin import Twin, same
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats

_DUAL = DUAL_COORDINATE.name


class Classifier(Twin):
    """A linear classifier by a method of `mlopt.gd.plans.methods`.

    Attributes
    ----------
    losses : (str, str)
        Of two classes, and of more.
    """

    losses: ClassVar[tuple[str, str]]

    def outline(self, estimator: Any, stats: Stats) -> Outline:
        """What prices depend on."""
        found = Outline.of_stats(self.losses[stats.outputs > 1], stats)
        free = np.isinf(logistic.norm_of(estimator)[0])
        return found if free else replace(found, l2=1.0 / (estimator.C * stats.rows))

    def passes(self, estimator: Any, stats: Stats) -> float:
        shape = self.outline(estimator, stats).shape
        return float(BY_NAME[self.solver].passes(shape))

    def doubt(self, estimator: Any) -> float:
        return BY_NAME[self.solver].doubt if self.solver in BY_NAME else 1.0

    def fit(self, estimator: Any, rows: Rows, y: Any, weight: Any) -> Any:
        # The sample that it was chosen by may have lacked classes.
        classes = len(np.unique(y))
        shape = Stats(rows.n, rows.d, classes if classes > 2 else 1)
        suits = self if not self.refuses(estimator, shape) else type(self)("auto")
        return Twin.fit(suits, estimator, rows, y, weight)

    def priced(
        self,
        estimator: Any,
        stats: Stats,
        resources: Resources,
        passes: float | None = None,
    ) -> Cost | str:
        outline = self.outline(estimator, stats)
        return prices([self.solver], outline, resources, passes)[self.solver]

    def speculate(
        self, estimator: Any, few: Few, stats: Stats
    ) -> tuple[float, float] | None:
        if few.y is None or len(np.unique(few.y)) < 2:
            return None
        learner = self.learner(estimator, few.rows)
        learner._draws = False  # from what the fit draws from
        try:
            _, problem = learner._posed(few.rows, few.y, None, few.rows.executor)
        except ValueError:  # such as a class with a weight that only other rows have
            return None
        look = replace(few.look, rare=problem.rare)
        outline = replace(self.outline(estimator, stats), look=lambda: look)
        _, stop, _ = learner._asks(problem)
        found = typical(BY_NAME[self.solver], outline, stop)
        return found.expected, math.sqrt(found.high / found.low)

    def most(self, estimator: Any) -> float:
        return float(estimator.max_iter)


class Logistic(Classifier):
    """`LogisticRegression` with an L2 penalty, or none."""

    ours = logistic.LogisticRegression
    asks = "_solver"
    kinds = (linear_model.LogisticRegression, ours)
    learnt = ("classes_", "coef_", "intercept_", "n_iter_")
    losses = ("logistic", "multinomial")

    def twin(self, estimator: Any, rows: Rows) -> Any:
        names = "fit_intercept", "class_weight", "tol", "max_iter"
        C, _ = logistic.norm_of(estimator)
        twin = logistic.LogisticRegression(C=C, **same(estimator, *names))
        twin._solver = self.solver
        return twin

    def suits_not(self, estimator: Any, stats: Stats) -> str:
        asked = estimator.solver
        if asked not in ("auto", self.solver):
            return f"solver={asked!r} is asked"
        return super().suits_not(estimator, stats)

    def differs(self, estimator: Any, stats: Stats) -> str:
        return logistic_differs(estimator)


class LogisticInTheDual(Logistic):
    """The same by the variables of the dual, one row at a time."""

    gathers = True


class SupportVectors(Classifier):
    """`LinearSVC` with a squared hinge loss, in the primal unless it chooses."""

    ours = mlopt_svm.LinearSVC
    asks = "_solver"
    kinds = (svm.LinearSVC, ours)
    learnt = ("classes_", "coef_", "intercept_", "n_iter_")
    losses = ("squared_hinge", "squared_hinge")

    def twin(self, estimator: Any, rows: Rows) -> Any:
        names = "C", "fit_intercept", "class_weight", "tol", "max_iter", "intercept_scaling"
        dual = estimator.dual if self.solver == "auto" else self.solver == _DUAL
        drawn = same(estimator, "random_state", *names)
        twin = mlopt_svm.LinearSVC(dual=dual, **drawn)
        twin._solver = self.solver
        return twin

    def fit(self, estimator: Any, rows: Rows, y: Any, weight: Any) -> Any:
        # LIBLINEAR knows no float32: scikit-learn's coefficients are those of doubles.
        rows = rows if type(estimator) is self.ours else rows.in_doubles()
        return super().fit(estimator, rows, y, weight)

    def differs(self, estimator: Any, stats: Stats) -> str:
        return svc_differs(estimator)

    def suits_not(self, estimator: Any, stats: Stats) -> str:
        hinge = "the hinge loss is not smooth" if estimator.loss == "hinge" else ""
        return super().suits_not(estimator, stats) or hinge

    def outline(self, estimator: Any, stats: Stats) -> Outline:
        if type(estimator) is not self.ours:
            stats = replace(stats, dtype="float64", bytes=-1)
        return replace(super().outline(estimator, stats), free_intercept=False)


class InTheDual(SupportVectors):
    """The same by coordinates of the dual, where LIBLINEAR would: one row at a time."""

    gathers = True

    def refuses(self, estimator: Any, stats: Stats) -> str:
        if why := super().refuses(estimator, stats):
            return why
        if estimator.dual is False:
            return "`dual`=False is asked"
        tall = estimator.dual == "auto" and stats.columns < stats.rows
        return mlopt_svm.SLOW if tall else ""


CLASSIFIERS = (
    *(Logistic(name) for name in logistic.SOLVERS if name != DUAL_LOGISTIC.name),
    LogisticInTheDual(DUAL_LOGISTIC.name),
    *(SupportVectors(name) for name in mlopt_svm.SOLVERS if name != _DUAL),
    InTheDual(_DUAL),
)
