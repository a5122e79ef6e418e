"""`Lasso` and `ElasticNet`: scikit-learn's problems, by working sets of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn import linear_model

from mlopt.gd.estimator_base import Sample
from mlopt.gd.least_squares_fit import squares_problem
from mlopt.gd.linear_model import LinearRegressor
from mlopt.gd.passes import weighted
from mlopt.gd.plans.running import Outcome
from mlopt.gd.plans.stop import GradientNorm, Stop
from mlopt.gd.plans.task import Problem
from mlopt.gd.working_set import WAY

Array = NDArray[Any]


class ElasticNet(LinearRegressor, linear_model.ElasticNet):
    """Least squares with an L1 and an L2 penalty.

    It minimises ``sum_i c_i (y_i - x_i w - b)^2 / (2 sum_i c_i) + alpha l1_ratio ||w||_1 +
    alpha (1 - l1_ratio) / 2 ||w||^2``. The problem, the parameters and the attributes are
    those of `sklearn.linear_model.ElasticNet`. Rows are gathered in this process.

    Parameters
    ----------
    alpha : float, default=1.0
        At least 0; with 0 scikit-learn fits.
    l1_ratio : float, default=0.5
        The share of the L1 penalty, in [0, 1].
    fit_intercept : bool, default=True
        The intercept is not penalised.
    precompute : bool or array-like of shape (d, d), default=False
        Without effect, but for a matrix: scikit-learn fits with that.
    max_iter : int, default=1000
        Sweeps over all columns: one over a set of them counts as its share, a step that
        solves for the set at once as the sweeps that take as long.
    copy_X : bool, default=True
        Without effect: X is never written to.
    tol : float, default=1e-4
        Done when the duality gap is at most ``tol`` times the variance of y, without an
        intercept the mean of its squares, and no step along one column is longer than
        ``tol / 100`` times the largest coefficient.
    warm_start : bool, default=False
        Start from the last fit's coefficients.
    positive : bool, default=False
        No coefficient below 0.
    random_state, selection
        Without effect: columns are visited in their order.

    Attributes
    ----------
    coef_ : ndarray of shape (d,) or (T, d)
    intercept_ : float or ndarray of shape (T,)
    n_iter_ : int or list of T int
        Sweeps over all columns, as ``max_iter`` counts them, rounded up.
    dual_gap_ : float or ndarray of shape (T,)
        How far the objective may be above its minimum.
    plan_ : Plan
        What was run, with predicted and measured seconds.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    _kind: ClassVar[type] = linear_model.ElasticNet
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **linear_model.ElasticNet._parameter_constraints
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        precompute: Any = False,
        max_iter: int = 1000,
        copy_X: bool = True,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.copy_X = copy_X
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True
    ) -> ElasticNet:
        """Fit to X and y, as all linear models; ``check_input`` is without effect."""
        del check_input
        return self._fitted(X, y, sample_weight)

    def _not_ours(self) -> str:
        if self.alpha == 0:
            return "`alpha`=0 is least squares without a penalty: see `LinearRegression`"
        return "" if isinstance(self.precompute, bool) else "`precompute` is a matrix"

    @property
    def _by_columns(self) -> bool:
        return True

    def _asks(self, problem: Problem) -> tuple[str, Stop, Mapping[str, str]]:
        return "auto", GradientNorm(self.tol), {}

    def _methods(self) -> tuple[str, ...]:
        return (WAY,)

    def _problem(self, sample: Sample) -> Problem:
        targets = sample.y.reshape(sample.rows.n, -1)
        l1, l2 = self.alpha * self.l1_ratio, self.alpha * (1.0 - self.l1_ratio)
        rows = weighted(sample.rows, targets, sample.weights[:, None])
        penalties = [l2] * targets.shape[1]
        return squares_problem(rows, penalties, self.fit_intercept, self.positive, l1)

    def _learn(self, given: Sample, outcome: Outcome) -> tuple[str, ...]:
        single = len(outcome.coef) == 1
        gaps = np.array([found["dual_gap_"] for found in outcome.learnt])
        sweeps = [found["n_iter_"] for found in outcome.learnt]
        self.n_iter_: Any = sweeps[0] if single else sweeps
        self.dual_gap_ = gaps[0] if single else gaps
        return super()._learn(given, outcome)

    def _what_lacks(self, outcome: Outcome, limit: int) -> str:
        gap = max(found["dual_gap_"] for found in outcome.learnt)
        sweeps = max(found["n_iter_"] for found in outcome.learnt)
        return (
            "Objective did not converge. You might want to increase the number of "
            f"iterations (`max_iter`={limit}) or `tol`, or to scale the features: after "
            f"{sweeps} sweeps the duality gap is {gap:.3g}, more than `tol`={self.tol} "
            "asks for."
        )


class Lasso(ElasticNet, linear_model.Lasso):
    """Least squares with an L1 penalty: `ElasticNet` with ``l1_ratio=1``.

    The problem, the parameters and the attributes are those of
    `sklearn.linear_model.Lasso`; see `ElasticNet`.
    """

    _kind: ClassVar[type] = linear_model.Lasso
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **linear_model.Lasso._parameter_constraints
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        precompute: Any = False,
        copy_X: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
    ) -> None:
        super().__init__(
            alpha,
            l1_ratio=1.0,
            fit_intercept=fit_intercept,
            precompute=precompute,
            max_iter=max_iter,
            copy_X=copy_X,
            tol=tol,
            warm_start=warm_start,
            positive=positive,
            random_state=random_state,
            selection=selection,
        )
