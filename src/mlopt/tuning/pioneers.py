"""The first trials of a family whose looks are dear: trained straight, scored in stages.

They tell how early ranks are right, and so what looks at the others would save: how often
one would have been given up, and whether the best would. Until they have ended the others
of the family wait; what they tell is a matter of scores, the same on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mlopt.passes import Passes, passes_text
from mlopt.tuning.crews.families import Views
from mlopt.tuning.crews.trials import Trial, mean_score
from mlopt.tuning.rungs import Rungs
from mlopt.tuning.saving import Curve, Stops


@dataclass(eq=False)
class Pioneers:
    """Who trains before others, and where trials are looked at.

    Parameters
    ----------
    rungs : Rungs
    views : Views
    metric : str
        The metric that decides.
    n_trials : int or None
        Of the search at most.
    """

    rungs: Rungs
    views: Views
    metric: str
    n_trials: int | None
    told: dict[str, str] = field(default_factory=dict)
    """What was decided of each family, in words."""
    _seen: dict[str, list[Curve]] = field(default_factory=dict)

    def end(self, trial: Trial) -> None:
        """Take in a trial that is complete or was given up."""
        means = {passes: mean_score(s, self.metric) for passes, s in trial.rungs.items()}
        scores = {passes: mean for passes, mean in means.items() if math.isfinite(mean)}
        given_up = trial.passes if trial.state == "PRUNED" else None
        if given_up is None and not any(passes < self.rungs.full for passes in scores):
            return  # it tells nothing of looks
        curve = Curve(trial.number, trial.family, scores, given_up)
        self._seen.setdefault(trial.family, []).append(curve)

    def now(self, trials: Sequence[Trial]) -> list[Trial]:
        """Those of ``trials`` that need not wait for others."""
        going, first = [], dict[str, int]()
        for trial in sorted(trials, key=lambda t: t.number):
            missing = self._missing(trial)
            if missing and first.get(trial.family, 0) >= missing:
                continue
            if missing:
                first[trial.family] = first.get(trial.family, 0) + 1
            going.append(trial)
        chosen = {trial.number for trial in going}
        return [trial for trial in trials if trial.number in chosen]

    def next(self, trial: Trial) -> Passes:
        """Passes at which ``trial`` is looked at next."""
        model, seen = self.views.split(trial).final, self._seen.get(trial.family, [])
        first = self.rungs.pioneers(model)
        if first and len(seen) >= first and trial.family not in self.told:
            self.told[trial.family] = self._told(model, seen)
        return self.rungs.next(model, trial.passes, seen)

    def stages(self, trial: Trial, until: Passes) -> Stops:
        """Passes of which the score is wanted, too, of what is trained straight."""
        if trial.passes or not self._missing(trial):
            return ()
        model = self.views.split(trial).final
        return tuple(stop for stop in self.rungs.stages(model) if stop < until)

    def _missing(self, trial: Trial) -> int:
        """Trials of its family that must end before it is known where to look at it."""
        first = self.rungs.pioneers(self.views.split(trial).final)
        if self.n_trials is not None and self.n_trials <= first:
            return 0  # nobody would be left to look at
        return max(0, first - len(self._seen.get(trial.family, ())))

    def _told(self, model: Any, seen: Sequence[Curve]) -> str:
        looks = self.rungs.before_the_end(model, seen)
        begin = f"{len(seen)} trials to their end tell that"
        if not looks:
            return f"{begin} no look saves what it costs"
        cost = self.rungs.saving(model).cost(looks, seen)
        at = ", ".join(map(passes_text, looks))
        return f"{begin} with looks at {at} passes a trial costs {cost:.0%} of a fit"
