"""A plan at work: run to its end, or left for another that goes on from its weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import InitVar, dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import between_passes
from mlopt.errors import InputError
from mlopt.gd.at_once import SolvedAtOnce
from mlopt.gd.linear_training import LinearTraining
from mlopt.gd.plans.closed import LeastSquares
from mlopt.gd.plans.falling import Gaps
from mlopt.gd.plans.forecast import Forecast, Passes, Stint
from mlopt.gd.plans.method import Method, Solver, Start
from mlopt.gd.plans.proof import Proof, prove
from mlopt.gd.plans.result import Result, result_of
from mlopt.gd.plans.stop import RelativeGap, Stop, asked_of
from mlopt.gd.plans.task import Problem
from mlopt.plan import format_seconds
from mlopt.prices import count, price
from mlopt.rows.arriving import came
from mlopt.training import Limits

_MOST = {"passes": 10_000, "iterations": 10_000_000}
"""Of each unit, where the caller sets no limit."""
_TIGHTER = 0.5
"""Of what a proof found lacking, the share that a method is asked for next."""
_TIGHTEST = 1e-3
"""Of the gap that a method sees, what it is asked for at most at once."""
_AGAIN = 2.0
"""Times what all took before, that one takes at least until one that was left returns."""
_TRIFLE = price("run.trifle")
_SURE = price("run.sure")
_NEARLY = price("run.nearly")
_DOUBT = price("speculation.doubt.one")
_SHARED = count("factor.shared")
_HOW = {
    "sampled": "speculated on a sample",
    "extrapolated": "speculated on a sample",
    "foreseen": "by its shape",
    "typical": "typical of its shape",
    "seen": "like problems seen on this machine",
}


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
class Attempt:
    """A method for a problem, until a criterion is met."""

    method: Method
    problem: Problem
    stop: Stop

    @property
    def name(self) -> str:
        """That of the method."""
        return self.method.name

    @property
    def posed(self) -> Problem:
        """The problem on the rows that the method goes over."""
        return self.problem


@dataclass(frozen=True, eq=False)
class Alternative(Attempt):
    """One way of solving the task, with what is predicted of it.

    Attributes
    ----------
    passes : Passes
    predicted_seconds : float
        The mean over the interval, whose logarithm lies anywhere in it.
    span : (float, float)
        Seconds for the fewest and the most passes to expect, if prices are right: what is
        wrong with these is mostly wrong with all of them, and does not tell which is best.
    forecast : Forecast
        What that was before experience corrected it.
    brings : bool
        Whether rows of workers come to this process first.
    """

    passes: Passes
    predicted_seconds: float
    span: tuple[float, float]
    forecast: Forecast
    brings: bool = False

    @property
    def posed(self) -> Problem:
        return self.problem.here if self.brings else self.problem

    @property
    def worst(self) -> float:
        """Seconds that it takes at most, times what is not known of it."""
        return max(self.unsure / _SURE, self.span[1])

    @property
    def unsure(self) -> float:
        """The less, the better where guesses were wrong: so may be as much of this one."""
        return self.span[1] * self.passes.high / max(self.passes.low, 1.0)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a plan has to say of where it runs."""
        return (came(self.problem.rows.nbytes),) if self.brings else ()

    def within(self, most: float) -> Alternative:
        """The same where it takes no more than so many passes."""
        passes = self.passes.within(most)
        low, mean, high = self.forecast.corrected_seconds(passes)
        return replace(self, passes=passes, predicted_seconds=mean, span=(low, high))

    @property
    def interval(self) -> tuple[float, float]:
        """Seconds that it takes four times of five."""
        return self.forecast.interval(*self.span)

    @property
    def time_in_words(self) -> str:
        """Predicted seconds."""
        low, high = map(format_seconds, self.interval)
        return low if low == high else f"{low} to {high}"

    @property
    def passes_in_words(self) -> str:
        """Predicted passes, and how they are known."""
        passes, unit = self.passes, self.method.unit
        if passes.low == passes.high:
            return f"{passes.expected:.0f} {unit}"
        how = _HOW.get(passes.source, passes.source)
        return f"{passes.low:.0f} to {passes.high:.0f} {unit} ({how})"

    def run(
        self, *, time_limit: float | None = None, max_iter: int | None = None
    ) -> Result:
        """Solve the task this way; while its gap is unknown, within its own worst case.

        Parameters
        ----------
        time_limit : float, optional
            Seconds.
        max_iter : int, optional
            Passes at most.
        """
        return solve([self], time_limit=time_limit, max_iter=max_iter)


Others = Callable[[], Sequence[Alternative]]


def check_limits(time_limit: float | None, max_iter: int | None) -> None:
    """Raise `InputError` unless these are seconds and passes, or None."""
    for name, value in (("time_limit", time_limit), ("max_iter", max_iter)):
        if value is None:
            continue
        if not isinstance(value, Real) or not value > 0:
            raise InputError(f"`{name}` must be positive, got {value!r}.")
        if name == "max_iter" and value % 1:
            raise InputError(f"`max_iter` must be a whole number, got {value!r}.")


def solve(
    alternatives: Sequence[Alternative],
    *,
    time_limit: float | None = None,
    max_iter: int | None = None,
    trial: float = 0.0,
    others: Others = tuple,
) -> Result:
    """What `raced` comes to, of one model, to a gap."""
    check_limits(time_limit, max_iter)
    race = raced(
        alternatives, time_limit=time_limit, max_iter=max_iter, trial=trial, others=others
    )  # fmt: skip
    return result_of(race)


def raced(
    attempts: Sequence[Attempt],
    *,
    time_limit: float | None = None,
    max_iter: int | None = None,
    start: Start = None,
    trial: float = 0.0,
    others: Others = tuple,
) -> Race:
    """Run the first attempt; leave it when it proves worse than thought.

    The best of those after it that can start from its weights, or needs no start, then
    goes on; where no gap tells how near weights are, one that begins anew will do, too.
    Towards a gap it is the surest: what made one guess wrong may do so for all like it.
    What was left has its turn again if all of them prove worse: each time after twice as
    long as all took before, so that a good one is reached in a few times what it takes
    alone.

    Parameters
    ----------
    attempts : sequence of Attempt
        For the same problem, the best first; those that are no `Alternative` take over
        from none.
    time_limit : float, optional
        Seconds.
    max_iter : int, optional
        Passes at most, of all that are run.
    start : (coef, intercept), optional
        Where the first one starts, if it can.
    trial : float, default=0.0
        Seconds after which the first one must promise to take less than the second, if
        any: it was not thought to.
    others : callable, optional
        Gives more that may take over towards a gap; called once the first one is late.
    """
    most = max(_MOST[a.method.unit] for a in attempts)
    limits = Limits(passes=max_iter or most, seconds=time_limit)
    one, *rest = attempts
    gap = isinstance(one.stop, RelativeGap)
    rows = one.posed.rows
    shared = one.method.factors and min(rows.n, rows.d) >= _SHARED
    with nullcontext() if shared else between_passes():
        race = Race(one, limits, max_iter, start, trial=trial)
        turns = Turns(gap, others)
        turns.add(rest)
        while not race.run(turns):
            left = race.alternative
            race.leave_for(turns.waiting.pop(0))
            if race.wanted and isinstance(left, Alternative) and left.method.continues:
                turns.waiting.append(left)
    return race


@dataclass
class Turns:
    """Those that may take over, towards a gap or not; ``others`` gives more, once."""

    gap: bool
    others: Others
    waiting: list[Alternative] = field(default_factory=list)
    _open: bool = False

    def add(self, attempts: Iterable[Attempt]) -> None:
        """What can start from the weights of others, or needs no start."""
        self.waiting += [
            a
            for a in attempts
            if isinstance(a, Alternative)
            and (a.method.continues or not (self.gap and a.method.iterates))
        ]

    def any(self, wins: Callable[[Alternative], bool]) -> bool:
        """Whether one may take over, whatever its rank: it then has its turn next."""
        for at, one in enumerate(self.waiting):
            if wins(one):
                self.waiting.insert(0, self.waiting.pop(at))
                return True
        return False

    def open(self) -> None:
        """One is late: all others of the table have a turn, too, the surest first."""
        if self.gap and not self._open:
            self._open = True
            self.add(self.others())
            self.waiting.sort(key=lambda a: a.unsure)


@dataclass(eq=False)
class Race:
    """The alternative at work, and what the ones before it have spent."""

    alternative: Attempt
    limits: Limits
    max_iter: int | None = None
    start: InitVar[Start] = None
    trial: float = 0.0
    training: Solver = field(init=False)
    names: list[str] = field(default_factory=list)
    gaps: Gaps = field(default_factory=Gaps)
    before: int = 0
    reason: str = ""
    wanted: float | None = field(init=False)
    """The relative gap that was asked for, if it was one, as methods see it."""
    asked: float = 0.0
    began: float = 0.0
    stint: Stint | None = field(init=False)
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
        self.stint = Stint(one.forecast) if isinstance(one, Alternative) else None
        stop = asked_of(one.stop, dual=one.method.bounds)
        self.wanted = stop.tolerance if isinstance(stop, RelativeGap) else None
        self.asked = self.wanted or 0.0
        self.training = one.method.begin(one.posed, stop, most, start)
        if isinstance(self.training, SolvedAtOnce):
            self.training.limits = self.limits

    @property
    def passes(self) -> int:
        """Of all that have been at work."""
        return self.before + self.training.passes

    def run(self, turns: Turns) -> bool:
        """Train; whether it ended, and does not only disappoint beside another."""
        passes, done = 0, False  # of what fails, nothing is remembered
        try:
            ended = self._train(turns)
            passes = self.training.passes
            done = self.reason == "done" and bool(np.all(self.training.converged))
        finally:
            if self.stint is not None:
                self.stint.end(passes, done)
        return ended

    def _train(self, turns: Turns) -> bool:
        while not self._ended() or self._goes_on():
            if not self.trial and self._late():
                turns.open()
            if turns.any(self._disappoints):
                return False
            if not turns.waiting and self._worn():
                self.reason = "worst"
                return True
            if self.wanted is None:
                self.training.advance(self._stride())
                continue
            self.training.advance(1)
            self.gaps.add((self.passes, self.limits.elapsed, self.training.gap))
        return True

    def _late(self, least: float = _TRIFLE) -> bool:
        """Whether it took more than was to be expected, by passes or by the clock."""
        one, spent = self.alternative, self.limits.elapsed - self.began
        if not isinstance(one, Alternative):
            return False
        late = self.training.passes > one.passes.high
        return late or spent > max(one.span[1], least)

    def _disappoints(self, following: Alternative) -> bool:
        """Whether it took more than was to be expected, and more than another would.

        A fit that no gap ends must not depend on what else the machine does: passes count,
        at the pace that was predicted. Where half of those allowed are gone, one that ends
        within the others is surer: if it takes next to nothing, or, where this one may need
        more, no longer than all of those allowed.
        Towards a gap, what is to come counts, and the worst case of the other one, times
        what is not known of it: where one guess was wrong, so may be the next. But what was
        left has its turn again, so that the other can be tried where it is thought to end,
        and twice the time of all to now has passed, before this one would. One that was
        left was no better itself: the time of all counts in place of its guess.
        What is only tried must soon promise to take less than the other is thought to.
        """
        one, spent = self.alternative, self.limits.elapsed - self.began
        assert isinstance(one, Alternative)
        pace = one.predicted_seconds / one.passes.expected
        if self.trial:
            # By its passes, too: the first ones may load what others find loaded.
            over = min(spent, self.training.passes * pace) > self.trial
            return over and _DOUBT * self._left() > following.predicted_seconds
        if following.name in self.names:
            again = max(_AGAIN * self.began, one.predicted_seconds, _TRIFLE)
            return spent > again and self._left() > again
        if self.wanted is None:
            late, most = self.training.passes > one.passes.high, following.span[1]
            suffice = self._suffice(following)
            allowed = self.max_iter or np.inf
            half, unsure = 2 * self.passes > allowed, one.passes.high > allowed
            if half and suffice and most < max(_TRIFLE, unsure and pace * allowed):
                return True
            ends = following.method.continues or suffice
            return late and ends and self.training.passes * pace > most
        thought = following.predicted_seconds
        tried = max(_AGAIN * self.limits.elapsed, thought)
        return self._late(max(thought, _TRIFLE)) and self._left() > min(
            following.worst, tried
        )

    def _worn(self) -> bool:
        """Whether it took more than was to be expected, and no gap tells where that led.

        A limit of passes that somebody set is another worst case.
        """
        one = self.alternative
        if not isinstance(one, Alternative) or self.wanted is None or self.max_iter:
            return False
        late = self.training.passes > one.passes.high
        return late and not np.isfinite(self.training.gap)

    def _suffice(self, following: Alternative) -> bool:
        """Whether the passes that are left may be enough for one that begins anew."""
        assert self.limits.passes is not None
        return following.passes.high <= self.limits.passes - self.passes

    def _left(self) -> float:
        """Seconds to the tolerance, as gaps have fallen; 0 where none was asked for.

        Where these fall suddenly, as in the last steps of Newton's method, nothing is
        known: as long again as it has taken so far.
        """
        if self.wanted is None:
            return 0.0
        sudden = self.alternative.method.sudden
        return self.gaps.left(self.wanted, self.began, self.limits.elapsed, sudden)

    def _stride(self) -> int:
        """Passes until limits are looked at again, where nobody looks at the gap."""
        assert self.limits.passes is not None
        left = self.limits.passes - self.passes
        return min(self.alternative.method.stride, max(left, 1))

    def _goes_on(self) -> bool:
        """Whether a training that is done is not at the tolerance, and can go further."""
        wanted, bounds = self.wanted, self.alternative.method.bounds
        if bounds or self.reason != "done" or self.proof is not None or wanted is None:
            return False
        training, problem = self.training, self.alternative.posed
        converged, first = bool(np.all(training.converged)), self.asked >= wanted
        spare = _NEARLY if converged and first else 1.0
        proof = prove(problem, *training.coefficients(0), wanted, spare)
        if proof is not None and proof.gap > wanted and converged:
            seen = min(self.asked, training.gap)
            self.asked = seen * max(_TIGHTER * wanted / proof.gap, _TIGHTEST)
            if self.asked > np.finfo(float).eps:
                training.ask(self.asked)
                if not training.done:
                    return True
            if spare > 1.0:  # it cannot do better: what it found may be good enough
                proof = prove(problem, *training.coefficients(0), wanted)
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
        self.trial = 0.0
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
