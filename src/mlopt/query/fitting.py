"""The one seam between what a query asks for and who fits it.

`check`, `ready` and `fit` take a `Request`. What names steps, samples or a gradient of the
user's goes to `mlopt.query.descent`; smooth losses to `mlopt.query.planned`, where every
solver is a plan; support vector machines to their estimator.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError, UnsupportedError
from mlopt.gd.linear_model import Asked
from mlopt.gd.plans import SolverPlan
from mlopt.gd.svm import SOLVERS, LinearSVC
from mlopt.plan import Plan
from mlopt.query import descent, planned
from mlopt.query.labels import checked
from mlopt.query.model import Features, Model
from mlopt.query.request import Request

Array = NDArray[Any]


class Ready(NamedTuple):
    """How it would be fitted, and seconds in which that was found.

    What has ranked all ways need not do so again.
    """

    plan: Plan
    seconds: float
    ranked: SolverPlan | None = None


def check(request: Request) -> None:
    """Refuse what cannot be done; looks at no data.

    Raises
    ------
    UnsupportedError
        Its text names the item of the query.
    """
    if descent.wanted(request):
        descent.check(request)
        return
    loss = str(request.gradient)
    known = planned.algorithms(loss)
    if loss not in planned.LOSSES:
        known = tuple(name for name in known if name in SOLVERS)
    if request.algorithm is not None and request.algorithm not in known:
        raise UnsupportedError(
            f"ALGORITHM {request.algorithm} cannot run for the {request.gradient} loss. "
            f"Use one of {', '.join((*known, *descent.ALGORITHMS))}, or leave ALGORITHM "
            "out: the cheapest is chosen."
        )


def ready(request: Request, X: Any, y: Array, *, keeps: bool = True) -> Ready:
    """How it would be fitted, with predicted seconds; fits nothing.

    Parameters
    ----------
    request : Request
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,)
    keeps : bool, default=True
        Whether what cannot keep MAX_ITER is refused.

    Raises
    ------
    UnsupportedError, InputError
        The request or the data cannot work.
    """
    check(request)
    started = time.perf_counter()
    if descent.wanted(request):
        return Ready(descent.plan(request, X, y), time.perf_counter() - started)
    if request.gradient in planned.LOSSES:
        ranked = planned.ranked(request, X, y, keeps=keeps)
        return Ready(ranked.to_plan(), time.perf_counter() - started, ranked)
    estimator, y = _prepared(request, y)
    try:
        found: Plan = estimator.explain(X, y)
    except ValueError as error:
        raise _as_input_error(error) from error
    return Ready(found, time.perf_counter() - started)


def fit(request: Request, X: Any, y: Array, known: Ready | None = None) -> Model:
    """Fit what is asked for, the way that is predicted to be the fastest.

    Parameters
    ----------
    request : Request
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,)
    known : Ready, optional
        Of the same request but for its TIME.

    Returns
    -------
    Model
        With its plan; ``converged`` says whether the tolerance was reached.

    Raises
    ------
    UnsupportedError, InputError
        The request or the data cannot work.
    """
    check(request)
    if descent.wanted(request):
        return descent.fit(request, X, y)
    if request.gradient in planned.LOSSES:
        return planned.fit(request, X, y, known and known.ranked)
    early = list[str]()
    estimator, y = _prepared(request, y, early.append)
    try:
        estimator.fit(X, y)
    except ValueError as error:
        raise _as_input_error(error) from error
    coef, intercept = np.asarray(estimator.coef_), np.asarray(estimator.intercept_)
    if len(coef) == 1 or coef.ndim == 1:
        coef, intercept = coef.ravel(), intercept.ravel()[0]
    assert request.task is not None
    return Model(
        task=request.task,
        loss=str(request.gradient),
        coef=np.ascontiguousarray(coef.T),
        intercept=intercept,
        features=Features.numbered(X.shape[1]),
        classes=getattr(estimator, "classes_", None),
        plan=estimator.plan_,
        converged=not early,
        message=_not_reached(request, estimator) if early else "",
    )


def _prepared(
    request: Request, y: Array, told: Callable[[str], None] | None = None
) -> tuple[LinearSVC, Array]:
    """The estimator, and labels as it takes them."""
    loss = str(request.gradient)
    options: dict[str, Any] = (
        {} if request.max_iter is None else {"max_iter": request.max_iter}
    )
    # The same query gives the same model.
    svm = LinearSVC(loss=loss, tol=request.tolerance, random_state=0, **options)
    svm._asked = Asked(request.algorithm or "", request.time_limit, told)
    return svm, checked(request.task, y)


def _not_reached(request: Request, svm: LinearSVC) -> str:
    limit, others = f"within MAX_ITER {svm.max_iter}", "MAX_ITER"
    if request.time_limit is not None and svm.n_iter_ != svm.max_iter:
        limit, others = f"before TIME was over, in {svm.n_iter_} passes", "TIME"
    return (
        f"EPSILON {request.tolerance:g} was not reached {limit}: revisit {others} or "
        "EPSILON, or scale the features."
    )


def _as_input_error(error: ValueError) -> InputError:
    return error if isinstance(error, InputError) else InputError(str(error))
