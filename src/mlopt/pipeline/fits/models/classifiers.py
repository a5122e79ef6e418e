"""scikit-learn's `LogisticRegression` and `LinearSVC` by mlopt's solvers."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn import linear_model, svm
from sklearn.exceptions import ConvergenceWarning

from mlopt.costs import Cost
from mlopt.gd import classifier_plan, logistic
from mlopt.gd import svm as mlopt_svm
from mlopt.pipeline.fits.models.objectives import (
    logistic_differs,
    penalty_free,
    svc_differs,
)
from mlopt.pipeline.fits.models.twin import Twin, nonzero, same
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats


class Classifier(Twin):
    """A linear classifier by full passes."""

    def speculate(self, estimator: Any, X: Any, y: Any, stats: Stats) -> float | None:
        # Newton's method has another Hessian on few rows, and takes other steps.
        if self.solver == "newton-cholesky" or y is None or len(np.unique(y)) < 2:
            return None
        sample = Rows.of(X)
        twin = self.twin(estimator, sample)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            twin.fit(sample, y)
        return float(np.max(twin.n_iter_))


class Logistic(Classifier):
    """`LogisticRegression` with an L2 penalty, or none."""

    kinds = (linear_model.LogisticRegression,)
    learnt = ("classes_", "coef_", "intercept_", "n_iter_")

    def twin(self, estimator: Any, rows: Rows) -> Any:
        names = "fit_intercept", "class_weight", "tol", "max_iter"
        C = np.inf if penalty_free(estimator) else estimator.C
        return logistic.LogisticRegression(
            C=C, solver=self.solver, **same(estimator, *names)
        )

    def differs(self, estimator: Any, stats: Stats) -> str:
        return logistic_differs(estimator)

    def passes(self, estimator: Any, stats: Stats) -> float:
        shape = _shape(stats)
        return float(shape.passes if self.solver == "lbfgs" else shape.newton_passes)

    def priced(
        self,
        estimator: Any,
        stats: Stats,
        resources: Resources,
        passes: float | None = None,
    ) -> Cost | str:
        shape = _shape(stats)
        if self.solver == "lbfgs":
            return classifier_plan.quasi_newton_cost(shape, resources, passes)
        return classifier_plan.newton_cost(shape, resources, passes)


class SupportVectors(Classifier):
    """`LinearSVC` with a squared hinge loss, in the primal."""

    kinds = (svm.LinearSVC,)
    learnt = ("classes_", "coef_", "intercept_", "n_iter_")

    def twin(self, estimator: Any, rows: Rows) -> Any:
        names = "C", "fit_intercept", "class_weight", "tol", "max_iter", "intercept_scaling"
        return mlopt_svm.LinearSVC(dual=False, **same(estimator, *names))

    def fit(self, estimator: Any, rows: Rows, y: Any, weight: Any) -> Any:
        # LIBLINEAR knows no float32: scikit-learn's coefficients are those of doubles.
        return super().fit(estimator, rows.in_doubles(), y, weight)

    def differs(self, estimator: Any, stats: Stats) -> str:
        return svc_differs(estimator)

    def passes(self, estimator: Any, stats: Stats) -> float:
        return float(_shape(stats).passes)

    def priced(
        self,
        estimator: Any,
        stats: Stats,
        resources: Resources,
        passes: float | None = None,
    ) -> Cost | str:
        shape = replace(_shape(stats), itemsize=np.dtype(np.float64).itemsize)
        return classifier_plan.quasi_newton_cost(shape, resources, passes)


def _shape(stats: Stats) -> classifier_plan.Shape:
    return classifier_plan.Shape(
        n=stats.rows,
        d=stats.columns,
        columns=stats.outputs,
        nonzero=nonzero(stats),
        itemsize=stats.itemsize,
        sparse=stats.sparse,
        blocks=stats.partitions,
    )


CLASSIFIERS = (Logistic("lbfgs"), Logistic("newton-cholesky"), SupportVectors("primal"))
