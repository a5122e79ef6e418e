"""`LinearSVC`: LIBLINEAR's problems, in the primal or in the dual, whichever is faster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import svm
from sklearn.utils import check_random_state

from mlopt.gd.columns import Model
from mlopt.gd.estimator_base import Sample
from mlopt.gd.linear_model import LinearClassifier
from mlopt.gd.passes import first_gradient, weighted
from mlopt.gd.plans.running import Outcome
from mlopt.gd.plans.stop import GradientNorm, Stop
from mlopt.gd.plans.task import Problem, Task
from mlopt.gd.working_set import WAY

Array = NDArray[Any]

_PRIMAL = ("newton-cholesky", "dual-newton", "lbfgs", "newton-cg")
_DUAL = "dual-coordinate-descent"
SOLVERS = (*_PRIMAL, _DUAL)
"""Methods of the table that fit it."""
_NAMES = {"auto": SOLVERS, False: _PRIMAL, True: (_DUAL,)}
SLOW = "fewer features than rows: it may take any number of passes"
"""Why the dual is not chosen."""


class LinearSVC(LinearClassifier, svm.LinearSVC):
    """Linear support vector machine; one class against the others for more than two.

    It minimises ``1/2 ||w||^2 + C sum_i c_i loss_i``, where the intercept counts as the
    weight of a constant feature. The problem, the parameters and the attributes are those
    of `sklearn.svm.LinearSVC`.

    Parameters
    ----------
    penalty : {"l2", "l1"}, default="l2"
        "l1", for the squared hinge loss in the primal: ``||w||_1 + C sum_i c_i loss_i`` by
        working sets of columns, in this process, until the duality gap of each plane is at
        most ``tol / 100`` of its objective.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
    dual : bool or "auto", default="auto"
        True: dual coordinate descent. False: quasi-Newton on the primal, or Newton's steps,
        with a Hessian or with products of it, for the squared hinge only. "auto": for the
        squared hinge, and where there are no fewer features than rows, the one with the
        least predicted time; otherwise the only one that suits.
    tol : float, default=1e-4
        In the primal, done when no component of the gradient of the mean loss plus penalty
        is larger than ``tol`` times the largest at zero, or than ``tol``; of several
        classes, the least of these counts. In the dual, when no variable violates its
        optimality by more; with an L1 penalty see ``penalty``.
    C : float, default=1.0
        Inverse of the penalty, positive.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        "crammer_singer" is fitted by scikit-learn.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=1.0
        Value of the constant feature: the larger, the less the intercept is penalised.
    class_weight : dict, "balanced" or None, default=None
        With more than two classes, the weight of a class counts where it is the one against
        the others, as in LIBLINEAR.
    verbose : int, default=0
        Above 0, writes the plan to stderr when done.
    random_state : int, RandomState or None, default=None
        Of the order of rows in the dual.
    max_iter : int, default=1000
        Passes over the rows at most; with an L1 penalty Newton steps over sets of columns.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    coef_ : ndarray of shape (1, d) or (K, d)
    intercept_ : ndarray of shape (1,) or (K,); 0.0 without an intercept
    n_iter_ : int
        Passes over the rows, or Newton steps over sets of columns.
    plan_ : Plan
        What was chosen and rejected, with predicted and measured seconds.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    _kind = svm.LinearSVC
    _solver: str = "auto"
    """One of `_methods`, where a pipeline has chosen."""

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: bool | str = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter

    def _learn(self, given: Sample, outcome: Outcome) -> tuple[str, ...]:
        self.n_iter_ = max(outcome.passes, 1)
        told = super()._learn(given, outcome)
        # Of float32 rows, too: LIBLINEAR knows nothing else.
        self.coef_ = np.ascontiguousarray(outcome.coef, np.float64)
        self.intercept_: Any = 0.0
        if self.fit_intercept:
            self.intercept_ = outcome.intercept.astype(np.float64)
        return told

    @property
    def _by_columns(self) -> bool:
        return self.loss == "hinge" or self.penalty == "l1"

    @property
    def _planes(self) -> int:
        classes = len(self.classes_)
        return classes if classes > 2 else 1

    def _not_ours(self) -> str:
        if self.penalty != "l2" and (self.loss == "hinge" or self.dual is True):
            return f"`penalty`={self.penalty!r}"
        if self.multi_class != "ovr":
            return f"`multi_class`={self.multi_class!r}"
        if self.loss == "hinge" and self.dual is False:
            return "`dual`=False for the hinge loss"
        return "`max_iter`=0" if self.max_iter == 0 else ""

    def _asks(self, problem: Problem) -> tuple[str, Stop, Mapping[str, str]]:
        smooth, rows = self.loss == "squared_hinge", problem.rows
        if not smooth or set(_PRIMAL).isdisjoint(self._methods()):
            return self._solver, GradientNorm(self.tol), {}
        tall = rows.d < rows.n and _PRIMAL[0] in self._methods()
        first = first_gradient(rows, problem.models, problem.sums)
        return self._solver, GradientNorm(self.tol, first), {_DUAL: SLOW} if tall else {}

    def _methods(self) -> tuple[str, ...]:
        return (WAY,) if self.penalty == "l1" else _NAMES[self.dual]

    def _problem(self, sample: Sample) -> Problem:
        """One model of K columns; or K models where classes have weights of their own."""
        codes = self._encode(sample.y, sample.weights)
        costs = self._class_weights(codes, sample.weights)
        if self._planes > 1 and (costs == 1.0).all() and self.penalty == "l2":
            targets, weights = codes[:, None], sample.weights[:, None]
        else:
            targets, weights = self._against_the_rest(sample, codes, costs)
        outputs = self._planes // targets.shape[1]
        totals, planes = weights.sum(axis=0), range(targets.shape[1])
        sets = planes if len(totals) > 1 else [0] * len(planes)
        models = [
            self._model(float(totals[rowset]), number, rowset, outputs)
            for number, rowset in zip(planes, sets, strict=True)
        ]
        rows = weighted(sample.rows, targets, weights)
        random = check_random_state(self.random_state if self._draws else 0)
        seed = int(random.randint(2**31))
        return Problem(Task.of(models[0]), rows, tuple(models), seed=seed)

    def _against_the_rest(
        self, sample: Sample, codes: Array, costs: Array
    ) -> tuple[Array, Array]:
        """Targets -1 and 1, (n, planes), and weights of the rows: of each plane, or of all
        where classes weigh the same.
        """
        if self._planes == 1:
            signs = np.where(codes == 1, 1.0, -1.0)
            return signs[:, None], (sample.weights * costs[codes])[:, None]
        own = codes[:, None] == np.arange(self._planes)
        if (costs == 1.0).all():
            return np.where(own, 1.0, -1.0), sample.weights[:, None]
        weights = sample.weights[:, None] * np.where(own, costs, 1.0)
        return np.where(own, 1.0, -1.0), weights

    def _model(self, weight: float, number: int, rowset: int, outputs: int) -> Model:
        strength, scaling = self._penalty(weight, self.C), self.intercept_scaling
        own: dict[str, Any] = {"l2": strength, "intercept_l2": strength / scaling**2}
        if self.penalty == "l1":
            own = {"l2": 0.0, "l1": strength}
            if self.fit_intercept:
                own["intercept_l1"] = strength / scaling
        return Model(
            self.loss, rowset=rowset, target=number, outputs=outputs,
            fit_intercept=self.fit_intercept, **own,
        )  # fmt: skip
