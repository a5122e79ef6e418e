"""Methods in order of predicted time: passes to expect times what a pass costs.

What counts is the mean of a prediction whose logarithm lies anywhere in its interval: a
guess that may be off by a factor of 20 takes 3.3 times its middle on the average.

Most methods are far from the cheapest, which a bound tells at once. Their costs are worked
out when somebody looks at them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from mlopt.costs import Cost
from mlopt.gd.plans.forecast import Forecast, Passes, form_of, typical
from mlopt.gd.plans.method import Method, Price, digits
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.running import Alternative
from mlopt.gd.plans.stop import CoefficientError, RelativeGap, Stop
from mlopt.gd.plans.task import Problem
from mlopt.gd.pricing import handing
from mlopt.prices import price
from mlopt.resources import Resources

Alternatives = tuple[Alternative, ...]

_AROUND = price("run.around")


@dataclass(eq=False)
class Ranker:
    """Predictions for methods on one problem.

    Attributes
    ----------
    passes : dict of str to Passes
        What is known of each method's passes so far.
    refused : dict of str to str
        Methods that were found to be of no use here, and why.
    """

    problem: Problem
    resources: Resources
    stop: Stop
    methods: tuple[Method, ...]
    passes: dict[str, Passes] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    _prices: dict[str, Price] = field(default_factory=dict)

    @cached_property
    def outline(self) -> Outline:
        """What prices depend on."""
        return replace(self.problem.outline, stop=self.stop)

    def contenders(self, methods: Iterable[Method]) -> Alternatives:
        """Of these, those that may turn out the cheapest, cheapest first."""
        stop, around = self.stop, self._around
        part = digits(stop.tolerance) if isinstance(stop, RelativeGap) else 1.0
        of = self.outline, self.resources
        bounds = [(self._quicker(m) * (around + part * m.least(*of)), m) for m in methods]
        found: list[Alternative] = []
        for bound, method in sorted(bounds, key=lambda pair: pair[0]):
            worst = min((a.interval[1] for a in found), default=float("inf"))
            if bound <= worst:
                found += self.ranked([method])
        return _sorted(found)

    def ranked(self, methods: Iterable[Method]) -> Alternatives:
        """These methods, without those that cannot be used, cheapest first."""
        found = [
            self._alternative(method)
            for method in methods
            if self._price(method) is not None
        ]
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

    def _price(self, method: Method) -> Price | None:
        if method.name not in self._prices and method.name not in self.refused:
            price = method.calibrated(self.outline, self.resources)
            if isinstance(price, str):
                self.refused[method.name] = price
            else:
                self._prices[method.name] = price
        return self._prices.get(method.name)

    def seconds(self, method: Method, passes: float) -> float:
        """What so many passes of a method take, that can be used here, as counted."""
        price = self._price(method)
        assert price is not None
        threads = 1 if method.waves else self.resources.threads
        return price(passes).seconds(self.resources, threads) + self._around

    def _alternative(self, method: Method) -> Alternative:
        if method.name not in self.passes:
            self.passes[method.name] = typical(method, self.outline, self.stop)
        forecast = self._forecast(method, self.passes[method.name])
        passes = forecast.corrected_passes()
        low, mean, high = forecast.corrected_interval(passes)
        return Alternative(
            method.name,
            method,
            self.problem,
            self.stop,
            passes,
            mean,
            (low, high),
            forecast,
        )

    def _forecast(self, method: Method, passes: Passes) -> Forecast:
        return Forecast(
            method.name, self.problem.outline, self.stop.kind, passes,
            partial(self.seconds, method), self.resources.experience,
        )  # fmt: skip

    @cached_property
    def _around(self) -> float:
        """Seconds for sums of weights before the passes and the objective after them."""
        rows, resources = self.problem.rows, self.resources
        if isinstance(self.stop, CoefficientError):
            return 0.0  # nobody asks for the objective
        remote = resources.workers > 1
        work = Cost(
            memory=rows.nbytes / resources.workers,
            python=_AROUND + handing(len(rows.lengths), resources),
            tasks=2.0 * len(rows.lengths) if remote else 0.0,
            round_trips=2.0 if remote else 0.0,
        )
        return work.seconds(resources, resources.threads)


def _sorted(found: Iterable[Alternative]) -> Alternatives:
    return tuple(sorted(found, key=lambda a: a.predicted_seconds))
