"""Where a trial is looked at on its way: at the bandit's rungs, less those too dear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlopt.passes import Passes, passes_text
from mlopt.tuning.bandits import Bandit
from mlopt.tuning.bandits.base import Progress
from mlopt.tuning.crews.growing import (
    GROWING,
    affordable,
    grows,
    members,
    members_at,
    price_of_looks,
    tells_stages,
)
from mlopt.tuning.saving import Curve, Saving, Stops


@dataclass(frozen=True)
class Rungs:
    """Looks at trials that are fitted one by one.

    They follow from classes, sizes and scores alone, not from a clock: the same search
    prunes the same trials on any machine.

    Parameters
    ----------
    bandit : Bandit
    full : int
        Passes at which ensembles have grown up.
    judged : float
        Rows that a look predicts, for each row of training.
    short : bool
        Whether time may run out: then a first look tells the price of what is to come.
    staged : bool
        Whether the first members of a model may be scored for what they would have told.
    """

    bandit: Bandit
    full: int
    judged: float
    short: bool = False
    staged: bool = True

    def before_the_end(self, model: Any, seen: Sequence[Curve] = ()) -> Stops:
        """Passes at which a trial of ``model`` is looked at, without the last.

        Parameters
        ----------
        model : estimator
        seen : sequence of Curve
            Trials of its family that tell what looks would have saved.
        """
        asked = self._asked()
        if not self.bandit.optional or not grows(model):
            return asked
        if unasked := affordable(asked, lambda stops: self._price(model, stops)):
            return unasked
        if self.short:
            return asked[:1]
        enough = self.pioneers(model)
        if not enough or len(seen) < enough:
            return ()
        return self.saving(model).best(self.stages(model), seen)

    def pioneers(self, model: Any) -> int:
        """Trials that are trained straight to their end to tell what looks would save.

        None where looks cost too little to wait for that, or too much ever to pay.
        """
        if not (self.bandit.optional and grows(model) and self.staged) or self.short:
            return 0
        if not tells_stages(model):
            return 0
        if affordable(self._asked(), lambda stops: self._price(model, stops)):
            return 0
        return self.saving(model).enough(self.stages(model))

    def stages(self, model: Any) -> Stops:
        """Passes of which a grown ``model`` tells the score at little cost."""
        if not tells_stages(model):
            return ()
        size = members(model)
        young = [s for s in self._asked() if members_at(model, s, self.full) < size]
        return affordable(
            young,
            lambda stops: price_of_looks(model, stops, self.full, self.judged, again=False),
        )

    def saving(self, model: Any) -> Saving:
        """Chooses looks at trials of the size of ``model``."""
        return Saving(self.bandit, self.full, lambda stop: self._price(model, (stop,)))

    def next(self, model: Any, passes: Passes, seen: Sequence[Curve] = ()) -> Passes:
        """Passes at which ``model`` is looked at next."""
        looks = (stop for stop in self.before_the_end(model, seen) if stop > passes)
        return next(looks, self.bandit.max_passes)

    def share(self, model: Any) -> float:
        """What looks add to one fit, as a share of it."""
        return self._price(model, self.before_the_end(model)) if grows(model) else 0.0

    def part(self, model: Any, n_trials: int | None = None) -> float:
        """Of a full fit that a trial is expected to take: looks add, an early end saves."""
        if not grows(model):
            return 1.0
        if first := self.pioneers(model):
            saving, alone = self.saving(model), min(1.0, first / (n_trials or first))
            later = [saving.cost((stop,), ()) for stop in self.stages(model)]
            return alone + (1 - alone) * min([1.0, *later])
        stops, before, part = self.before_the_end(model), 0.0, 0.0
        for number, stop in enumerate((*stops, self.full)):
            here = min(1.0, float(stop / self.full))
            part += self.bandit.survival(number) * (here - before)
            before = here
        return part + self.share(model)

    def step(self, model: Any, begin: Passes, end: Passes) -> float:
        """Of a full fit that it takes from look to look, with what the last one adds."""
        if not grows(model):
            return 1.0
        grown = min(1, end / self.full) - min(1, begin / self.full)
        return float(grown) + self._price(model, (end,))

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
        if not looks and (first := self.pioneers(model)):
            return f"{first} trials to their end tell whether looks pay: {costs}"
        if not looks:
            return f"no look before its end: {costs}, more than it may save"
        at = ", ".join(map(passes_text, looks))
        share = f"{self.share(model):.1%} of a fit"
        return f"looks at {at} of {self.full} passes, {share}: {costs}"

    def _price(self, model: Any, stops: Sequence[Passes]) -> float:
        return price_of_looks(model, stops, self.full, self.judged)

    def _asked(self) -> Stops:
        stops: list[Passes] = []
        stop = self.bandit.next_stop(self.bandit.start(0))
        while stop < self.bandit.max_passes:
            stops.append(stop)
            stop = self.bandit.next_stop(Progress(0, stop, 0.0, False))
        return tuple(stops)
