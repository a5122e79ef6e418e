"""Where a trial is looked at on its way: at the bandit's rungs, less those too dear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlopt.passes import Passes, passes_text
from mlopt.tuning.bandits import Bandit
from mlopt.tuning.bandits.base import Progress
from mlopt.tuning.crews.growing import (
    GROWING,
    LOOKS,
    grows,
    members,
    members_at,
    price_of_looks,
    worth_a_look,
)


@dataclass(frozen=True)
class Rungs:
    """Looks at trials that are fitted one by one.

    They follow from classes and sizes alone, not from a clock: the same search prunes the
    same trials on any machine.

    Parameters
    ----------
    bandit : Bandit
    full : int
        Passes at which ensembles have grown up.
    judged : float
        Rows that a look predicts, for each row of training.
    short : bool
        Whether time may run out: then a first look tells the price of what is to come.
    """

    bandit: Bandit
    full: int
    judged: float
    short: bool = False

    def before_the_end(self, model: Any) -> tuple[Passes, ...]:
        """Passes at which a trial of ``model`` is looked at, without the last."""
        asked = self._asked()
        if not self.bandit.optional:
            return asked
        worth = worth_a_look(model, asked, self.full, self.judged)
        return worth or (asked[:1] if self.short else ())

    def next(self, model: Any, passes: Passes) -> Passes:
        """Passes at which ``model`` is looked at next."""
        looks = (stop for stop in self.before_the_end(model) if stop > passes)
        return next(looks, self.bandit.max_passes)

    def share(self, model: Any) -> float:
        """What looks add to one fit, as a share of it."""
        if not grows(model):
            return 0.0
        return price_of_looks(model, self.before_the_end(model), self.full, self.judged)

    def fits(self, model: Any) -> int:
        """How often ``model`` is fitted until its end: if it grows, once a look."""
        if not grows(model):
            return 1
        stops = (*self.before_the_end(model), self.bandit.max_passes)
        return len({members_at(model, stop, self.full) for stop in stops})

    def explained(self, model: Any) -> str:
        """The decision in words; "" where there is none to make."""
        if not grows(model) or not self._asked():
            return ""
        again, size = GROWING[type(model)].again, members(model)
        looks = [stop for stop in self.before_the_end(model) if stop < self.full]
        costs = f"one costs what {again:g} of {size} members do"
        if not looks:
            return f"no look before its end: {costs}, more than {LOOKS:.0%} of a fit"
        at = ", ".join(map(passes_text, looks))
        share = f"{self.share(model):.1%} of a fit"
        return f"looks at {at} of {self.full} passes, {share}: {costs}"

    def _asked(self) -> tuple[Passes, ...]:
        stops: list[Passes] = []
        stop = self.bandit.next_stop(self.bandit.start(0))
        while stop < self.bandit.max_passes:
            stops.append(stop)
            stop = self.bandit.next_stop(Progress(0, stop, 0.0, False))
        return tuple(stops)
