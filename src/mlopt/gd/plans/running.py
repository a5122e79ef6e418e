"""A plan at work: run to its end, or left for another that goes on from its weights."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import between_passes
from mlopt.gd.linear_training import LinearTraining
from mlopt.gd.newton import Newton
from mlopt.gd.plans.closed import LeastSquares
from mlopt.gd.plans.descent import Descent
from mlopt.gd.plans.forecast import Forecast, Stint
from mlopt.gd.plans.method import Method, Solver, Start
from mlopt.gd.plans.proof import Proof, prove, why_unproven
from mlopt.gd.plans.speculation import Passes
from mlopt.gd.plans.stop import RelativeGap, Stop
from mlopt.gd.plans.task import Problem
from mlopt.prices import price
from mlopt.training import Limits

_MOST = {"passes": 10_000, "iterations": 10_000_000}
"""Of each unit, where the caller sets no limit."""
_MESSAGES = {
    "passes": "stopped at the limit of {passes} passes before the tolerance was reached",
    "seconds": "stopped at the limit of {seconds:g} s before the tolerance was reached",
}

PROVEN, DIRECT, ESTIMATED, NOTHING = "proven", "direct", "estimated", "nothing"
"""How it is known that a result is within the tolerance."""
_TIGHTER = 0.5
"""Of what a proof found lacking, the share that a method is asked for next."""
_TIGHTEST = 1e-3
"""Of the gap that a method sees, what it is asked for at most at once."""
_FEWEST = 3
"""Gaps that tell how fast they fall."""
_TRIFLE = price("run.trifle")
_SURE = price("run.sure")
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


@dataclass(frozen=True)
class Outcome:
    """What all models came to: ``coef`` (planes, d), ``intercept`` (planes,)."""

    coef: NDArray[Any]
    intercept: NDArray[Any]
    passes: int
    converged: bool
    methods: tuple[str, ...]
    """That were at work, in order: more than one if the first was left."""
    learnt: tuple[dict[str, Any], ...] = ()
    """Of each model, attributes of a fitted estimator that only its solver knows."""
    notes: tuple[str, ...] = ()
    """What a plan has to say of the run."""


@dataclass(frozen=True, eq=False)
class Alternative:
    """One way of solving the task.

    Attributes
    ----------
    name : str
    passes : Passes
    predicted_seconds : float
        The mean over the interval, whose logarithm lies anywhere in it.
    interval : (float, float)
        Seconds for the fewest and the most passes to expect.
    forecast : Forecast
        What that was before experience corrected it.
    """

    name: str
    method: Method
    problem: Problem
    stop: Stop
    passes: Passes
    predicted_seconds: float
    interval: tuple[float, float]
    forecast: Forecast

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
    """What `raced` comes to, of one model, to a gap."""
    return raced(alternatives, time_limit=time_limit, max_iter=max_iter).result()


def raced(
    alternatives: Sequence[Alternative],
    *,
    time_limit: float | None = None,
    max_iter: int | None = None,
    start: Start = None,
) -> Race:
    """Run the first alternative; leave it when it proves worse than thought.

    The best of those after it that can start from its weights, or needs no start, then
    goes on.

    Parameters
    ----------
    alternatives : sequence of Alternative
        For the same problem, the best first.
    time_limit : float, optional
        Seconds.
    max_iter : int, optional
        Passes at most, of all that are run.
    start : (coef, intercept), optional
        Where the first one starts, if it can.
    """
    most = max(_MOST[a.method.unit] for a in alternatives)
    limits = Limits(passes=max_iter or most, seconds=time_limit)
    able = [a for a in alternatives[1:] if a.method.continues or not a.method.iterates]
    with nullcontext() if alternatives[0].method.factors else between_passes():
        race = Race(alternatives[0], limits, max_iter, start)
        for following in able:
            if race.run(following):
                break
            race.leave_for(following)
        race.run(None)
    return race


@dataclass(eq=False)
class Race:
    """The alternative at work, and what the ones before it have spent."""

    alternative: Alternative
    limits: Limits
    max_iter: int | None = None
    start: InitVar[Start] = None
    training: Solver = field(init=False)
    names: list[str] = field(default_factory=list)
    history: list[Step] = field(default_factory=list)
    before: int = 0
    reason: str = ""
    asked: float = 0.0
    began: float = 0.0
    stint: Stint = field(init=False)
    proof: Proof | None = None

    def __post_init__(self, start: Start) -> None:
        self._begin(start)

    def _begin(self, start: Start) -> None:
        one = self.alternative
        self.names.append(one.name)
        # What takes all models to their end at once has steps of its own to limit.
        usual, asked = _MOST[one.method.unit], self.max_iter or 0
        most = asked or usual if one.method.sharp else max(usual, asked)
        self.began = self.limits.elapsed
        self.asked = self._wanted or 0.0
        self.stint = Stint(one.forecast)
        self.training = one.method.begin(one.problem, one.stop, most, start)

    @property
    def _wanted(self) -> float | None:
        """The relative gap that was asked for, if it was one."""
        stop = self.alternative.stop
        return stop.tolerance if isinstance(stop, RelativeGap) else None

    @property
    def passes(self) -> int:
        """Of all that have been at work."""
        return self.before + self.training.passes

    def run(self, following: Alternative | None) -> bool:
        """Train; whether it ended, and does not only disappoint beside the other."""
        passes, done = 0, False  # of what fails, nothing is remembered
        try:
            ended = self._train(following)
            passes = self.training.passes
            done = self.reason == "done" and bool(np.all(self.training.converged))
        finally:
            self.stint.end(passes, done)
        return ended

    def _train(self, following: Alternative | None) -> bool:
        while not self._ended() or self._goes_on():
            if following is not None and self._disappoints(following):
                return False
            if self._wanted is None:
                self.training.advance(self._stride())
                continue
            self.training.advance(1)
            self.history.append((self.passes, self.limits.elapsed, self.training.gap))
        return True

    def _disappoints(self, following: Alternative) -> bool:
        """Whether it took more than was to be expected, and more than another would.

        A fit that no gap ends must not depend on what else the machine does: passes count,
        at the pace that was predicted.
        Towards a gap, what is to come counts, and the worst case of the other one, which
        must be known: where one guess was wrong, so may be the next.
        """
        one, spent = self.alternative, self.limits.elapsed - self.began
        late, most = self.training.passes > one.passes.high, following.interval[1]
        if self._wanted is None:
            pace = one.predicted_seconds / one.passes.expected
            return late and self.training.passes * pace > most
        late |= spent > max(one.interval[1], most, _TRIFLE)
        known = following.passes.high <= _SURE * following.passes.low
        return late and known and self._left() > most

    def _left(self) -> float:
        """Seconds to the tolerance, as gaps have fallen in the last half of the time."""
        end = self.limits.elapsed
        half = 0.5 * (self.began + end)
        seen = [(s, gap) for _, s, gap in self.history if s >= half and 0 < gap < np.inf]
        if len(seen) < _FEWEST or self._wanted is None:
            return 0.0
        (first, before), (last, now) = seen[0], seen[-1]
        fell = np.log(before / now)
        digits = np.log(now / self._wanted)
        return float(digits * (last - first) / fell) if fell > 0 else np.inf

    def _stride(self) -> int:
        """Passes until limits are looked at again, where nobody looks at the gap."""
        assert self.limits.passes is not None
        left = self.limits.passes - self.passes
        return min(self.alternative.method.stride, max(left, 1))

    def _goes_on(self) -> bool:
        """Whether a training that is done is not at the tolerance, and can go further."""
        wanted = self._wanted
        if self.reason != "done" or self.proof is not None or wanted is None:
            return False
        training, problem, proof = self.training, self.alternative.problem, None
        if not self.alternative.method.bounds:
            proof = prove(problem, *training.coefficients(0), wanted)
        if proof is None:
            return False
        if proof.gap > wanted and bool(np.all(training.converged)):
            seen = min(self.asked, training.gap)
            self.asked = seen * max(_TIGHTER * wanted / proof.gap, _TIGHTEST)
            if self.asked > np.finfo(float).eps:
                training.ask(self.asked)
                if not training.done:
                    return True
        self.proof = proof
        return False

    def _ended(self) -> bool:
        assert self.limits.passes is not None
        self.reason = self.limits.reason(self.training) or ""
        if not self.reason and self.passes >= self.limits.passes:
            self.reason = "passes"
        return bool(self.reason)

    def leave_for(self, following: Alternative) -> None:
        """Go on from the present weights in another way."""
        self.before += self.training.passes
        start = self._planes()
        self.alternative = following
        self._begin(start)

    def outcome(self) -> Outcome:
        """The weights of all models."""
        models, (coef, intercept) = len(self.alternative.problem.models), self._planes()
        passes, training = self.passes - self.alternative.method.free, self.training
        learnt: list[dict[str, Any]] = []
        if isinstance(training, LinearTraining | LeastSquares):
            learnt = [training.learnt(number) for number in range(models)]
        notes = training.notes if isinstance(training, LeastSquares) else ()
        passes = max(passes, 1, *(one.get("n_iter_", 1) for one in learnt))
        converged = bool(np.all(training.converged))
        names = tuple(self.names)
        return Outcome(coef, intercept, passes, converged, names, tuple(learnt), notes)

    def _planes(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Weights (columns, d) and intercepts (columns,) of all models."""
        models = len(self.alternative.problem.models)
        planes = [self.training.coefficients(number) for number in range(models)]
        coef, intercept = (np.concatenate(parts) for parts in zip(*planes, strict=True))
        return coef, intercept

    def result(self) -> Result:
        """What it came to: of one model, to a gap."""
        problem, proof = self.alternative.problem, self.proof
        coef, intercept = self.training.coefficients(0)
        gap, claim = self._claim()
        if proof is not None:
            intercept = proof.intercept.astype(intercept.dtype)
        many = len(coef) > 1
        return Result(
            coef=coef.T.copy() if many else coef[0],
            intercept=intercept if many else float(intercept[0]),
            n_iter=self.passes,
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
        training, wanted = self.training, self._wanted or 0.0
        if self.proof is not None:
            return self.proof.gap, PROVEN if self.proof.gap <= wanted else NOTHING
        reached = bool(np.all(training.converged))
        if self.alternative.method.bounds:
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
        name, tolerance = self.alternative.name, self._wanted
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
