"""What looks would have saved: trials that were trained to their end, given up in thought.

::

    passes          10    20    40   100
    trial 0        .71   .74   .80   .84      would go on at 10: costs 1 + a look
    trial 1        .52   .55   .60   .66      given up at 10: costs .1 + a look
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from mlopt.passes import Passes
from mlopt.tuning.bandits import Bandit
from mlopt.tuning.bandits.base import Progress

Stops = tuple[Passes, ...]


@dataclass(frozen=True)
class Curve:
    """A trial that has ended.

    Parameters
    ----------
    trial : int
    family : str
    scores : mapping of passes to float
        As far as it was looked at, or scored in stages afterwards.
    given_up : passes, optional
        Where the bandit ended it.
    """

    trial: int
    family: str
    scores: Mapping[Passes, float]
    given_up: Passes | None = None

    def at(self, stop: Passes) -> Progress:
        """The trial as it was at ``stop``."""
        return Progress(self.trial, stop, self.scores[stop], False, family=self.family)


@dataclass(frozen=True)
class Saving:
    """Chooses looks by what they would have saved of trials that have ended.

    Parameters
    ----------
    bandit : Bandit
        Who gives up trials.
    full : int
        Passes of a trial that has grown up.
    price : callable
        Of a look at so many passes, as a share of one fit.
    """

    bandit: Bandit
    full: int
    price: Callable[[Passes], float]

    def enough(self, stops: Sequence[Passes]) -> int:
        """Trials after which a look that never paid is known not to; 0: it cannot pay.

        By Laplace's rule of succession: of n trials of which none would have been given up,
        the next one is with probability 1 / (n + 2). Two at least, to be compared.
        """
        gains = [(1 - float(s / self.full)) / self.price(s) for s in stops]
        most = max(gains, default=0.0)
        return 0 if most <= 2 else max(2, math.ceil(most) - 2)

    def best(self, stops: Sequence[Passes], seen: Sequence[Curve]) -> Stops:
        """The looks with which a trial is expected to cost least; none where that is best.

        Never those at which the best trial of all would have been given up.
        """
        choices = [
            (self.cost(looks, seen), len(looks), looks)
            for looks in _subsets(stops)
            if self._keeps_the_best(looks, seen)
        ]
        return min([(1.0, 0, ()), *choices])[2]

    def cost(self, looks: Stops, seen: Sequence[Curve]) -> float:
        """What a trial with these ``looks`` is expected to cost, as a share of one fit.

        The mean of the trials seen, of one that is given up at once and of one that never
        is: of what nobody has seen yet, the probability is one half.
        """
        if not looks:
            return 1.0
        costs = [self._cost(curve, looks, seen) for curve in seen]
        at_once = float(looks[0] / self.full) + self.price(looks[0])
        never = 1.0 + sum(map(self.price, looks))
        return (sum(costs) + at_once + never) / (len(costs) + 2)

    def _cost(self, curve: Curve, looks: Stops, seen: Sequence[Curve]) -> float:
        paid = 0.0
        for stop in looks:
            paid += self.price(stop)
            if self._gives_up(curve, stop, seen):
                return float(stop / self.full) + paid
        return 1.0 + paid

    def _gives_up(self, curve: Curve, stop: Passes, seen: Sequence[Curve]) -> bool:
        if curve.given_up is not None and curve.given_up <= stop:
            return True
        if stop not in curve.scores:
            return False
        others = [c.at(stop) for c in seen if c is not curve and stop in c.scores]
        return curve.trial in self.bandit.allocate([curve.at(stop)], others).pruned

    def _keeps_the_best(self, looks: Stops, seen: Sequence[Curve]) -> bool:
        ended = [c for c in seen if c.given_up is None and c.scores]
        if not ended:
            return True
        best = max(ended, key=lambda c: c.scores[max(c.scores)])
        return not any(self._gives_up(best, stop, seen) for stop in looks)


def _subsets(stops: Sequence[Passes]) -> Iterator[Stops]:
    for number in range(1, len(stops) + 1):
        yield from combinations(stops, number)
