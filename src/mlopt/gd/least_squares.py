"""`LinearRegression` and `Ridge`: scikit-learn's problems, solved the cheapest way."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn import linear_model
from sklearn.utils._param_validation import StrOptions

from mlopt.gd.estimator_base import Sample
from mlopt.gd.least_squares_fit import SOLVERS, Regressor, Settings, accuracy_of
from mlopt.gd.plans.running import Outcome

_POSITIVE = "`positive`=True"
_THEIRS = ("lsqr", "sag", "saga", "lbfgs")


class Ridge(Regressor, linear_model.Ridge):
    """Least squares with an L2 penalty: ``||y - Xw||^2 + alpha ||w||^2``.

    The problem, the parameters and the attributes are those of
    `sklearn.linear_model.Ridge`.

    Parameters
    ----------
    alpha : float or array-like of shape (T,), default=1.0
        Penalty, at least 0; one for each target if an array.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    copy_X : bool, default=True
        Without effect: X is never written to.
    max_iter : int, optional
        Steps of conjugate gradients. Default: 1000.
    tol : float, default=1e-4
        "sparse_cg" stops when the gradient's norm is ``tol`` times that at zero and, with a
        penalty, coefficients are certain to be good to ``tol`` in the norm of ``X'X +
        alpha``. The other
        solvers are exact, or iterate until coefficients are good to a relative 1e-7, or
        to ``tol / 10`` where that is less.
    solver : str, default="auto"
        "cholesky": normal equations, one pass. "svd": a tall-skinny QR and the singular
        values of its factor, one pass. "sparse_cg": conjugate gradients. "sketched_cg":
        conjugate gradients preconditioned by the Gram matrix of a sample of the rows, or
        by a randomized sketch where there are too few rows or too many columns.
        "mixed_cholesky": normal equations in float32, refined in float64.
        "dual_cholesky": a variable for each row, where there are fewer of these than
        columns. The last three need a positive ``alpha``, "mixed_cholesky" dense rows.
        "auto" takes the one with the least predicted time; for dense rows "sparse_cg" only
        where nothing else can be used. "lsqr", "sag", "saga" and "lbfgs" are
        scikit-learn's own.
    positive : bool, default=False
        No coefficient below 0: working sets of columns, in this process, until the duality
        gap and the longest step along a column are within ``min(tol, 1e-6)``. Without a
        penalty, ``alpha=0``, scikit-learn fits, in memory, and the plan says so.
    random_state : int, RandomState or None, default=None
        Of scikit-learn's solvers: samples and sketches are the same at every call.

    Attributes
    ----------
    coef_ : ndarray of shape (d,) or (T, d)
    intercept_ : float or ndarray of shape (T,)
    n_iter_ : ndarray of shape (T,)
        Steps of conjugate gradients; ones for the solvers that need one pass.
    solver_ : str
        The solver that found the solution.
    plan_ : Plan
        What was chosen and rejected, with predicted and measured seconds.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    _kind = linear_model.Ridge
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **linear_model.Ridge._parameter_constraints,
        "solver": [StrOptions({"auto", *SOLVERS, *_THEIRS})],
    }

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        solver: str = "auto",
        positive: bool = False,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.positive = positive
        self.random_state = random_state

    def _not_ours(self) -> str:
        if self.positive:
            return "" if self.solver == "auto" and np.all(self.alpha) else _POSITIVE
        return f"`solver`={self.solver!r}" if self.solver in _THEIRS else ""

    def _settings(self) -> Settings:
        return Settings(self.alpha, accuracy_of(self.tol))


class LinearRegression(Regressor, linear_model.LinearRegression):
    """Ordinary least squares; of several solutions, the one of least norm.

    The problem, the parameters and the attributes are those of
    `sklearn.linear_model.LinearRegression`.

    Parameters
    ----------
    fit_intercept : bool, default=True
    copy_X : bool, default=True
        Without effect: X is never written to.
    tol : float, default=1e-6
        Singular values below ``tol`` times the largest count as zero; conjugate gradients
        stop when the gradient's norm is ``tol`` times that at zero.
    n_jobs : int, optional
        Threads when no Dask client is active; None or -1 for all cores.
    positive : bool, default=False
        No coefficient below 0: fitted by scikit-learn, in memory, and the plan says so.
    solver : {"auto", "cholesky", "svd", "sparse_cg"}, default="auto"
        See `Ridge`. "cholesky" goes over to "svd" by itself where the features are nearly
        dependent.
    max_iter : int, optional
        Steps of conjugate gradients. Default: 1000.

    Attributes
    ----------
    coef_ : ndarray of shape (d,) or (T, d)
    intercept_ : float or ndarray of shape (T,)
    rank_ : int
        Rank of the centred X; absent after "sparse_cg".
    singular_ : ndarray of shape (min(n, d),)
        Singular values of the centred X; absent after "sparse_cg".
    n_iter_, solver_, plan_, n_features_in_, feature_names_in_
        See `Ridge`.
    """

    _kind = linear_model.LinearRegression
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **linear_model.LinearRegression._parameter_constraints,
        "solver": [StrOptions({"auto", *SOLVERS})],
        "max_iter": linear_model.Ridge._parameter_constraints["max_iter"],
    }

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        positive: bool = False,
        solver: str = "auto",
        max_iter: int | None = None,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.tol = tol
        self.n_jobs = n_jobs
        self.positive = positive
        self.solver = solver
        self.max_iter = max_iter

    def _learn(self, given: Sample, outcome: Outcome) -> tuple[str, ...]:
        for name in ("rank_", "singular_"):
            self.__dict__.pop(name, None)
            if name in outcome.learnt[0]:
                setattr(self, name, outcome.learnt[0][name])
        if "singular_" in vars(self):  # of rows without a weight, none were looked at
            found = vars(self)["singular_"]
            lacking = min(given.rows.n, given.rows.d) - len(found)
            self.singular_ = np.pad(found, (0, max(0, lacking)))
        return super()._learn(given, outcome)

    def _not_ours(self) -> str:
        return _POSITIVE if self.positive else ""

    def _settings(self) -> Settings:
        return Settings(0.0, accuracy=1e-10, cutoff=self.tol)
