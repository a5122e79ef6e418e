"""The ranked plans for a task: to read, and to run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mlopt import plan as plans
from mlopt.gd.plans.fitting import Ranker
from mlopt.gd.plans.result import Result
from mlopt.gd.plans.running import Alternative, solve
from mlopt.gd.plans.task import Task
from mlopt.gd.plans.trial import SHARE, to_try
from mlopt.locking import cached_property


@dataclass(frozen=True, eq=False)
class SolverPlan:
    """Every plan for a task, ranked; see `mlopt.gd.plan`.

    Attributes
    ----------
    task : Task
    contenders : tuple of Alternative
        Those that may turn out the cheapest, the chosen one first.
    planning_seconds : float
    limits : (float or None, int or None)
        Seconds and passes that a run may take.
    """

    task: Task
    contenders: tuple[Alternative, ...]
    ranker: Ranker
    unfit: dict[str, str] = field(default_factory=dict)
    planning_seconds: float = 0.0
    limits: tuple[float | None, int | None] = (None, None)

    def __getstate__(self) -> dict[str, Any]:
        # They are read where no rows are, too.
        return vars(self) | {"alternatives": self.alternatives}

    @property
    def chosen(self) -> Alternative:
        """The cheapest within the limits."""
        return self.contenders[0]

    @cached_property
    def tried(self) -> Alternative | None:
        """What is run before the chosen one, for a tenth of its time or to the end."""
        return to_try(self.contenders) if self.limits[1] is None else None

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """All plans: the chosen one, and then the others, cheapest first."""
        others = (*self.contenders[1:], *self.ranker.others(self.contenders))
        return (self.chosen, *sorted(others, key=lambda a: a.predicted_seconds))

    @property
    def refused(self) -> dict[str, str]:
        """Methods that cannot be used here, and why."""
        self.ranker.others(self.contenders)  # asks those that were not
        return self.unfit | self.ranker.refused

    @property
    def ties(self) -> tuple[str, ...]:
        """Names of plans that with few passes end before the chosen one is predicted to."""
        best = self.chosen.predicted_seconds
        return tuple(a.name for a in self.alternatives[1:] if a.span[0] <= best)

    def run(
        self, *, time_limit: float | None = None, max_iter: int | None = None
    ) -> Result:
        """Run the chosen plan, and watch it.

        One that may take far less is tried first, where its gaps tell soon. A plan that
        takes more passes than the most that were to be expected is left for the next one
        that can go on from its weights.

        Parameters
        ----------
        time_limit : float, optional
            Seconds; those given to `plan` by default.
        max_iter : int, optional
            Passes at most; those given to `plan` by default.
        """
        seconds, passes = self.limits
        seconds = seconds if time_limit is None else time_limit
        passes = passes if max_iter is None else max_iter
        if passes is not None:
            return solve(self.contenders, time_limit=seconds, max_iter=passes)
        attempts, trial = self.contenders, 0.0
        if first := self.tried:
            others = (a for a in attempts if a is not first)
            attempts, trial = (first, *others), self._trial
        return solve(attempts, time_limit=seconds, trial=trial, others=self._others)

    @property
    def _trial(self) -> float:
        """Seconds after which what is tried must promise more than the chosen one."""
        return SHARE * self.chosen.predicted_seconds

    def _others(self) -> tuple[Alternative, ...]:
        """What was not thought to be the cheapest, and counts in passes too."""
        found = self.ranker.others(self.contenders)
        return tuple(one for one in found if one.method.unit == "passes")

    def to_plan(self) -> plans.Plan:
        """The same as a `mlopt.Plan`."""
        first, *others = self.alternatives
        rejected = [
            plans.Alternative(a.name, a.predicted_seconds, a.time_in_words) for a in others
        ]
        rejected += [
            plans.Alternative(name, None, why) for name, why in self.refused.items()
        ]
        notes = [f"{first.passes_in_words}; {first.time_in_words}", *first.notes]
        if (tried := self.tried) is not None:
            may, trial = map(plans.format_seconds, (tried.span[0], self._trial))
            notes.append(
                f"{tried.name}, which may take {may}, is tried first: for {trial}, or to "
                "its end if its gaps then fall fast"
            )
        if self.ties:
            notes.append(f"about as good: {', '.join(self.ties)}")
        choice = plans.Choice(
            "fit", f"{self.task.loss_name}, {first.stop}", first.name,
            first.predicted_seconds, rejected=tuple(rejected), notes=tuple(notes),
        )  # fmt: skip
        note = f"planned in {plans.format_seconds(self.planning_seconds)}"
        title = f"minimise {self.task.title}"
        return plans.Plan(title, (choice,), first.predicted_seconds, notes=(note,))

    def explain(self, *, verbose: bool = False) -> str:
        """The ranked plans as text."""
        return self.to_plan().explain(verbose=verbose)

    def _repr_html_(self) -> str:
        return self.to_plan()._repr_html_()

    def __repr__(self) -> str:
        return self.explain()
