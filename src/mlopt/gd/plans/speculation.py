"""How many passes a method will take: it is run on samples of the rows, to the target.

Passes depend on the curvature and the target, and little on how many rows there are, once
these say more of the solution than of their noise (`mlopt.gd.plans.samples`). So samples
grow until twice the rows make no difference, or time is up::

    a sample               the target within a part of the time?
      yes   twice the rows, and again, until passes differ no more
            a line through the last ones, of log passes against 1 / rows, leads to all rows
      no    four times the rows, for the rest of the time
            a curve through the gaps above the noise leads to the target

ML4all (section 5) fits ``a / eps`` to a short run instead, which is far off at small
tolerances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlopt.gd.iterations import FEWEST, estimate
from mlopt.gd.plans.forecast import Passes, typical
from mlopt.gd.plans.method import Method
from mlopt.gd.plans.samples import Samples
from mlopt.gd.plans.stop import RelativeGap
from mlopt.prices import count, price
from mlopt.training import Limits

_MOST_PASSES = 10**6
"""Passes over a sample: time ends a run before."""
_LEAST_FACTOR = price("speculation.doubt.least")
_DOUBT = price("speculation.doubt.one")
_FAR = price("speculation.far")
"""Looks that make a curve, and how far beyond the most that were guessed it may lead."""
_ALIKE = price("speculation.alike")
_MORE = price("speculation.more")
_BELIEVED = price("speculation.believed")
_LAST = count("speculation.last")
_FIRST = price("speculation.first")
_WIDER = count("speculation.wider")
Count = tuple[int, int]
"""Rows of a sample and the passes over it."""


def speculate(
    method: Method, samples: Samples, size: int, tolerance: float, seconds: float
) -> Passes:
    """Run ``method`` on samples to the tolerance, each twice as large as the one before.

    Where too few gaps were seen for a curve to be followed, it is the typical number.

    Parameters
    ----------
    method : Method
    samples : Samples
    size : int
        Rows of the second sample; more where these make a difference.
    tolerance : float
        Relative to the minimum of the objective.
    seconds : float
        To spend at most, about.
    """
    guess = typical(method, samples.problem.outline, RelativeGap(tolerance))
    if guess.source != "typical":
        return guess
    limits, rows = Limits(seconds=max(seconds, 1e-3)), max(size // 2, 1)
    run = _run(method, samples, rows, tolerance, _FIRST * limits.seconds_left)
    if not run.converged:
        rows = min(_WIDER * rows, samples.most)
        run = _run(method, samples, rows, tolerance, limits.seconds_left)
        return run.led_on(tolerance, samples.noise(rows), guess)
    counts = [(rows, run.passes)]
    while not _settled(counts) and 2 * rows <= samples.most:
        if _MORE * run.seconds > limits.seconds_left:
            break
        rows *= 2
        run = _run(method, samples, rows, tolerance, limits.seconds_left)
        if not run.converged:
            break
        counts.append((rows, run.passes))
    return _led(counts, samples.problem.rows.n, _BELIEVED)


@dataclass(frozen=True)
class _Run:
    """What was seen of a method on one sample: gaps, with the passes after which."""

    converged: bool
    passes: int
    seconds: float
    seen: list[tuple[float, int]]

    def led_on(self, tolerance: float, noise: float, guess: Passes) -> Passes:
        """Its passes, or where a curve through the gaps above the noise leads.

        Gaps that hardly fall tell only that passes are many: the most that were guessed.
        """
        if self.converged:
            return Passes.about(self.passes, _DOUBT, "sampled")
        low = (k for k, (gap, _) in enumerate(self.seen) if gap <= noise)
        clear = self.seen[: next(low, len(self.seen)) + 1]
        if len(clear) < FEWEST:
            clear = self.seen
        if len(clear) < FEWEST:
            return guess
        found = estimate(clear, tolerance)
        if found.iterations > _FAR * guess.high:
            return Passes(guess.high, guess.low, _FAR * guess.high, "worst case")
        around = (found.low, found.iterations, found.high)
        return Passes(found.iterations, min(around), max(around), "extrapolated")


def _run(
    method: Method, samples: Samples, rows: int, tolerance: float, seconds: float
) -> _Run:
    limits = Limits(seconds=max(seconds, 1e-3))
    training = method.begin(samples.of(rows), RelativeGap(tolerance), _MOST_PASSES, None)
    seen: list[tuple[float, int]] = []
    while limits.reason(training) is None:
        training.advance(1)
        gap = training.gap
        if math.isfinite(gap) and gap > 0 and (not seen or gap != seen[-1][0]):
            seen.append((gap, training.passes))
    passes = max(training.passes, 1)
    return _Run(bool(training.converged), passes, limits.elapsed, seen)


def _settled(counts: Sequence[Count]) -> bool:
    """Whether the last two samples agree."""
    if len(counts) < 2:
        return False
    (_, one), (_, other) = counts[-2:]
    return max(one, other) <= _ALIKE * min(one, other)


def _led(counts: Sequence[Count], n: int, believed: float) -> Passes:
    """Where a line through the last counts leads, with as much of its slope as is believed.

    Whatever differs by chance would be taken for a trend otherwise.
    """
    last = counts[-_LAST:]
    passes = [count for _, count in last]
    if len(last) == 1:
        return Passes.about(max(2.0, passes[0]), _DOUBT, "sampled")
    x, y = np.array([1.0 / rows for rows, _ in last]), np.log(passes)
    away = x - x.mean()
    slope = believed * float(away @ y) / float(away @ away)
    found = math.exp(float(y.mean()) + slope * (1.0 / n - float(x.mean())))
    factor = max(_LEAST_FACTOR, max(passes) / min(passes))
    return Passes.about(max(2.0, found), factor, "sampled")
