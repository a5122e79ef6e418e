"""A plan at work: run to its end, or left for another that goes on from its weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import between_passes
from mlopt.gd.linear_training import LinearTraining
from mlopt.gd.newton import Newton
from mlopt.gd.plans.closed import LeastSquares
from mlopt.gd.plans.descent import Descent
from mlopt.gd.plans.dual_gap import DualGap
from mlopt.gd.plans.method import Method, Solver, Start
from mlopt.gd.plans.proof import Proof, prove, why_unproven
from mlopt.gd.plans.speculation import Passes
from mlopt.gd.plans.task import Problem
from mlopt.training import Limits

_MOST = {"passes": 10_000, "iterations": 10_000_000}
"""Of each unit, where the caller sets no limit."""
_MESSAGES = {
    "passes": "stopped at the limit of {passes} passes before the tolerance was reached",
    "seconds": "stopped at the limit of {seconds:g} s before the tolerance was reached",
}

PROVEN, DIRECT, ESTIMATED, NOTHING = "proven", "direct", "estimated", "nothing"
"""How it is known that a result is within the tolerance."""
_TIGHTER, _TIGHTEST, _LEAST = 0.5, 1e-3, 1e-16
"""Of what a proof found lacking, the share that a method is asked for next; by how much at
most at once; and what is beyond rounding."""

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
        minimum, relative to it, as the method sees it; infinite while that is unknown.
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
        The objective is at most so much above its minimum, relative to itself: a bound.
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


@dataclass(frozen=True, eq=False)
class Alternative:
    """One way of solving the task.

    Attributes
    ----------
    name : str
    passes : Passes
    predicted_seconds : float
    interval : (float, float)
        Seconds for the fewest and the most passes to expect.
    """

    name: str
    method: Method
    problem: Problem
    tolerance: float
    passes: Passes
    predicted_seconds: float
    interval: tuple[float, float]

    def run(
        self, *, time_limit: float | None = None, max_iter: int | None = None
    ) -> Result:
        """Solve the task this way, whatever it takes.

        Parameters
        ----------
        time_limit : float, optional
            Seconds.
        max_iter : int, optional
            Passes at most.
        """
        return solve([self], time_limit=time_limit, max_iter=max_iter)


def solve(
    alternatives: Sequence[Alternative],
    *,
    time_limit: float | None = None,
    max_iter: int | None = None,
) -> Result:
    """Run the first alternative; leave it when it proves worse than thought.

    The best of those after it that can start from its weights then goes on.

    Parameters
    ----------
    alternatives : sequence of Alternative
        For the same problem, the best first.
    time_limit : float, optional
        Seconds.
    max_iter : int, optional
        Passes at most, of all that are run.
    """
    most = max(_MOST[a.method.unit] for a in alternatives)
    limits = Limits(passes=max_iter or most, seconds=time_limit)
    able = [a for a in alternatives[1:] if a.method.continues]
    with between_passes():
        race = _Race(alternatives[0], limits)
        for following in able:
            if race.run(give_up=True):
                break
            race.leave_for(following)
        race.run(give_up=False)
        return race.result()


@dataclass(eq=False)
class _Race:
    """The alternative at work, and what the ones before it have spent."""

    alternative: Alternative
    limits: Limits
    training: Solver = field(init=False)
    names: list[str] = field(default_factory=list)
    history: list[Step] = field(default_factory=list)
    before: int = 0
    reason: str = ""
    asked: float = 0.0
    proof: Proof | None = None

    def __post_init__(self) -> None:
        self._begin(None)

    def _begin(self, start: Start) -> None:
        one = self.alternative
        self.names.append(one.name)
        most = _MOST[one.method.unit]
        self.asked = one.tolerance
        self.training = one.method.begin(one.problem, one.tolerance, most, start)

    def run(self, *, give_up: bool) -> bool:
        """Train; whether it ended, and not only took more passes than expected."""
        most = self.alternative.passes.high if give_up else np.inf
        while not self._ended() or self._goes_on():
            if self.training.passes > most:
                return False
            self.training.advance(1)
            spent = self.before + self.training.passes
            self.history.append((spent, self.limits.elapsed, self.training.gap))
        return True

    def _goes_on(self) -> bool:
        """Whether a training that is done is not at the tolerance, and can go further."""
        if self.reason != "done" or self.proof is not None:
            return False
        training, problem = self.training, self.alternative.problem
        proof, wanted = None, self.alternative.tolerance
        if not isinstance(training, DualGap):
            proof = prove(problem, *training.coefficients(0), wanted)
        if proof is None:
            return False
        if proof.gap > wanted and bool(np.all(training.converged)):
            seen = min(self.asked, training.gap)
            self.asked = seen * max(_TIGHTER * wanted / proof.gap, _TIGHTEST)
            if self.asked > _LEAST:
                training.ask(self.asked)
                if not training.done:
                    return True
        self.proof = proof
        return False

    def _ended(self) -> bool:
        assert self.limits.passes is not None
        self.reason = self.limits.reason(self.training) or ""
        if not self.reason and self.before + self.training.passes >= self.limits.passes:
            self.reason = "passes"
        return bool(self.reason)

    def leave_for(self, following: Alternative) -> None:
        """Go on from the present weights in another way."""
        self.before += self.training.passes
        start = self.training.coefficients(0)
        self.alternative = following
        self._begin(start)

    def result(self) -> Result:
        """What it came to."""
        problem, proof = self.alternative.problem, self.proof
        coef, intercept = self.training.coefficients(0)
        gap, claim = self._claim()
        if proof is not None:
            intercept = proof.intercept.astype(intercept.dtype)
        many = len(coef) > 1
        return Result(
            coef=coef.T.copy() if many else coef[0],
            intercept=intercept if many else float(intercept[0]),
            n_iter=self.before + self.training.passes,
            objective=self._objective() if proof is None else proof.objective,
            history=tuple(self.history),
            seconds=self.limits.elapsed,
            converged=claim in (PROVEN, DIRECT),
            message=self._message(gap, claim),
            methods=tuple(self.names),
            classes=problem.classes,
            gap=gap,
            claim=claim,
        )

    def _claim(self) -> tuple[float, str]:
        """How far from the minimum it is at most, and how that is known."""
        training, wanted = self.training, self.alternative.tolerance
        if self.proof is not None:
            return self.proof.gap, PROVEN if self.proof.gap <= wanted else NOTHING
        reached = bool(np.all(training.converged))
        if isinstance(training, DualGap):
            return training.gap, PROVEN if training.gap <= wanted else NOTHING
        if why_unproven(self.alternative.problem) is None or not reached:
            return np.inf, NOTHING
        if isinstance(training, LeastSquares) and training.direct:
            return training.gap, DIRECT
        return np.inf, ESTIMATED

    def _objective(self) -> float:
        """What the training knows of its last weights; otherwise one more pass."""
        if isinstance(self.training, LinearTraining | Newton) and self.training.passes:
            return float(self.training.objective()[0])
        coef, intercept = self.training.coefficients(0)
        return self.alternative.problem.objective(coef, np.asarray(intercept))

    def _message(self, gap: float, claim: str) -> str:
        name, tolerance = self.alternative.name, self.alternative.tolerance
        if claim == PROVEN:
            return f"within {gap:.1g} of the minimum, proven; {tolerance:g} was asked for"
        if claim == DIRECT:
            return f"solved by {name} to rounding, without a penalty"
        if claim == ESTIMATED:
            why = why_unproven(self.alternative.problem)
            return (
                f"estimated to be within {tolerance:g} of the minimum, by the rule of "
                f"{name}, and not certain: {why}"
            )
        if self.reason in _MESSAGES:
            limits = self.limits
            return _MESSAGES[self.reason].format(
                passes=limits.passes, seconds=limits.seconds
            )
        if isinstance(self.training, Descent) and self.training.message:
            return f"{name} {self.training.message}"
        found = "" if self.proof is None else f": it may be {gap:.1g} above the minimum"
        return f"{name} found no step that helps before the tolerance was reached{found}"
