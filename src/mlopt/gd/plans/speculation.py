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

from mlopt.gd.iterations import estimate
from mlopt.gd.plans.method import Method, Solver, problem_shape
from mlopt.gd.plans.task import Problem
from mlopt.gd.sample import draw
from mlopt.training import Limits

_MOST_PASSES, _USUAL_DIGITS = 10**6, 8.0
_LEAST_FACTOR, _DOUBT, _FORESEEN, _FEWEST = 1.5, 2.0, 2.0, 6
"""By how much expected passes may be off: at the very best, with one sample only, and by
the shape; and looks that make a curve."""


@dataclass(frozen=True)
class Passes:
    """Passes to expect.

    Parameters
    ----------
    expected, low, high : float
        ``low <= expected <= high``.
    source : str
        "sampled", "extrapolated", "foreseen", "typical" or "known".
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


def digits(tolerance: float) -> float:
    """The digits asked for, of the eight that typical passes are for."""
    return -math.log10(tolerance) / _USUAL_DIGITS


def typical(method: Method, problem: Problem, tolerance: float) -> Passes:
    """What the shape of the data alone tells; passes grow with the digits asked for."""
    shape = problem_shape(problem)
    if (passes := method.foreseen(shape, tolerance)) is not None:
        return Passes.about(passes, _FORESEEN, "foreseen")
    expected = method.passes(shape)
    if not method.iterates:
        return Passes.known(expected)
    expected = max(2.0, expected * digits(tolerance))
    return Passes.about(expected, method.doubt, "typical")


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
    """Run ``method`` on both samples to the tolerance.

    Where time does not suffice, a curve through the gaps that were seen is followed to the
    tolerance; where these are too few, it is the typical number.

    Parameters
    ----------
    method : Method
    samples : Samples
    tolerance : float
        Relative to the minimum of the objective.
    seconds : float
        To spend at most, about.
    """
    guess = typical(method, samples.problem, tolerance)
    if guess.source != "typical":
        return guess
    limits, counts = Limits(seconds=max(seconds, 1e-3)), list[int]()
    for problem in samples.pair:
        training = method.begin(problem, tolerance, _MOST_PASSES, None)
        seen = _watched(training, limits)
        if not training.converged:
            return _followed(seen, tolerance, counts, 10 * guess.high) or guess
        counts.append(max(training.passes, 1))
    doublings = math.log2(max(samples.problem.rows.n / samples.pair[1].rows.n, 1.0))
    change = counts[1] / counts[0]
    expected = max(2.0, counts[1] * change ** min(doublings, method.believed))
    factor = max(_LEAST_FACTOR, max(change, 1.0 / change) ** min(doublings, 3.0))
    return Passes.about(expected, factor, "sampled")


def _watched(training: Solver, limits: Limits) -> list[tuple[float, int]]:
    """Train up to the limits; gaps, with the passes after which they were seen."""
    seen: list[tuple[float, int]] = []
    while limits.reason(training) is None:
        training.advance(1)
        gap = training.gap
        if math.isfinite(gap) and gap > 0 and (not seen or gap != seen[-1][0]):
            seen.append((gap, training.passes))
    return seen


def _followed(
    seen: list[tuple[float, int]], tolerance: float, counts: list[int], most: float
) -> Passes | None:
    """What one finished run tells, or a curve through the gaps of an unfinished one."""
    if counts:
        return Passes.about(counts[0], _DOUBT, "sampled")
    if len(seen) < _FEWEST:
        return None
    found = estimate(seen, tolerance)
    if not found.iterations <= most:  # the curve hardly falls
        return None
    low, high = min(found.low, found.iterations), max(found.high, found.iterations)
    return Passes(found.iterations, low, high, "extrapolated")
