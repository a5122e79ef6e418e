"""scikit-learn's linear models and PCA, fitted by mlopt's solvers of the same problem.

Each solver is a way of its own, so that a plan names those that were rejected. What is
learnt is put into a copy of the user's estimator.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn import decomposition, linear_model, svm
from sklearn.base import clone
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.class_weight import compute_sample_weight

from mlopt.costs import Cost
from mlopt.gd import classifier_plan, least_squares, least_squares_plan, logistic
from mlopt.gd import svm as mlopt_svm
from mlopt.pipeline.fits.base import Fit, ManyPasses
from mlopt.pipeline.library import pca_plan
from mlopt.pipeline.library.pca import PCA
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats


class Twin(ManyPasses):
    """One solver of the estimator's own objective.

    Parameters
    ----------
    solver : str
        As the twin's parameter ``solver`` has it.
    """

    learnt: tuple[str, ...]

    def __init__(self, solver: str) -> None:
        self.name = self.solver = solver

    def refuses(self, estimator: Any, stats: Stats) -> str:
        if reason := self.differs(estimator):
            return reason
        cost = self.priced(estimator, stats, Resources())
        return cost if isinstance(cost, str) else ""

    def cost(self, estimator: Any, stats: Stats, resources: Resources) -> Cost | None:
        cost = self.priced(estimator, stats, resources)
        return None if isinstance(cost, str) else cost

    def fit(self, estimator: Any, rows: Rows, y: Any, weight: Any) -> Any:
        twin = self.twin(estimator)
        twin.fit(rows, y, **({} if weight is None else {"sample_weight": weight}))
        fitted = clone(estimator)
        for name in (*self.learnt, "n_features_in_"):
            if hasattr(twin, name):
                setattr(fitted, name, getattr(twin, name))
        return fitted

    @abstractmethod
    def twin(self, estimator: Any) -> Any:
        """mlopt's estimator with the same parameters."""

    @abstractmethod
    def differs(self, estimator: Any) -> str:
        """Why mlopt's estimator would not minimise the same; "" when it does."""

    @abstractmethod
    def priced(self, estimator: Any, stats: Stats, resources: Resources) -> Cost | str:
        """What the solver costs, or why it cannot be used."""


class Logistic(Twin):
    """`LogisticRegression` with an L2 penalty."""

    kinds = (linear_model.LogisticRegression,)
    learnt = ("classes_", "coef_", "intercept_", "n_iter_")

    def twin(self, estimator: Any) -> Any:
        return logistic.LogisticRegression(
            solver=self.solver,
            **_same(estimator, "C", "fit_intercept", "class_weight", "tol", "max_iter"),
        )

    def differs(self, estimator: Any) -> str:
        if getattr(estimator, "penalty", "deprecated") not in ("l2", "deprecated"):
            return "the penalty is not L2"
        if estimator.l1_ratio:
            return "the penalty is not L2"
        if estimator.solver == "liblinear":
            return "liblinear penalises the intercept"
        return "it starts where it was" if estimator.warm_start else ""

    def passes(self, estimator: Any, stats: Stats) -> float:
        shape = _classifier_shape(stats)
        return float(shape.passes if self.solver == "lbfgs" else shape.newton_passes)

    def priced(self, estimator: Any, stats: Stats, resources: Resources) -> Cost | str:
        shape = _classifier_shape(stats)
        if self.solver == "lbfgs":
            return classifier_plan.quasi_newton_cost(shape, resources)
        return classifier_plan.newton_cost(shape, resources)


class SupportVectors(Twin):
    """`LinearSVC` with a squared hinge loss, in the primal."""

    kinds = (svm.LinearSVC,)
    learnt = ("classes_", "coef_", "intercept_", "n_iter_")

    def twin(self, estimator: Any) -> Any:
        names = "C", "fit_intercept", "class_weight", "tol", "max_iter"
        return mlopt_svm.LinearSVC(
            dual=False, **_same(estimator, *names, "intercept_scaling")
        )

    def differs(self, estimator: Any) -> str:
        if estimator.penalty != "l2" or estimator.loss != "squared_hinge":
            return "only the squared hinge loss with an L2 penalty is smooth"
        return "" if estimator.multi_class == "ovr" else "only one class against the rest"

    def passes(self, estimator: Any, stats: Stats) -> float:
        return float(_classifier_shape(stats).passes)

    def priced(self, estimator: Any, stats: Stats, resources: Resources) -> Cost | str:
        return classifier_plan.quasi_newton_cost(_classifier_shape(stats), resources)


class LeastSquares(Twin):
    """`Ridge` and `LinearRegression`."""

    kinds: tuple[type, ...] = (linear_model.Ridge, linear_model.LinearRegression)
    learnt = ("coef_", "intercept_", "n_iter_", "rank_", "singular_")

    def fit(self, estimator: Any, rows: Rows, y: Any, weight: Any) -> Any:
        fitted = super().fit(estimator, rows, y, weight)
        if isinstance(estimator, linear_model.Ridge):
            fitted.solver_ = self.solver
        return fitted

    def twin(self, estimator: Any) -> Any:
        if isinstance(estimator, linear_model.Ridge):
            names = "alpha", "fit_intercept", "max_iter", "tol"
            return least_squares.Ridge(solver=self.solver, **_same(estimator, *names))
        return least_squares.LinearRegression(**_same(estimator, "fit_intercept"))

    def differs(self, estimator: Any) -> str:
        if estimator.positive:
            return "coefficients must be positive"
        if (
            isinstance(estimator, linear_model.LinearRegression)
            and self.solver != "cholesky"
        ):
            return "it takes the first that is exact"
        return ""

    def passes(self, estimator: Any, stats: Stats) -> float:
        if self.solver in ("sparse_cg", "sketched_cg", "block"):
            return float(_regression_shape(stats, estimator).iterations)
        return 1.0

    def priced(self, estimator: Any, stats: Stats, resources: Resources) -> Cost | str:
        options = least_squares_plan.solver_costs(
            _regression_shape(stats, estimator), resources
        )
        return options.get(self.solver, "there is no such solver")


class SignedLeastSquares(LeastSquares):
    """`RidgeClassifier`: least squares to -1 and 1, a target for each of many classes."""

    kinds = (linear_model.RidgeClassifier,)

    def fit(self, estimator: Any, rows: Rows, y: Any, weight: Any) -> Any:
        binarizer = LabelBinarizer(pos_label=1, neg_label=-1)
        signs = binarizer.fit_transform(y).astype(rows.dtype)
        if estimator.class_weight:
            balance = compute_sample_weight(estimator.class_weight, y)
            weight = balance if weight is None else weight * balance
        fitted = super().fit(estimator, rows, signs, weight)
        fitted._label_binarizer, fitted.classes_ = binarizer, binarizer.classes_
        fitted.coef_ = np.atleast_2d(fitted.coef_)
        return fitted

    def twin(self, estimator: Any) -> Any:
        names = "alpha", "fit_intercept", "max_iter", "tol"
        return least_squares.Ridge(solver=self.solver, **_same(estimator, *names))


class Components(Twin):
    """`PCA`."""

    kinds = (decomposition.PCA,)
    learnt = (
        "components_", "explained_variance_", "explained_variance_ratio_",
        "singular_values_", "mean_", "n_components_", "n_samples_", "noise_variance_",
    )  # fmt: skip

    def twin(self, estimator: Any) -> Any:
        names = "n_components", "whiten", "iterated_power", "n_oversamples", "random_state"
        return PCA(solver=self.solver, **_same(estimator, *names))

    def differs(self, estimator: Any) -> str:
        if estimator.n_components == "mle":
            return "the number of components is to be guessed"
        wanted = {
            "full": ("full-svd", "tsqr"),
            "covariance_eigh": ("covariance-eigh",),
            "arpack": ("arpack",),
            "randomized": ("randomized",),
        }.get(estimator.svd_solver)
        if wanted and self.solver not in wanted:
            return f"svd_solver={estimator.svd_solver!r} was asked for"
        return ""

    def passes(self, estimator: Any, stats: Stats) -> float:
        return 1.0 if self.solver in ("covariance-eigh", "tsqr", "full-svd") else 10.0

    def priced(self, estimator: Any, stats: Stats, resources: Resources) -> Cost | str:
        shape = _pca_shape(stats, estimator)
        if isinstance(shape, str):
            return shape
        # Where scikit-learn's own choice would not approximate, this does not either.
        free = self.solver == "randomized" and estimator.svd_solver == "auto"
        if free and not shape.may_approximate:
            return "approximate"
        return pca_plan.solver_costs(shape, resources).get(self.solver, "no such solver")


def _same(estimator: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(estimator, name) for name in names}


def _classifier_shape(stats: Stats) -> classifier_plan.Shape:
    return classifier_plan.Shape(
        n=stats.rows,
        d=stats.columns,
        columns=stats.outputs,
        nonzero=round(stats.nonzeros) if stats.sparse else stats.rows * stats.columns,
        itemsize=stats.itemsize,
        sparse=stats.sparse,
        blocks=stats.partitions,
    )


def _regression_shape(stats: Stats, estimator: Any) -> least_squares_plan.Shape:
    tol = float(getattr(estimator, "tol", 1e-4) or 0.0)
    nonzero = round(stats.nonzeros) if stats.sparse else stats.rows * stats.columns
    return least_squares_plan.Shape(
        n=stats.rows,
        d=stats.columns,
        outputs=stats.outputs,
        nonzero=nonzero,
        itemsize=stats.itemsize,
        sparse=stats.sparse,
        multiplies_sparse=stats.sparse and stats.density < 0.1,
        blocks=stats.partitions,
        tol=tol,
        ranked=False,
        accuracy=float(np.clip(tol, 1e-12, 1e-6)),
    )


def _pca_shape(stats: Stats, estimator: Any) -> pca_plan.Shape | str:
    rank, wanted = min(stats.rows, stats.columns), estimator.n_components
    whole = isinstance(wanted, int | np.integer)
    components = int(wanted) if whole else rank
    if components > rank:
        return f"{components} components of at most {rank}"
    iterations = estimator.iterated_power
    if not isinstance(iterations, int):
        iterations = 7 if components < 0.1 * rank else 4
    return pca_plan.Shape(
        rows=_regression_shape(stats, estimator),
        components=components,
        needs_all=not whole,
        oversamples=estimator.n_oversamples,
        iterations=iterations,
    )


SOLVERS = ("sparse_cg", "cholesky", "sketched_cg", "mixed_cholesky", "block", "svd")
"""Of least squares: an iterative one first, as KeystoneML has it."""

MODELS: tuple[Fit, ...] = (
    Logistic("lbfgs"),
    Logistic("newton-cholesky"),
    SupportVectors("primal"),
    *(kind(solver) for kind in (LeastSquares, SignedLeastSquares) for solver in SOLVERS),
    *map(Components, ("covariance-eigh", "randomized", "tsqr", "arpack", "full-svd")),
)
"""All of them; the first of each class is what runs when nothing is chosen."""
