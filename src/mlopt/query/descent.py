"""Queries that say how to descend: by an algorithm of ML4all, or a gradient of one's own.

The seven operators of `mlopt.gd.operators` run on rows in memory; ALGORITHM, STEP, SAMPLER
and CONVERGENCE replace one of them each.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError, UnsupportedError
from mlopt.gd.operators import (
    Algorithm,
    Gradient,
    MatrixSource,
    Settings,
    UserGradient,
    references,
)
from mlopt.gd.operators.references import SAMPLINGS
from mlopt.gd.operators.stopping import AverageDelta, GradientNorm, ObjectiveDecrease
from mlopt.gd.operators.updates import InverseRoot
from mlopt.plan import Choice, Plan
from mlopt.query.labels import checked
from mlopt.query.model import Features, Model
from mlopt.query.request import Function, Request

Array = NDArray[Any]

ALGORITHMS = ("BGD", "MGD", "SGD", "SVRG")
"""Those that a query can name beside the solvers of estimators."""
_SAMPLED: Mapping[str, Any] = {
    "MGD": references.mgd,
    "SGD": references.sgd,
    "SVRG": references.svrg,
}
_MAX_ITER = 1000
"""Passes of a query that gives no MAX_ITER, as in ML4all."""
_SAMPLER = "shuffled_partition"
_MEASURES: Mapping[type, str] = {
    GradientNorm: "norm of the gradient",
    ObjectiveDecrease: "gain of an iteration",
    AverageDelta: "change of the mean weights",
}
"""What EPSILON is compared with, where the query gives no CONVERGENCE."""


def wanted(request: Request) -> bool:
    """Whether a query says how to descend."""
    steps = (request.step, request.sampler, request.convergence)
    own = isinstance(request.gradient, Function)
    return own or request.algorithm in ALGORITHMS or any(s is not None for s in steps)


def check(request: Request) -> None:
    """Refuse what does not go together; looks at no data.

    Raises
    ------
    UnsupportedError
        Its text names the item of the query.
    """
    algorithm = _algorithm(request)
    if algorithm not in ALGORITHMS:
        raise UnsupportedError(
            f"ALGORITHM {algorithm} has no gradients, steps or samples of one's own: use "
            f"one of {', '.join(ALGORITHMS)} with them."
        )
    if request.sampler is not None and algorithm == "BGD":
        raise UnsupportedError(
            f"SAMPLER {request.sampler} has nothing to do: BGD uses all rows in every "
            "iteration. Name ALGORITHM MGD, SGD or SVRG, or leave SAMPLER out."
        )
    if isinstance(request.sampler, Function) and algorithm == "SVRG":
        raise UnsupportedError(
            f"SAMPLER {request.sampler} cannot be combined with SVRG, which alternates all "
            f"rows with samples: use one of {', '.join(_samplings())}."
        )


def _algorithm(request: Request) -> str:
    """That of the query, or one that has a use for its other items."""
    return request.algorithm or ("BGD" if request.sampler is None else "MGD")


def plan(request: Request, X: Any, y: Array) -> Plan:
    """What would run; how many iterations it takes is not predicted."""
    targets(request, y)
    return _planned(request, build(request), X)


def _planned(request: Request, algorithm: Algorithm, X: Any) -> Plan:
    chosen = f"{algorithm.name}, at most {algorithm.max_iter} iterations"
    notes = ["chosen by the query"]
    if measure := _MEASURES.get(type(algorithm.converge)):
        notes.append(f"EPSILON is of the {measure}: no proof of a distance")
    step = Choice("fit", f"{request.gradient}", chosen, notes=tuple(notes))
    return Plan(f"descend on {X.shape[0]} x {X.shape[1]}", (step,))


def fit(request: Request, X: Any, y: Array) -> Model:
    """Descend until EPSILON, MAX_ITER or TIME ends it.

    Raises
    ------
    InputError
        The labels do not fit, or a function of the user's returns what cannot be used.
    """
    numbers, classes = targets(request, y)
    started = time.perf_counter()
    algorithm = build(request)
    result = algorithm.run(MatrixSource(X, numbers), time_limit=request.time_limit)
    seconds = time.perf_counter() - started
    coef, intercept = np.asarray(result.coef, np.float64), float(result.intercept)
    if result.diverged or not np.isfinite([*coef, intercept]).all():
        why = result.message if result.diverged else "diverged"
        raise InputError(
            f"A descent must come down, but it {why}: give a smaller STEP, or scale the "
            "features."
        )
    found = _planned(request, algorithm, X).with_measured({"fit": seconds}, total=seconds)
    return Model(
        task=request.task or "regression",
        loss=str(request.gradient),
        coef=coef,
        intercept=intercept,
        features=Features.numbered(X.shape[1]),
        classes=classes,
        plan=found,
        converged=result.converged,
        message="" if result.converged else _ended(request, result.message),
    )


def build(request: Request) -> Algorithm:
    """The algorithm that a query describes."""
    compute: Any
    if isinstance(request.gradient, Function):
        compute = UserGradient(request.gradient.call)
    else:
        compute = Gradient(request.gradient, fit_intercept=True)
    settings = Settings(
        compute=compute,
        step=_step(request.step),
        tolerance=request.tolerance,
        max_iter=request.max_iter or _MAX_ITER,
    )
    algorithm = _assembled(request, settings)
    if request.convergence is not None:
        return replace(algorithm, converge=request.convergence.call)
    stochastic = _algorithm(request) in ("MGD", "SGD")
    if stochastic and isinstance(request.gradient, Function):
        # Only the weights can be watched where the objective is not known.
        return replace(algorithm, converge=AverageDelta())
    return algorithm


def _assembled(request: Request, settings: Settings) -> Algorithm:
    name = _algorithm(request)
    if name not in _SAMPLED:
        return references.bgd(settings)
    own = request.sampler if isinstance(request.sampler, Function) else None
    sampling = _samplings()[
        _SAMPLER if own or not request.sampler else str(request.sampler)
    ]
    built: Algorithm = _SAMPLED[name](settings, sampling)
    return built if own is None else replace(built, sample=own.call)


def _samplings() -> dict[str, Any]:
    return {name.replace("-", "_"): sampler for name, sampler in SAMPLINGS.items()}


def _step(step: float | Function | None) -> Any:
    if isinstance(step, Function):
        return step.call
    return InverseRoot() if step is None else InverseRoot(step)


def targets(request: Request, y: Array) -> tuple[NDArray[np.float64], Array | None]:
    """Labels as numbers, -1 and 1 for two classes; and the classes.

    Raises
    ------
    InputError
        Other than two classes where two are needed, or labels that are not numbers.
    """
    if request.task == "classification":
        classes, codes = np.unique(checked(request.task, y), return_inverse=True)
        if len(classes) != 2:
            way = "leave ALGORITHM, STEP, SAMPLER and CONVERGENCE out"
            raise InputError(
                f"{_algorithm(request)} separates two classes and the label has "
                f"{len(classes)}: {way if len(classes) > 2 else 'name another column'}."
            )
        return np.where(codes == 1, 1.0, -1.0), classes
    return checked(request.task, y), None


def _ended(request: Request, message: str) -> str:
    limit = request.max_iter or _MAX_ITER
    return (
        f"EPSILON {request.tolerance:g} was not reached ({message}): revisit MAX_ITER "
        f"({limit}), STEP or EPSILON, or scale the features."
    )
