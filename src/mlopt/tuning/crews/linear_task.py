"""Which estimators can train as columns of one matrix, and as which columns.

One row of `ADAPTERS` for each class; an estimator whose settings have no batched form here
gives None and is trained one by one, as scikit-learn would.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import linear_model, svm

from mlopt.gd import elastic_net, least_squares, logistic
from mlopt.gd import svm as mlopt_svm
from mlopt.gd.columns import REGRESSION, Model
from mlopt.gd.least_squares_fit import accuracy_of
from mlopt.gd.linear_model import MAX_ITER
from mlopt.gd.lockstep import Schedule
from mlopt.gd.sizes import HALF
from mlopt.identity import identified, is_valid
from mlopt.pipeline.fits.models.objectives import (
    dense_only,
    logistic_differs,
    solves_exactly,
    squares_differ,
    svc_differs,
)


@dataclass(frozen=True)
class LinearTask:
    """One linear model to train, whatever class asked for it.

    The objective is ``weighted mean of loss + a r ||w||_1 + a (1 - r)/2 ||w||^2`` with
    ``r`` the ``l1_ratio``, 0 for None. ``a`` is ``strength`` itself, or ``strength`` over
    the sum of the row weights when ``summed`` (as for C and for Ridge's alpha, which go
    with a sum of losses).
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
    dense_only: bool = False
    """Whether scikit-learn refuses sparse rows with these parameters."""
    in_doubles: bool = False
    """Whether it is solved in float64, whatever the rows are."""
    l1_ratio: float | None = None
    """The share of an L1 penalty in ``strength``; None where working sets do not train."""
    positive: bool = False

    @property
    def one_against_rest(self) -> bool:
        """Whether each class is a problem of its own, with no other's weight in it."""
        svc = self.loss == "squared_hinge" and self.summed
        return svc or self.schedule is not None

    @property
    def ridge(self) -> bool:
        """Whether it is least squares whose solver may be named."""
        return self.loss == "squared" and self.summed

    @property
    def direct(self) -> bool:
        """Whether models are solved, as by scikit-learn, rather than descended to."""
        return self.ridge and not self.by_columns

    @property
    def by_columns(self) -> bool:
        """Whether working sets of columns train it, along a path of penalties."""
        return self.l1_ratio is not None

    @property
    def at_once(self) -> bool:
        """Whether its first pass brings all models to their end."""
        return self.direct or self.by_columns

    @property
    def by_passes(self) -> bool:
        """Whether it is descended to by passes over all rows."""
        return self.schedule is None and not self.at_once

    @property
    def shared(self) -> Hashable:
        """What all models of one scan have in common; nothing, where it cannot be told."""
        sgd = self.schedule is not None
        weight = identified(self.class_weight) or object()
        # Passes end by a gradient that a loss may be relative to the first of.
        loss = self.loss if self.by_passes else ""
        kind = sgd, self.direct, self.by_columns, self.in_doubles, loss
        return (*kind, weight, self.tol, self.max_iter, self.n_iter_no_change)

    def model(self, rowset: int, weight_sum: float, outputs: int) -> Model:
        """The columns that train this task on one row set."""
        total = self.strength / weight_sum if self.summed else self.strength
        l1 = total * (self.l1_ratio or 0.0)
        l2 = total - l1
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
            l1=l1,
            intercept_l1=l1 / scaling if scaling and self.fit_intercept else 0.0,
            positive=self.positive,
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
        learnt: Mapping[str, Any],
    ) -> Any:
        """``estimator`` with the attributes that fitting would have set.

        ``learnt`` are those that only the solver knows.
        """
        estimator.n_features_in_ = coef.shape[1]
        passes = learnt.get("n_iter_", passes)
        estimator.n_iter_ = passes
        if self.schedule is not None:
            estimator.t_ = learnt["t_"]  # where `partial_fit` goes on
            if len(intercept) == 1:
                intercept = intercept.astype(np.float64)
        if self.proba == "softmax":
            estimator.n_iter_ = np.array([passes], np.int32)
            if len(intercept) > 1:  # free up to a number for all classes: theirs sum to 0
                intercept = intercept - intercept.mean()
        estimator.coef_ = coef if self.classifier else coef[0]
        estimator.intercept_ = intercept
        if self.ridge:
            usual = "lbfgs" if self.positive else "cholesky"
            auto = estimator.solver == "auto"
            estimator.solver_ = usual if auto else estimator.solver
            estimator.n_iter_ = None
        elif self.by_columns and not self.classifier:
            estimator.dual_gap_ = learnt["dual_gap_"]
        if self.classifier:
            estimator.classes_ = classes
        elif self.schedule is None:
            estimator.intercept_ = intercept[0]
        if not (self.fit_intercept or self.proba or self.schedule):
            estimator.intercept_ = 0.0  # what scikit-learn's classes leave that have one
        return estimator


def linear_form(estimator: Any, *, free_order: bool = True) -> LinearTask | str:
    """How ``estimator`` trains as columns, or in a few words why it does not.

    It does where the model is then the same to the estimator's own tolerance: the exact
    class, valid parameters, an objective with one minimum, and that objective solved here.

    Parameters
    ----------
    estimator : estimator
    free_order : bool, default=True
        Whether a stochastic model may take the rows in an order of our own: the user left
        its ``random_state`` open.
    """
    adapter = ADAPTERS.get(type(estimator))
    if adapter is None:
        return f"{type(estimator).__name__} has no batched form"
    if not is_valid(estimator):
        return "a parameter is not valid"
    if getattr(estimator, "_skl_callbacks", None):
        return "it has callbacks"
    if isinstance(estimator, STOCHASTIC) and not free_order:
        return "`random_state` fixes the order of the rows"
    return adapter(estimator)


def _logistic(est: Any) -> LinearTask | str:
    C, shrinks = logistic.norm_of(est)
    if shrinks and est.solver not in _SHRINKING:
        return "its solver has another L1 penalty, or none"
    if differs := logistic_differs(est, sharp=True):
        return differs
    if np.isinf(C):
        return "without a penalty there may be no minimum"
    if est.max_iter < 1:
        return "its solver does not take these parameters"
    return LinearTask(
        "logistic", 1.0 / C, True, True, est.fit_intercept, est.tol, est.max_iter,
        class_weight=est.class_weight, proba="softmax", l1_ratio=shrinks or None,
    )  # fmt: skip


def _linear_svc(est: Any) -> LinearTask | str:
    shrinks = est.penalty == "l1"
    if shrinks and est.dual is True:
        return "there is no dual of an L1 penalty"
    if differs := svc_differs(est, sharp=True):
        return differs
    if shrinks and est.max_iter < 1:
        return "its solver does not take these parameters"
    return LinearTask(
        "squared_hinge", 1.0 / est.C, True, True, est.fit_intercept, est.tol, est.max_iter,
        intercept_scaling=est.intercept_scaling, class_weight=est.class_weight,
        in_doubles=type(est) is svm.LinearSVC,  # LIBLINEAR knows no float32
        l1_ratio=1.0 if shrinks else None,
    )  # fmt: skip


def _elastic_net(est: Any) -> LinearTask | str:
    if not isinstance(est.precompute, bool):
        return "`precompute` is a matrix"
    if est.warm_start:
        return "it starts where it was"
    if est.alpha == 0:
        return "without a penalty coordinates converge too slowly to tell when"
    return LinearTask(
        "squared", float(est.alpha), False, False, est.fit_intercept, est.tol,
        1000 if est.max_iter is None else est.max_iter, l1_ratio=float(est.l1_ratio),
        positive=est.positive,
    )  # fmt: skip


SQUARES_PASSES = 100
"""Passes that least squares may take; they are solved in fewer."""


def _ridge(est: Any) -> LinearTask | str:
    if est.positive and est.solver not in ("auto", "lbfgs"):
        return "its solver takes no positive coefficients"
    if not est.positive and (differs := squares_differ(est)):
        return differs
    if not isinstance(est.alpha, int | float | np.number):
        return "each output has a penalty of its own"
    if est.alpha <= 0:
        return "without a penalty there may be no single minimum"
    if est.max_iter is not None:
        return "`max_iter` may end it before it has converged"
    if est.positive:
        return LinearTask(
            "squared", float(est.alpha), True, False, est.fit_intercept,
            accuracy_of(est.tol), MAX_ITER, l1_ratio=0.0, positive=True,
        )  # fmt: skip
    # Dense rows are solved to rounding, whatever the tolerance is.
    tol = HALF if solves_exactly(est, sparse=True) else est.tol
    return LinearTask(
        "squared", float(est.alpha), True, False, est.fit_intercept, tol,
        SQUARES_PASSES, dense_only=dense_only(est),
    )  # fmt: skip


SGD_LOSSES = {
    "log_loss": "logistic",
    "hinge": "hinge",
    "squared_hinge": "squared_hinge",
    "squared_error": "squared",
    "huber": "huber",
}
SGD_SCHEDULES = ("constant", "invscaling", "optimal", "adaptive")


def _sgd(est: Any, classifier: bool) -> LinearTask | str:
    if est.loss not in SGD_LOSSES:
        return f"the loss {est.loss!r} is none of ours"
    if est.penalty not in ("l2", None):
        return "the penalty is not L2"
    if est.learning_rate not in SGD_SCHEDULES:
        return f"the learning rate {est.learning_rate!r} is none of ours"
    if classifier and SGD_LOSSES[est.loss] in REGRESSION:
        return "least squares of classes are scored as numbers"
    if est.learning_rate == "optimal" and not (est.penalty and est.alpha > 0):
        return "its steps follow `alpha`, which is no penalty here"
    if est.early_stopping or est.average or est.warm_start or not est.shuffle:
        return "early stopping, averages, a warm start, a fixed order: scikit-learn's"
    return LinearTask(
        SGD_LOSSES[est.loss], est.alpha if est.penalty else 0.0, False, classifier,
        est.fit_intercept, -np.inf if est.tol is None else est.tol, est.max_iter,
        delta=est.epsilon, class_weight=est.class_weight if classifier else None,
        proba="sigmoid" if est.loss == "log_loss" else None,
        schedule=Schedule(est.learning_rate, est.eta0, est.power_t),
        n_iter_no_change=est.n_iter_no_change,
    )  # fmt: skip


_SHRINKING = ("auto", "saga")
"""Solvers of logistic regression that leave the intercept out of an L1 penalty."""

STOCHASTIC = (linear_model.SGDClassifier, linear_model.SGDRegressor)
"""They go through the rows in an order that their random state draws."""

ADAPTERS: dict[type, Callable[[Any], LinearTask | str]] = {
    linear_model.LogisticRegression: _logistic,
    linear_model.Ridge: _ridge,
    linear_model.Lasso: _elastic_net,
    linear_model.ElasticNet: _elastic_net,
    linear_model.SGDClassifier: lambda est: _sgd(est, True),
    linear_model.SGDRegressor: lambda est: _sgd(est, False),
    svm.LinearSVC: _linear_svc,
    least_squares.Ridge: _ridge,
    elastic_net.Lasso: _elastic_net,
    elastic_net.ElasticNet: _elastic_net,
    logistic.LogisticRegression: _logistic,
    mlopt_svm.LinearSVC: _linear_svc,
}
