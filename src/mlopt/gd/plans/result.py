"""What a run came to, of one model: how near the minimum, and how that is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.linear_training import LinearTraining
from mlopt.gd.plans.closed import LeastSquares
from mlopt.gd.plans.descent import Descent
from mlopt.gd.plans.newton_cholesky import Newton
from mlopt.gd.plans.proof import why_unproven
from mlopt.gd.plans.stop import of_minimum

if TYPE_CHECKING:
    from mlopt.gd.plans.running import Race

_MESSAGES = {
    "passes": "stopped at the limit of {passes} passes before the tolerance was reached",
    "seconds": "stopped at the limit of {seconds:g} s before the tolerance was reached",
}

PROVEN, DIRECT, ESTIMATED, NOTHING = "proven", "direct", "estimated", "nothing"
"""How it is known that a result is within the tolerance."""
Step = tuple[int, float, float]


@dataclass(frozen=True)
class Result:
    """What a run came to.

    Attributes
    ----------
    coef : ndarray of shape (d,) or (d, K)
    intercept : float or ndarray of shape (K,)
    n_iter : int
        Passes over the rows, or iterations where these touch a few rows only.
    objective : float
        At these weights, over all rows.
    history : tuple of (int, float, float)
        After each pass: passes, seconds, and how far the objective may be above its
        minimum, relative to itself, as the method sees it; infinite while that is unknown.
    seconds : float
    converged : bool
        Whether the objective is certain to be within the tolerance: ``claim`` is "proven"
        or "direct".
    message : str
        Why it stopped.
    methods : tuple of str
        The methods that were at work, in order: more than one if a plan was left.
    classes : ndarray of shape (K,) or None
    gap : float
        The objective is at most so much above its minimum, relative to it: a bound.
        Infinite where nothing proves it; 0 for what is solved directly.
    claim : str
        How that is known: "proven" by `mlopt.gd.plans.proof` or a duality gap; "direct",
        least squares without a penalty solved to rounding; "estimated", the tolerance is
        reached by the method's own rule, and nothing proves it; "nothing".
    """

    coef: NDArray[Any]
    intercept: Any
    n_iter: int
    objective: float
    history: tuple[Step, ...]
    seconds: float
    converged: bool
    message: str
    methods: tuple[str, ...]
    classes: NDArray[Any] | None = None
    gap: float = float("inf")
    claim: str = "nothing"


def result_of(race: Race) -> Result:
    """What it came to: of one model, to a gap."""
    problem, proof = race.alternative.posed, race.proof
    coef, intercept = race.training.coefficients(0)
    gap, claim = _claim(race)
    gap = of_minimum(gap)
    if proof is not None:
        intercept = proof.intercept.astype(intercept.dtype)
    many = len(coef) > 1
    return Result(
        coef=coef.T.copy() if many else coef[0],
        intercept=intercept if many else float(intercept[0]),
        n_iter=_passes(race),
        objective=_objective(race) if proof is None else proof.objective,
        history=tuple(race.gaps.steps),
        seconds=race.limits.elapsed,
        converged=claim in (PROVEN, DIRECT),
        message=_message(race, gap, claim),
        methods=tuple(race.names),
        classes=problem.classes,
        gap=gap,
        claim=claim,
    )


def _claim(race: Race) -> tuple[float, str]:
    """How far from the minimum it is at most, and how that is known."""
    training, wanted = race.training, race.wanted or 0.0
    if race.proof is not None:
        return race.proof.gap, PROVEN if race.proof.gap <= wanted else NOTHING
    reached = bool(np.all(training.converged))
    if race.alternative.method.bounds:
        return training.gap, PROVEN if training.gap <= wanted else NOTHING
    if why_unproven(race.alternative.problem) is None or not reached:
        return np.inf, NOTHING
    if isinstance(training, LeastSquares) and training.direct:
        return training.gap, DIRECT
    return np.inf, ESTIMATED


def _passes(race: Race) -> int:
    """Passes, or the steps of what takes a model to its end in one."""
    if not isinstance(race.training, LinearTraining):
        return race.passes
    return max(race.passes, int(race.training.learnt(0).get("n_iter_", 0)))


def _objective(race: Race) -> float:
    """What the training knows of its last weights; otherwise one more pass."""
    if isinstance(race.training, LinearTraining | Newton) and race.training.passes:
        return float(race.training.objective()[0])
    coef, intercept = race.training.coefficients(0)
    return race.alternative.posed.objective(coef, np.asarray(intercept))


def _message(race: Race, gap: float, claim: str) -> str:
    name, stop = race.alternative.name, race.alternative.stop
    tolerance = getattr(stop, "tolerance", 0.0)
    if claim == PROVEN:
        return f"within {gap:.1g} of the minimum, proven; {tolerance:g} was asked for"
    if claim == DIRECT:
        return f"solved by {name} to rounding, without a penalty"
    if claim == ESTIMATED:
        why = why_unproven(race.alternative.problem)
        return (
            f"estimated to be within {tolerance:g} of the minimum, by the rule of "
            f"{name}, and not certain: {why}"
        )
    if race.reason == "worst":
        unit = race.alternative.method.unit
        return (
            f"{name} stopped after {race.training.passes} {unit}, the most that it was "
            "thought to take: nothing tells how near the minimum it is"
        )
    limits, reason = race.limits, race.reason
    if limits.passes is not None and _passes(race) >= limits.passes:
        reason = "passes"  # of a training, too, that knows the limit, and is done there
    if reason in _MESSAGES:
        return _MESSAGES[reason].format(passes=limits.passes, seconds=limits.seconds)
    if isinstance(race.training, Descent) and race.training.message:
        return f"{name} {race.training.message}"
    found = "" if race.proof is None else f": it may be {gap:.1g} above the minimum"
    return f"{name} found no step that helps before the tolerance was reached{found}"
