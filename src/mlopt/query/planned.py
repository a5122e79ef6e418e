"""Queries with a smooth loss: every solver there is a plan, and the cheapest runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import ConstraintError, InputError
from mlopt.gd.plans import SolverPlan, Task, plan
from mlopt.gd.plans.methods import METHODS
from mlopt.gd.plans.result import ESTIMATED, Result
from mlopt.query.labels import checked
from mlopt.query.model import Features, Model
from mlopt.query.request import Request
from mlopt.query.words import ALGORITHMS

Array = NDArray[Any]

LOSSES = ("logistic", "squared")
_ITEMS = {"`tolerance`": "EPSILON", "`max_iter`": "MAX_ITER"}


def algorithms(loss: str) -> tuple[str, ...]:
    """Names that ALGORITHM may have for a loss."""
    losses = {loss, "multinomial"} if loss == "logistic" else {loss}
    able = (method.name for method in METHODS if method.losses & losses)
    return tuple(name for name in able if name in ALGORITHMS)


def fit(request: Request, X: Any, y: Array, found: SolverPlan | None = None) -> Model:
    """Run the cheapest, or the one that is asked for, within the limits."""
    limits = (request.time_limit, request.max_iter)
    found = replace(found or ranked(request, X, y), limits=limits)
    result = found.run()
    chosen = found.to_plan()
    if len(result.methods) > 1:
        chosen = replace(chosen, notes=(f"ran {' > '.join(result.methods)}", *chosen.notes))
    return Model(
        task=request.task or "regression",
        loss=str(request.gradient),
        coef=np.ascontiguousarray(result.coef, np.float64),
        intercept=result.intercept,
        features=Features.numbered(X.shape[1]),
        classes=result.classes,
        plan=chosen.with_measured({"fit": result.seconds}, total=result.seconds),
        converged=result.converged,
        message="" if result.converged else _not_reached(request, result),
    )


def ranked(request: Request, X: Any, y: Array, *, keeps: bool = True) -> SolverPlan:
    """All ways of fitting, with predicted seconds; MAX_ITER rules some out if it counts."""
    labels = checked(request.task, y)
    settings: dict[str, Any] = {}
    if request.algorithm is not None:
        settings["methods"] = [request.algorithm]
    try:
        return plan(
            _task(request, labels), X, labels, tolerance=request.tolerance,
            max_iter=request.max_iter if keeps else None, **settings,
        )  # fmt: skip
    except InputError as error:
        raise _renamed(error, _ITEMS) from error


def _task(request: Request, y: Array) -> Task:
    if request.gradient == "squared":
        return Task("squared")
    # scikit-learn's C = 1.
    loss = "multinomial" if len(np.unique(y)) > 2 else "logistic"
    return Task(loss, l2=1.0 / len(y))


def _renamed(error: InputError, items: Mapping[str, str]) -> InputError:
    """The error in the words of the query."""
    said, kind = str(error), InputError
    for name, item in items.items():
        if name in said:
            said, kind = said.replace(name, item), ConstraintError
    return kind(said)


def _not_reached(request: Request, result: Result) -> str:
    if result.claim == ESTIMATED:
        return f"EPSILON {request.tolerance:g} is not certain: {result.message}."
    limit = "" if request.max_iter is None else f" within MAX_ITER {request.max_iter}"
    others = "TIME, MAX_ITER" if request.time_limit is not None else "MAX_ITER"
    return (
        f"EPSILON {request.tolerance:g} was not reached{limit} ({result.message}): revisit "
        f"{others} or EPSILON, or scale the features."
    )
