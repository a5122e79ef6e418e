"""Where scikit-learn's parameters ask for another problem than mlopt's solvers have.

Each function says in a few words why the two would not minimise the same; "" when they do.
"""

from __future__ import annotations

from typing import Any

from mlopt.gd.least_squares_fit import Regressor
from mlopt.gd.logistic import norm_of

_SOFTMAX = ("deprecated", "auto", "multinomial")


def logistic_differs(estimator: Any, *, sharp: bool = False) -> str:
    """Of a `LogisticRegression`: an L2 penalty or none, the intercept left out of it.

    L1 penalties are solved, too, where ``sharp`` ones are.
    """
    if norm_of(estimator)[1] and not sharp:
        return "the penalty is not L2"
    if getattr(estimator, "solver", "auto") == "liblinear":
        return "liblinear penalises the intercept"
    if getattr(estimator, "dual", False):
        return "dual=True is of liblinear alone"
    if getattr(estimator, "multi_class", "deprecated") not in _SOFTMAX:
        return "one class against the rest"
    return "it starts where it was" if estimator.warm_start else ""


def svc_differs(estimator: Any, *, sharp: bool = False) -> str:
    """Of a `LinearSVC`: the squared hinge, which is the same in the primal and the dual.

    L1 penalties are solved, too, where ``sharp`` ones are.
    """
    smooth = estimator.penalty == "l2" or sharp
    if not smooth or estimator.loss != "squared_hinge":
        return "only the squared hinge loss with an L2 penalty is smooth"
    return "" if estimator.multi_class == "ovr" else "only one class against the rest"


_DENSE_ONLY = ("svd", "cholesky", "saga")


def squares_differ(estimator: Any) -> str:
    """Of least squares, penalised or not."""
    if estimator.positive:
        return "coefficients must be positive"
    lbfgs = getattr(estimator, "solver", "") == "lbfgs"
    return "its solver takes positive coefficients only" if lbfgs else ""


def dense_only(estimator: Any) -> bool:
    """Whether scikit-learn's `Ridge` refuses sparse rows, be it with an intercept only."""
    return getattr(estimator, "solver", "") in _DENSE_ONLY


_BY_STEPS = ("sparse_cg", "lsqr", "sag", "saga", "lbfgs")
"""scikit-learn's solvers that stop at `tol`; its others are exact."""


def solves_exactly(estimator: Any, sparse: bool) -> bool:
    """Whether scikit-learn solves least squares by a factorization, to rounding."""
    if isinstance(estimator, Regressor):
        return False  # mlopt's own: as near as it is asked
    solver = getattr(estimator, "solver", "auto")
    return not sparse if solver == "auto" else solver not in _BY_STEPS
