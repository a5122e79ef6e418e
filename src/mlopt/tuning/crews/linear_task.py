"""Which estimators can train as columns of one matrix, and as which columns.

One row of `ADAPTERS` for each class; an estimator whose settings have no batched form here
gives None and is trained one by one, as scikit-learn would.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import linear_model, svm

from mlopt.gd import least_squares, logistic
from mlopt.gd import svm as mlopt_svm
from mlopt.gd.columns import Model
from mlopt.gd.lockstep import Schedule
from mlopt.pipeline.fits.models.objectives import (
    logistic_differs,
    penalty_free,
    squares_differ,
    svc_differs,
)


@dataclass(frozen=True)
class LinearTask:
    """One linear model to train, whatever class asked for it.

    The objective is ``weighted mean of loss + l2/2 ||w||^2``, where ``l2`` is ``strength``
    itself, or ``strength`` over the sum of the row weights when ``summed`` (as for C and
    for Ridge's alpha, which go with a sum of losses).
    """

    loss: str
    strength: float
    summed: bool
    classifier: bool
    fit_intercept: bool
    tol: float
    max_iter: int
    intercept_scaling: float | None = None
    delta: float = 1.0
    class_weight: Any = None
    proba: str | None = None
    schedule: Schedule | None = None
    """None: full passes, or a direct solution. Else: stochastic gradient descent."""
    n_iter_no_change: int = 5

    @property
    def direct(self) -> bool:
        """Whether models are solved, as by scikit-learn, rather than descended to."""
        return self.loss == "squared" and self.schedule is None

    @property
    def shared(self) -> Hashable:
        """What all models of one scan have in common."""
        sgd = self.schedule is not None
        weight = repr(self.class_weight)
        return (sgd, self.direct, weight, self.tol, self.max_iter, self.n_iter_no_change)

    def model(self, rowset: int, weight_sum: float, outputs: int) -> Model:
        """The columns that train this task on one row set."""
        l2 = self.strength / weight_sum if self.summed else self.strength
        scaling = self.intercept_scaling
        return Model(
            loss="multinomial"
            if self.loss == "logistic" and self._softmax(outputs)
            else self.loss,
            l2=l2,
            rowset=rowset,
            outputs=outputs,
            delta=self.delta,
            fit_intercept=self.fit_intercept,
            intercept_l2=0.0 if scaling is None else l2 / scaling**2,
        )

    def _softmax(self, outputs: int) -> bool:
        return self.proba == "softmax" and outputs > 1

    def fitted(
        self,
        estimator: Any,
        coef: NDArray[Any],
        intercept: NDArray[Any],
        classes: Any,
        passes: int,
    ) -> Any:
        """``estimator`` with the attributes that fitting would have set."""
        estimator.coef_ = coef if self.classifier else coef[0]
        estimator.intercept_ = intercept if self.classifier else intercept[0]
        estimator.n_features_in_ = coef.shape[1]
        # An array for the classes whose own solvers count for each problem they solve.
        estimator.n_iter_ = (
            np.array([passes]) if self.summed and self.classifier else passes
        )
        if self.classifier:
            estimator.classes_ = classes
        return estimator


def linear_task(estimator: Any) -> LinearTask | None:
    """How ``estimator`` trains as columns, or None when it has no batched form."""
    adapter = ADAPTERS.get(type(estimator))
    return None if adapter is None else adapter(estimator)


def _logistic(est: Any) -> LinearTask | None:
    if logistic_differs(est):
        return None
    strength = 0.0 if penalty_free(est) or np.isinf(est.C) else 1.0 / est.C
    return LinearTask(
        "logistic", strength, True, True, est.fit_intercept, est.tol, est.max_iter,
        class_weight=est.class_weight, proba="softmax",
    )  # fmt: skip


def _linear_svc(est: Any) -> LinearTask | None:
    if svc_differs(est):
        return None
    return LinearTask(
        "squared_hinge", 1.0 / est.C, True, True, est.fit_intercept, est.tol, est.max_iter,
        intercept_scaling=est.intercept_scaling, class_weight=est.class_weight,
    )  # fmt: skip


def _ridge(est: Any) -> LinearTask | None:
    if squares_differ(est) or not isinstance(est.alpha, int | float):
        return None
    return LinearTask(
        "squared",
        float(est.alpha),
        True,
        False,
        est.fit_intercept,
        est.tol,
        est.max_iter or 100,
    )


SGD_LOSSES = {
    "log_loss": "logistic",
    "hinge": "hinge",
    "squared_hinge": "squared_hinge",
    "squared_error": "squared",
    "huber": "huber",
}
SGD_SCHEDULES = ("constant", "invscaling", "optimal", "adaptive")


def _sgd(est: Any, classifier: bool) -> LinearTask | None:
    wanted = (
        est.loss in SGD_LOSSES,
        est.penalty in ("l2", None),
        est.learning_rate in SGD_SCHEDULES,
        not (est.early_stopping or est.average or est.warm_start or not est.shuffle),
    )
    if not all(wanted):
        return None
    return LinearTask(
        SGD_LOSSES[est.loss], est.alpha if est.penalty else 0.0, False, classifier,
        est.fit_intercept, -np.inf if est.tol is None else est.tol, est.max_iter,
        delta=est.epsilon, class_weight=est.class_weight if classifier else None,
        proba="sigmoid" if est.loss == "log_loss" else None,
        schedule=Schedule(est.learning_rate, est.eta0, est.power_t),
        n_iter_no_change=est.n_iter_no_change,
    )  # fmt: skip


ADAPTERS: dict[type, Callable[[Any], LinearTask | None]] = {
    linear_model.LogisticRegression: _logistic,
    linear_model.Ridge: _ridge,
    linear_model.SGDClassifier: lambda est: _sgd(est, True),
    linear_model.SGDRegressor: lambda est: _sgd(est, False),
    svm.LinearSVC: _linear_svc,
    least_squares.Ridge: _ridge,
    logistic.LogisticRegression: _logistic,
    mlopt_svm.LinearSVC: _linear_svc,
}
