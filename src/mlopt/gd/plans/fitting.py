"""Methods of the table in order of predicted time, and what estimators choose of them.

A prediction is the passes to expect times what a pass costs. What counts is the mean of one
whose logarithm lies anywhere in its interval: a guess that may be off by a factor of 20
takes 3.3 times its middle on the average.

Most methods are far from the cheapest, which a bound tells at once. Their costs are worked
out when somebody looks at them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from mlopt.cluster import Threads
from mlopt.costs import Cost
from mlopt.gd.estimator_base import SMALL, resources_of
from mlopt.gd.plans.forecast import Forecast, Passes, form_of, typical
from mlopt.gd.plans.method import Method, Start, digits
from mlopt.gd.plans.methods import BY_NAME
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.place import Place, Way, Ways, places, ways
from mlopt.gd.plans.proof import why_unproven
from mlopt.gd.plans.running import Alternative, Attempt, Outcome, raced
from mlopt.gd.plans.stop import CoefficientError, RelativeGap, Stop
from mlopt.gd.plans.task import Problem
from mlopt.locking import cached_property
from mlopt.plan import Alternative as Rejected
from mlopt.plan import Choice, decide
from mlopt.prices import price
from mlopt.resources import Resources

Alternatives = tuple[Alternative, ...]

_TRIFLE = price("run.trifle")
_NOT_PRICED = "not priced"


@dataclass(eq=False)
class Ranker:
    """Predictions for methods on one problem.

    Attributes
    ----------
    comes : bool
        Whether rows of workers may come to this process where that takes less.
    passes : dict of str to Passes
        What is known of each method's passes so far.
    refused : dict of str to str
        Methods that were found to be of no use here, and why.
    """

    problem: Problem
    resources: Resources
    stop: Stop
    methods: tuple[Method, ...]
    comes: bool = False
    passes: dict[str, Passes] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    _ways: dict[str, Ways] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_ways": {}}  # worked out again when they are asked for

    @cached_property
    def outline(self) -> Outline:
        """What prices depend on."""
        return replace(self.problem.outline, stop=self.stop)

    def contenders(self, methods: Iterable[Method]) -> Alternatives:
        """Of these, those that may turn out the cheapest, cheapest first."""
        stop = self.stop
        part = digits(stop.tolerance) if isinstance(stop, RelativeGap) else 1.0
        bounds = [(self._quicker(m) * self._least(m, part), m) for m in methods]
        found: list[Alternative] = []
        for bound, method in sorted(bounds, key=lambda pair: pair[0]):
            worst = min((a.span[1] for a in found), default=float("inf"))
            if bound <= worst:
                found += self.ranked([method])
        return _sorted(found)

    def _least(self, method: Method, part: float) -> float:
        """Seconds that so much of the digits takes at least, wherever rows are."""
        return min(one.around + part * one.least(method) for one in self._places)

    def ranked(self, methods: Iterable[Method]) -> Alternatives:
        """These methods, without those that cannot be used, cheapest first."""
        found = [self._alternative(method) for method in methods if self.usable(method)]
        return _sorted(found)

    def others(self, known: Iterable[Alternative]) -> Alternatives:
        """All methods that are not among the known ones."""
        names = {a.name for a in known}
        return self.ranked(m for m in self.methods if m.name not in names)

    def _quicker(self, method: Method) -> float:
        """What a bound of a method is to be multiplied by, where it was quicker here."""
        known = self.resources.experience
        if known is None:
            return 1.0
        return min(known.pace(method.name, form_of(self.outline))[0], 1.0)

    def usable(self, method: Method) -> Ways:
        """Where a method can be used, and its prices there."""
        if method.name not in self._ways and method.name not in self.refused:
            found, why = ways(method, self._places)
            if found:
                self._ways[method.name] = found
            else:
                self.refused[method.name] = why
        return self._ways.get(method.name, ())

    def seconds(
        self, method: Method, passes: float, *, brings: bool | None = None
    ) -> float:
        """What so many passes of a method take, that can be used here, as counted.

        Where it takes less, unless it is said whether rows of workers come here.
        """
        return min(
            self._seconds(method, way, passes)
            for way in self.usable(method)
            if brings in (None, way[0].brings)
        )

    def _seconds(self, method: Method, way: Way, passes: float) -> float:
        place, price = way
        threads = 1 if method.waves else self.resources.threads
        after = 0.0 if method.bounds or not self._provable else place.proof
        taken = price(passes).seconds(self.resources, threads)
        return taken + place.around + after

    def _alternative(self, method: Method) -> Alternative:
        if method.name not in self.passes:
            self.passes[method.name] = typical(method, self.outline, self.stop)
        likely = self.passes[method.name]
        where, _ = min(
            self.usable(method),
            key=lambda way: self._seconds(method, way, likely.expected),
        )
        forecast = Forecast(
            method.name, self.problem.outline, self.stop.kind, likely,
            partial(self.seconds, method, brings=where.brings),
            self.resources.experience,
        )  # fmt: skip
        passes = forecast.corrected_passes()
        low, mean, high = forecast.corrected_seconds(passes)
        return Alternative(
            method, self.problem, self.stop, passes, mean, (low, high), forecast,
            brings=where.brings,
        )  # fmt: skip

    @cached_property
    def _places(self) -> tuple[Place, ...]:
        return places(self.outline, self.resources, comes=self.comes)

    @property
    def _provable(self) -> bool:
        relative = isinstance(self.stop, RelativeGap)
        return relative and why_unproven(self.problem) is None


def _sorted(found: Iterable[Alternative]) -> Alternatives:
    return tuple(sorted(found, key=lambda a: a.predicted_seconds))


@dataclass(frozen=True, eq=False)
class Chosen:
    """The method of a fit, and those that may take over from it.

    Attributes
    ----------
    choice : Choice
        As a plan has it.
    ranked : tuple of Attempt
        The chosen one first, the others as they are predicted.
    """

    choice: Choice
    ranked: tuple[Attempt, ...]

    def noting(self, *notes: str) -> Chosen:
        """The same, with more to say in a plan."""
        choice = replace(self.choice, notes=(*self.choice.notes, *notes))
        return replace(self, choice=choice)

    def run(
        self,
        max_iter: int | None = None,
        start: Start = None,
        time_limit: float | None = None,
    ) -> Outcome:
        """Fit, for so many passes and seconds at most."""
        most = None if max_iter is None else max_iter + self.ranked[0].method.free
        race = raced(self.ranked, time_limit=time_limit, max_iter=most, start=start)
        return race.outcome()


def choose(
    operator: str,
    wanted: str,
    names: Sequence[str],
    problem: Problem,
    stop: Stop,
    left_out: Mapping[str, str] | None = None,
    resources: Resources | None = None,
    max_iter: float = float("inf"),
    *,
    firm: bool = True,
    comes: bool = False,
) -> Chosen:
    """The method that is predicted to end first, or ``wanted`` unless that is "auto".

    Where values are few, predictions take longer than what they save: the first method that
    says it is for such a problem is taken.

    Parameters
    ----------
    operator : str
        What is fitted, as the user would write it.
    wanted : str
        One of ``names``, or "auto".
    names : sequence of str
        Methods of `mlopt.gd.plans.methods` that fit it.
    problem : Problem
    stop : Stop
    left_out : mapping of str to str, optional
        Names that "auto" takes only where nothing else can be used, and why.
    resources : Resources, optional
        Of the machine, where they are known.
    max_iter : float, default=inf
        Passes at most: "auto" takes what is expected to need more only where all do, or
        others take longer than it would with the fit that follows, of passes enough.
    firm : bool, default=True
        Whether ``wanted`` is what the user names, which is not left for another.
    comes : bool, default=False
        Whether rows of workers may come to this process where that takes less.

    Raises
    ------
    InputError
        When ``wanted`` cannot be used here, or nothing can.
    """
    if wanted == "auto" and (first := _unpriced(names, problem, stop)):
        others = tuple(Rejected(n, None, _NOT_PRICED) for n in names if n != first.name)
        note = f"{_NOT_PRICED}: a pass goes through {problem.values} values"
        note = f"{note}, no more than {SMALL}"
        plain = Choice("fit", operator, first.name, rejected=others, notes=(note,))
        return Chosen(plain, (first,))
    resources = resources or resources_of(problem.rows.executor)
    fits = problem.task.loss_name, problem.sharp, stop
    why = {n: w for n in names if (w := unfit(BY_NAME[n], *fits))}
    aside = dict(left_out or {}) if wanted == "auto" else {}
    able = tuple(BY_NAME[name] for name in names if name not in why)
    ranker = Ranker(problem, resources, stop, able, comes)
    preferred = ranker.ranked(m for m in able if m.name not in aside)
    found = {one.name: one for one in preferred or ranker.ranked(able)}
    if wanted == "auto":
        late = _too_late(found, max_iter)
        found = {name: one for name, one in found.items() if name not in late}
        why |= dict.fromkeys(late, f"likely more than {max_iter:g} passes")
    seconds = {name: one.predicted_seconds for name, one in found.items()}
    set_aside = {name: text for name, text in aside.items() if name not in found}
    choice = decide(operator, wanted, seconds, set_aside | why | ranker.refused)
    first = found[choice.chosen]
    if first.passes.expected != 1:
        # What ends at a limit takes no longer; how good it is then, is another question.
        shown = first.within(max_iter + first.method.free)
        note = f"predicted for {shown.passes_in_words}"
        choice = replace(choice, predicted=shown.predicted_seconds, notes=(note,))
    if (firm and wanted != "auto") or isinstance(stop, CoefficientError):
        # What the user names, or has a patience of its own, is not left for another.
        return Chosen(choice, (first,)).noting(*first.notes)
    ranked = (first, *(one for one in found.values() if one is not first))
    return Chosen(choice, ranked).noting(*first.notes)


def _too_late(found: Mapping[str, Alternative], most: float) -> list[str]:
    """What likely needs more passes than it may have, where others end about as soon.

    Who gets no converged model fits again, with more passes: both fits count.
    """
    late = {name: one for name, one in found.items() if one.passes.expected > most}
    others = [one.predicted_seconds for name, one in found.items() if name not in late]
    best = min(others, default=float("inf"))
    both = {
        n: a.within(most).predicted_seconds + a.predicted_seconds for n, a in late.items()
    }
    return [name for name, seconds in both.items() if best <= seconds + _TRIFLE]


def unfit(method: Method, loss: str, sharp: bool, stop: Stop) -> str:
    """Why a method is of no use for a problem and a criterion; "" where it is."""
    if loss not in method.losses:
        return not_for(loss)
    if sharp and not method.sharp:
        return "not with an L1 penalty or positive weights"
    return "" if isinstance(stop, method.stops) else f"it cannot stop at a {stop}"


def not_for(loss: str) -> str:
    """That a method is for other losses."""
    return f"not for the {loss} loss"


def _unpriced(names: Sequence[str], problem: Problem, stop: Stop) -> Attempt | None:
    """What is taken for a problem of few values here, as long as a method is for it."""
    rows, fits = problem.rows, (problem.task.loss_name, problem.sharp, stop)
    if problem.values > SMALL or not isinstance(rows.executor, Threads):
        return None
    for method in (BY_NAME[name] for name in names):
        if method.small and method.small(problem) and not unfit(method, *fits):
            return Attempt(method, problem, stop)
    return None


def prices(
    names: Sequence[str],
    outline: Outline,
    resources: Resources,
    passes: float | None = None,
) -> dict[str, Cost | str]:
    """What methods cost on data of which only the outline is known, or why they cannot.

    Parameters
    ----------
    names : sequence of str
    outline : Outline
    resources : Resources
    passes : float, optional
        As many as shape and criterion let expect, unless given.
    """
    found: dict[str, Cost | str] = {}
    for name in names:
        if outline.loss not in BY_NAME[name].losses:
            found[name] = not_for(outline.loss)
            continue
        able, why = ways(BY_NAME[name], places(outline, resources))
        count = passes_to_expect(name, outline) if passes is None else passes
        costs = [price(count) for _, price in able]
        least = partial(Cost.seconds, resources=resources, threads=resources.threads)
        found[name] = min(costs, key=least) if costs else why
    return found


def passes_to_expect(name: str, outline: Outline) -> float:
    """Of a method, where nothing is known of the data but their shape."""
    method = BY_NAME[name]
    if isinstance(outline.stop, CoefficientError):
        return typical(method, outline, outline.stop).expected
    return method.passes(outline.shape)
