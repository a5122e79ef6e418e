"""What trials take beside what was foreseen of them, from the first one on.

The first trials correct the prediction of a search; all of them are remembered, so that the
next search over the family is foreseen better.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace

from mlopt.kernels.compiling import compiled
from mlopt.plan import Estimate, Plan
from mlopt.prices import count, price
from mlopt.resources.experience import SECONDS, Seen, remember, told
from mlopt.tuning.crews.families import Views
from mlopt.tuning.crews.trials import TrainResult, Trial
from mlopt.tuning.forecast import Forecast
from mlopt.tuning.rungs import Rungs

FIRST = count("search.first")
DOUBT = price("search.doubt.measured")
_BUSY = price("remember.busy")


@dataclass(eq=False)
class _Sum:
    """Of trials: seconds foreseen and taken, and those of a core."""

    foreseen: float = 0.0
    took: float = 0.0
    work: float = 0.0

    def add(self, other: _Sum) -> None:
        self.foreseen += other.foreseen
        self.took += other.took
        self.work += other.work

    @property
    def ratio(self) -> float:
        """Taken over foreseen; 1 where nothing was."""
        return self.took / self.foreseen if self.foreseen > 0 and self.took > 0 else 1.0


@dataclass(eq=False)
class Foresight:
    """Holds every trial against its family's forecast.

    Parameters
    ----------
    forecasts : mapping of family to Forecast
    views : Views
    rungs : Rungs
    n_trials : int or None
        Of the whole search, where that is known.
    """

    forecasts: Mapping[str, Forecast]
    views: Views
    rungs: Rungs
    n_trials: int | None
    begun: float = field(default_factory=time.perf_counter)
    ended: int = 0
    _looked: set[int] = field(default_factory=set)
    _families: dict[str, _Sum] = field(default_factory=dict)

    def hear(self, trial: Trial, outcome: TrainResult) -> None:
        """Take in what a look took; ``trial`` has not recorded it yet."""
        expected = self.forecasts[trial.family].chosen
        if expected is None or outcome.replayed or outcome.reason is not None:
            return
        part = float(not trial.passes)
        if not self.views.is_batched(trial):
            model = self.views.split(trial).final
            part = self.rungs.step(model, trial.passes, outcome.passes)
        batched = self.forecasts[trial.family].batched is not None
        threads = self.views.problem.executor.threads if batched else 1
        foreseen = part * expected.seconds(self.views.problem.resources, threads)
        took = outcome.seconds + outcome.score_seconds
        work = outcome.work / outcome.sharing
        self._families.setdefault(trial.family, _Sum()).add(_Sum(foreseen, took, work))
        self._looked.add(trial.number)

    def end(self, trial: Trial) -> None:
        """Nothing more will come of ``trial``."""
        self.ended += trial.number in self._looked

    def corrected(self, plan: Plan) -> Plan:
        """The plan with another estimate, once enough trials have ended.

        Those still in training tell as well: the first to end are the quickest. Kernels
        that compiled meanwhile are no trial's work: then none tells yet.
        """
        if self.n_trials is None or not plan.estimates or len(plan.estimates) > 1:
            return plan
        first, enough = plan.estimates[0], max(2, math.ceil(self.n_trials / FIRST))
        if self.ended < enough or compiled(self.begun) > 0:
            return plan
        more = 0.0
        for choice, (family, forecast) in zip(
            plan.choices, self.forecasts.items(), strict=False
        ):
            known = self._families.get(family, _Sum())
            factor = forecast.remembered.factor()
            more += (choice.predicted or 0.0) * (known.ratio / factor - 1)
        seconds = max(0.0, first.seconds + more)
        source = f"{len(self._looked)} of {self.n_trials} trials"
        again = Estimate.about(seconds, DOUBT, source)
        return replace(plan, estimates=(first, again))

    def remember(self, cut: Set[str] = frozenset()) -> None:
        """Leave what the families took to later searches, where it tells of them alone;
        not of families that were ``cut`` off in training.
        """
        if compiled(self.begun) == 0:
            remember(self._seen(cut))

    def _seen(self, cut: Set[str]) -> Iterator[Seen]:
        for family, known in self._families.items():
            if family in cut:
                continue
            forecast = self.forecasts[family]
            alone = known.work >= _BUSY * known.took
            ratio = told(known.took, known.foreseen)
            if alone and ratio is not None:
                yield Seen(forecast.method, SECONDS, forecast.kind, ratio)
