"""How many passes a method will take: it is run on a sample of the rows, to the target.

Newton-like methods take about as many passes on 2% of the rows as on all of them, because
passes depend on the curvature and the target, not on how many rows there are. Two samples,
one twice the other, show how far that holds here: what changes between them changes as much
again, and more, up to all rows. ML4all (section 5) fits ``a / eps`` to a short run instead,
which is far off at small tolerances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mlopt.gd.plans.methods import Method, problem_shape
from mlopt.gd.plans.task import Problem
from mlopt.gd.sample import draw
from mlopt.training import Limits, run

_MOST_PASSES = 2000
_PRIOR_FACTOR, _LEAST_FACTOR = 3.0, 1.5
"""By how much expected passes may be off: without a sample, and at the very best."""


@dataclass(frozen=True)
class Passes:
    """Passes to expect.

    Parameters
    ----------
    expected, low, high : float
        ``low <= expected <= high``.
    source : str
        "sampled", "typical" or "known".
    """

    expected: float
    low: float
    high: float
    source: str

    @staticmethod
    def known(passes: float) -> Passes:
        """Passes that do not depend on the data."""
        return Passes(passes, passes, passes, "known")

    @staticmethod
    def about(passes: float, factor: float, source: str) -> Passes:
        """``passes``, give or take a factor."""
        return Passes(passes, max(1.0, passes / factor), passes * factor, source)


def typical(method: Method, problem: Problem) -> Passes:
    """What the shape of the data alone tells."""
    expected = method.passes(problem_shape(problem))
    if not method.iterates:
        return Passes.known(expected)
    return Passes.about(expected, _PRIOR_FACTOR, "typical")


class Samples:
    """Two samples of a problem's rows, drawn when they are first needed."""

    def __init__(self, problem: Problem, size: int) -> None:
        self.problem, self.size = problem, size
        self._drawn: tuple[Problem, Problem] | None = None

    @property
    def pair(self) -> tuple[Problem, Problem]:
        """The smaller sample, half of the larger one."""
        if self._drawn is None:
            larger = draw(self.problem.rows, self.size)
            smaller = draw(larger, max(larger.n // 2, 1))
            self._drawn = (self.problem.on(smaller), self.problem.on(larger))
        return self._drawn


def speculate(method: Method, samples: Samples, tolerance: float, seconds: float) -> Passes:
    """Run ``method`` on both samples; the typical number if time does not suffice.

    Parameters
    ----------
    method : Method
    samples : Samples
    tolerance : float
        Relative to the minimum of the objective.
    seconds : float
        To spend at most, about.
    """
    if not method.iterates:
        return typical(method, samples.problem)
    limits, counts = Limits(seconds=max(seconds, 1e-3)), []
    for problem in samples.pair:
        training = method.begin(problem, tolerance, _MOST_PASSES, None)
        if run(training, limits) != "done":
            return typical(method, samples.problem)
        counts.append(max(training.passes, 1))
    doublings = math.log2(max(samples.problem.rows.n / samples.pair[1].rows.n, 1.0))
    change = counts[1] / counts[0]
    # Growth from sample to sample fades; shrinking is not relied on.
    expected = counts[1] * max(change, 1.0) ** min(doublings, 1.0)
    factor = max(_LEAST_FACTOR, max(change, 1.0 / change) ** min(doublings, 3.0))
    return Passes.about(expected, factor, "sampled")
