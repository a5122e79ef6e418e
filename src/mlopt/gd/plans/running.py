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
from mlopt.gd.plans.descent import Descent
from mlopt.gd.plans.method import Method, Solver, Start
from mlopt.gd.plans.speculation import Passes
from mlopt.gd.plans.task import Problem
from mlopt.training import Limits

_MOST = {"passes": 10_000, "iterations": 10_000_000}
"""Of each unit, where the caller sets no limit."""
_MESSAGES = {
    "passes": "stopped at the limit of {passes} passes before the tolerance was reached",
    "seconds": "stopped at the limit of {seconds:g} s before the tolerance was reached",
}

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
    message : str
        Why it stopped.
    methods : tuple of str
        The methods that were at work, in order: more than one if a plan was left.
    classes : ndarray of shape (K,) or None
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
    """Run the first alternative; leave it for the next when it proves worse than thought.

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
    with between_passes():
        race = _Race(alternatives[0], limits)
        for following in alternatives[1:]:
            if race.run(give_up=following.method.continues):
                break
            if following.method.continues:
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

    def __post_init__(self) -> None:
        self._begin(None)

    def _begin(self, start: Start) -> None:
        one = self.alternative
        self.names.append(one.name)
        most = _MOST[one.method.unit]
        self.training = one.method.begin(one.problem, one.tolerance, most, start)

    def run(self, *, give_up: bool) -> bool:
        """Train; whether it ended, and not only took more passes than expected."""
        most = self.alternative.passes.high if give_up else np.inf
        while not self._ended():
            if self.training.passes > most:
                return False
            self.training.advance(1)
            spent = self.before + self.training.passes
            self.history.append((spent, self.limits.elapsed, self.training.gap))
        return True

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
        problem = self.alternative.problem
        seconds = self.limits.elapsed
        coef, intercept = self.training.coefficients(0)
        converged = bool(np.all(self.training.converged))
        many = len(coef) > 1
        return Result(
            coef=coef.T.copy() if many else coef[0],
            intercept=intercept if many else float(intercept[0]),
            n_iter=self.before + self.training.passes,
            objective=self._objective(),
            history=tuple(self.history),
            seconds=seconds,
            converged=converged,
            message=self._message(converged),
            methods=tuple(self.names),
            classes=problem.classes,
        )

    def _objective(self) -> float:
        """What the training knows of its last weights; otherwise one more pass."""
        if isinstance(self.training, LinearTraining | Newton) and self.training.passes:
            return float(self.training.objective()[0])
        coef, intercept = self.training.coefficients(0)
        return self.alternative.problem.objective(coef, np.asarray(intercept))

    def _message(self, converged: bool) -> str:
        name, tolerance = self.alternative.name, self.alternative.tolerance
        if isinstance(self.training, Descent) and self.training.message and not converged:
            return f"{name} {self.training.message}"
        if converged:
            return f"within {tolerance:g} of the minimum, by the rule of {name}"
        if self.reason in _MESSAGES:
            limits = self.limits
            return _MESSAGES[self.reason].format(
                passes=limits.passes, seconds=limits.seconds
            )
        return f"{name} found no step that helps before the tolerance was reached"
