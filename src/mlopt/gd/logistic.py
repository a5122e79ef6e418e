"""`LogisticRegression`: scikit-learn's problem, by few passes over all rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn import linear_model
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from mlopt.errors import InputError
from mlopt.gd.columns import Model
from mlopt.gd.estimator_base import Sample
from mlopt.gd.linear_model import LinearClassifier, decide
from mlopt.gd.passes import weighted
from mlopt.gd.plans.dual_logistic import DUAL_LOGISTIC
from mlopt.gd.plans.running import Outcome
from mlopt.gd.plans.stop import GradientNorm, Stop
from mlopt.gd.plans.task import Problem, Task
from mlopt.gd.sample import hessian_rows
from mlopt.gd.working_set import WAY

Array = NDArray[Any]

_SAME = "with two classes, lbfgs starts from the same Hessian"
NAMED = ("newton-cholesky", "dual-newton", "lbfgs")
"""Those that users may ask for, which are then not left for another."""
SOLVERS = (*NAMED, "newton-cg", DUAL_LOGISTIC.name)
"""Methods of the table that fit it without an L1 penalty."""
_OURS = ("auto", *NAMED)
_THEIRS = ("liblinear", "newton-cg", "sag", "saga")


class LogisticRegression(LinearClassifier, linear_model.LogisticRegression):
    """Logistic regression with an L2 or L1 penalty; softmax for more than two classes.

    It minimises ``C sum_i c_i loss_i + 1/2 ||w||^2``, where ``c`` are the sample weights
    times the class weights. The problem, the parameters and the attributes are those of
    `sklearn.linear_model.LogisticRegression`.

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the penalty, positive; ``np.inf`` for none.
    l1_ratio : float, default=0.0
        Share of the L1 penalty, in [0, 1]: ``C sum_i c_i loss_i + l1_ratio ||w||_1 +
        (1 - l1_ratio)/2 ||w||^2``. It goes by working sets of columns, in this process,
        until the duality gap is at most ``tol / 100`` of the objective.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    class_weight : dict, "balanced" or None, default=None
    tol : float, default=1e-4
        Done when no component of the gradient of the mean loss plus penalty is larger;
        with an L1 penalty see ``l1_ratio``.
    max_iter : int, default=100
        Passes over the rows at most; with an L1 penalty Newton steps over sets of columns.
    warm_start : bool, default=False
        Start from the last fit's coefficients.
    solver : {"auto", "lbfgs", "newton-cholesky", "dual-newton"}, default="auto"
        "lbfgs": quasi-Newton, with the curvature of a sample of the rows to start from.
        "newton-cholesky": the Hessian of all classes together, from a sample where rows are
        many. "dual-newton": the same in as many unknowns as there are rows, at most as many
        as columns. "auto" takes the one with the least predicted time, or products with
        the Hessian, which is then never made, or the variables of the dual one by one,
        where rows have little in common. With "liblinear", "newton-cg", "sag", "saga", or
        parameters that mlopt has no solver for, scikit-learn fits, in memory, and the plan
        says so.
    penalty : {"l2", "l1", "elasticnet", None}, optional
        scikit-learn's older words for ``l1_ratio`` 0, 1, as given, and an infinite ``C``.
    dual, intercept_scaling
        Of scikit-learn's solver "liblinear"; the others refuse the former, and have no use
        for the latter.
    random_state : int, RandomState or None, default=None
        Of scikit-learn's solvers; the others are not random.
    n_jobs : int, optional
        Threads when no Dask client is active; None or -1 for all cores.
    verbose : int, default=0
        Above 0, writes the plan to stderr when done.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    coef_ : ndarray of shape (1, d) or (K, d)
    intercept_ : ndarray of shape (1,) or (K,)
    n_iter_ : ndarray of shape (1,)
        Passes over the rows, or Newton steps over sets of columns.
    plan_ : Plan
        What was run, with predicted and measured seconds.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    _kind = linear_model.LogisticRegression
    _solver: str = "auto"
    """One of `_methods`, where a pipeline has chosen."""
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **linear_model.LogisticRegression._parameter_constraints,
        "solver": [StrOptions({*_OURS, *_THEIRS})],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 100,
        warm_start: bool = False,
        solver: str = "auto",
        penalty: Any = "deprecated",
        dual: bool = False,
        intercept_scaling: float = 1.0,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.solver = solver
        self.penalty = penalty
        self.dual = dual
        self.intercept_scaling = intercept_scaling
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def predict_proba(self, X: Any) -> Any:
        """Probability of each class.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask array or dask dataframe, (n, d)

        Returns
        -------
        ndarray or lazy dask array of shape (n, K)
        """
        check_is_fitted(self)
        return self._apply(_probabilities, X)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of `predict_proba`, shape (n, K)."""
        return np.log(self.predict_proba(X))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to X and y; see `LinearModel.fit`."""
        if self.penalty != "deprecated" and not self._not_ours():  # else scikit-learn tells
            self._tell_of_penalty()
        return super().fit(X, y, sample_weight)

    def _tell_of_penalty(self) -> None:
        """Warn as scikit-learn does of its older words."""
        penalty = self.penalty
        warnings.warn(
            f"'penalty' was deprecated in version 1.8 of scikit-learn, got {penalty!r}: "
            "give l1_ratio, 0 for L2 and 1 for L1, and C=np.inf for no penalty.",
            FutureWarning,
            stacklevel=3,
        )
        said = ""
        if penalty is None and self.C != 1.0:
            said = "Setting penalty=None will ignore the C and l1_ratio parameters"
        elif penalty in ("l1", "l2") and self.l1_ratio != (penalty == "l1"):
            said = f"Inconsistent values: penalty={penalty} with l1_ratio={self.l1_ratio}"
        if said:
            warnings.warn(f"{said}: the penalty counts.", UserWarning, stacklevel=3)

    def _not_ours(self) -> str:
        if self.l1_ratio is None:
            return "`l1_ratio`=None"
        if norm_of(self)[1] and self.solver != "auto":
            asked = "penalty" if self.penalty == "l1" else "l1_ratio"
            return f"`{asked}`={getattr(self, asked)!r} with `solver`={self.solver!r}"
        if self.solver not in _OURS:
            return f"`solver`={self.solver!r}"
        if self.dual:
            return "`dual`=True"
        if self.max_iter == 0:
            return "`max_iter`=0"
        return "it reports to callbacks" if getattr(self, "_skl_callbacks", None) else ""

    def _theirs(self) -> dict[str, Any]:
        shrinks = norm_of(self)[1]
        if shrinks and self.solver in NAMED:
            raise InputError(
                f"Solver {self.solver} supports only 'l2' or None penalties, got an L1 "
                f"share of {shrinks}: leave `solver`='auto', which goes by working sets of "
                "columns, or give 'saga'."
            )
        usual = "saga" if shrinks else "lbfgs"
        return {"solver": usual if self.solver == "auto" else self.solver, "n_jobs": None}

    def _problem(self, sample: Sample) -> Problem:
        codes = self._encode(sample.y, sample.weights)
        weights = sample.weights * self._class_weights(codes, sample.weights)[codes]
        classes = len(self.classes_)
        loss, outputs = ("multinomial", classes) if classes > 2 else ("logistic", 1)
        targets = codes if outputs > 1 else np.where(codes == 1, 1.0, -1.0)
        C, l1 = norm_of(self)
        total = self._penalty(float(weights.sum()), C)
        model = Model(
            loss, (1.0 - l1) * total, outputs=outputs, fit_intercept=self.fit_intercept,
            l1=l1 * total,
        )  # fmt: skip
        rows = weighted(sample.rows, targets[:, None], weights[:, None])
        return Problem(Task.of(model), rows, (model,))

    def _asks(self, problem: Problem) -> tuple[str, Stop, Mapping[str, str]]:
        wanted = self._solver if self.solver == "auto" else self.solver
        aside = _left_out(problem)
        if self._start(problem) is not None:
            aside[DUAL_LOGISTIC.name] = "it cannot start from the last coefficients"
        return wanted, GradientNorm(self.tol), aside

    def _methods(self) -> tuple[str, ...]:
        return (WAY,) if norm_of(self)[1] else SOLVERS

    def _learn(self, given: Sample, outcome: Outcome) -> tuple[str, ...]:
        self.n_iter_ = np.array([max(outcome.passes, 1)], np.int32)
        if len(outcome.coef) > 1:
            outcome = settled(outcome, sharp=bool(norm_of(self)[1]))
        return super()._learn(given, outcome)


def norm_of(estimator: Any) -> tuple[float, float]:
    """``C``, infinite for no penalty, and the share of L1, in whichever words.

    Of a classifier of mlopt or scikit-learn with a ``C``.
    """
    penalty = getattr(estimator, "penalty", "deprecated")
    C = np.inf if penalty is None else float(estimator.C)
    given = getattr(estimator, "l1_ratio", 0.0)
    share = {"l2": 0.0, "l1": 1.0}.get(penalty, given or 0.0)
    return C, 0.0 if np.isinf(C) else float(share)


def _left_out(problem: Problem) -> dict[str, str]:
    """Sparse rows with few values have exact Hessians at little cost."""
    rows = problem.rows
    exact = rows.sparse and hessian_rows(rows.n, rows.d, 1, rows.nonzero / rows.n) == rows.n
    same = problem.outputs == 1 and not exact and not problem.sharp
    return {"newton-cholesky": _SAME} if same else {}


def settled(outcome: Outcome, *, sharp: bool) -> Outcome:
    """Softmax does not see what all classes share; without it the L2 penalty is least."""
    coef, intercept = outcome.coef, outcome.intercept
    coef = coef if sharp else coef - coef.mean(axis=0)
    return replace(outcome, coef=coef, intercept=intercept - intercept.mean())


def _probabilities(X: Any, coef: Array, intercept: Array) -> Array:
    margins = decide(X, coef, intercept)
    if margins.ndim == 1:
        return np.column_stack((expit(-margins), expit(margins)))
    return np.asarray(softmax(margins, axis=1))
