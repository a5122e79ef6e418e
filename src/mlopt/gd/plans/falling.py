"""Gaps of a run, and when they will be as small as was asked for."""

from __future__ import annotations

import operator
from bisect import bisect_left
from dataclasses import dataclass, field

import numpy as np

from mlopt.gd.plans.result import Step

FEWEST = 3
"""Gaps that tell how fast they fall."""


@dataclass(eq=False)
class Gaps:
    """Passes, seconds and gaps of a run, in order."""

    steps: list[Step] = field(default_factory=list)
    _told: list[Step] = field(default_factory=list)
    """Of the steps, those whose gap is known."""

    def add(self, step: Step) -> None:
        """One that was just made."""
        self.steps.append(step)
        if 0.0 < step[2] < np.inf:
            self._told.append(step)

    def left(self, wanted: float, began: float, now: float, sudden: bool) -> float:
        """Seconds until a gap, as they have fallen in the last half of the time.

        As long again as it has taken so far, where they have not, or tell nothing: as they
        are infinite, or fall ``sudden``-ly. 0 where there are too few of them.
        """
        half = 0.5 * (began + now)
        late, seen = _since(self.steps, half), _since(self._told, half)
        if len(late) >= FEWEST and not seen:
            return now - began
        if len(seen) < FEWEST:
            return 0.0
        (_, first, before), (_, last, gap) = seen[0], seen[-1]
        fell = np.log(before / gap)
        if fell <= 0 or sudden:
            return now - began
        return float(np.log(gap / wanted) * (last - first) / fell)


def _since(steps: list[Step], seconds: float) -> list[Step]:
    return steps[bisect_left(steps, seconds, key=operator.itemgetter(1)) :]
