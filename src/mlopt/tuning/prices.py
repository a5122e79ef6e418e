"""What fitting a trial on all rows will take, by what its splits have taken so far.

Work is counted in seconds of a core, which do not grow when others use the machine: a
search on a busy machine must not make the next one, on an idle machine, reserve hours.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mlopt.tuning.crews.families import Views
from mlopt.tuning.crews.growing import helpers, members, stops_early
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.crews.trials import TrainResult, Trial


@dataclass(eq=False)
class Prices:
    """Seconds of the final fit, of any trial.

    Parameters
    ----------
    problem : Problem
    views : Views
    max_passes : int
        Passes of a full training.
    """

    problem: Problem
    views: Views
    max_passes: int
    _work: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    """Of each trial: passes and seconds of a core, look by look."""
    _splits: dict[int, list[float]] = field(default_factory=dict)
    """Of each trial: seconds of fitting, a split."""
    _seconds: dict[str, float] = field(default_factory=dict)
    _cores: dict[str, float] = field(default_factory=dict)
    _members: dict[str, dict[int, float]] = field(default_factory=dict)
    """Of each family: seconds a member of the final fit, by trial."""
    _grown: dict[str, float] = field(default_factory=dict)
    """Of each family that may stop early: the largest part of its rounds seen so far."""
    _stopped: set[str] = field(default_factory=set)
    """Families of which one has stopped early: the others have a measure."""

    def hear(self, trial: Trial, outcome: TrainResult) -> None:
        """Take in what a look took; ``trial`` has not recorded it yet."""
        looks = self._work.setdefault(trial.number, [])
        if outcome.work > 0:  # of several looks replayed, the last tells what all took
            before = sum(passes for passes, _ in looks)
            looks.append((float(outcome.passes) - before, outcome.work))
        fits = [fit for fit, _ in outcome.by_split]
        known = self._splits.setdefault(trial.number, [0.0] * len(fits))
        self._splits[trial.number] = [a + b for a, b in zip(known, fits, strict=False)]
        if not outcome.replayed:
            family = trial.family
            took = outcome.seconds * outcome.sharing
            self._seconds[family] = self._seconds.get(family, 0.0) + took
            self._cores[family] = self._cores.get(family, 0.0) + outcome.work
        if looks and self._stops(trial):
            self._see(trial.family, looks, outcome.done)
        if looks and (size := self._size(trial)):
            prices = self._members.setdefault(trial.family, {})
            prices[trial.number] = self.final(trial) / size

    def _see(self, family: str, looks: list[tuple[float, float]], done: bool) -> None:
        """How far early stopping has let these ``looks`` go, or did when it ended them."""
        part = sum(passes for passes, _ in looks) / self.max_passes
        if done:
            if len(looks) == 1:
                return  # no other look tells how many of its rounds there were
            passes, work = looks[0]
            part = sum(work for _, work in looks) * passes / (work * self.max_passes)
            self._stopped.add(family)
        self._grown[family] = min(1.0, max(self._grown.get(family, 0.0), part))

    def final(self, trial: Trial) -> float:
        """Seconds of one full fit on all rows.

        A member of a trial that was not looked at is taken for as cheap as any of its
        family: a forest of far more trees is not begun when it could not be fitted in the
        end. Without members, or others of the family, such a trial counts for nothing.
        """
        looks = self._work.get(trial.number)
        if not looks:
            known = self._members.get(trial.family)
            return min(known.values()) * self._size(trial) if known else 0.0
        splits = self.problem.splits
        share = self.problem.n / len(splits[0].train) / len(splits)
        # Growing again and again costs more than growing at once: the best look counts.
        took, stops = sum(work for _, work in looks), self._stops(trial)
        # Of what may stop early, later looks are of the splits that go on.
        whole = _rate(looks[:1] if stops else looks) * self.max_passes
        if trial.state == "COMPLETE":
            whole = took * self._unevenness(trial) if stops else min(whole, took)
        elif stops and trial.family in self._stopped:  # as late as any: at worst never
            whole *= self._grown[trial.family]
        return share * whole * self._pace(trial.family) / self._helpers(trial)

    def _unevenness(self, trial: Trial) -> float:
        """How much longer the longest fit of a split took than their mean: where they may
        stop early, all rows may go on as long as those of any split."""
        splits = self._splits.get(trial.number)
        return max(splits) * len(splits) / sum(splits) if splits and sum(splits) else 1.0

    def rest(self, trial: Trial) -> float:
        """Seconds of one thread until ``trial`` is trained to its end, on all splits."""
        looks = self._work.get(trial.number)
        if not looks:
            return 0.0
        left = self.max_passes - sum(passes for passes, _ in looks)
        rate = _rate(looks[:1] if self._stops(trial) else looks)
        return max(0.0, left) * rate * self._pace(trial.family)

    def least(self, trial: Trial) -> float:
        """`final` if what may stop early does so at once: what it has taken so far."""
        final = self.final(trial)
        if trial.passes <= 0 or trial.state == "COMPLETE" or not self._stops(trial):
            return final
        seen = self._grown[trial.family] if trial.family in self._stopped else 1.0
        return final * float(min(1.0, trial.passes / self.max_passes / seen))

    def _stops(self, trial: Trial) -> bool:
        """Whether early stopping may end its training."""
        rows = len(self.problem.splits[0].train)
        return stops_early(self.views.split(trial).final, rows)

    def _size(self, trial: Trial) -> int:
        """Members of an ensemble that grows; 0 of other models."""
        return members(self.views.split(trial).final)

    def _pace(self, family: str) -> float:
        """Seconds that a second of work takes, here and now."""
        cores = self._cores.get(family, 0.0)
        return self._seconds[family] / cores if cores > 0 else 1.0

    def _helpers(self, trial: Trial) -> float:
        """Threads that the final fit can use where a split had one."""
        return helpers(self.views.split(trial).final, self.problem.executor.threads)


def _rate(looks: list[tuple[float, float]]) -> float:
    """Seconds of a core that a pass takes."""
    return min(work / passes for passes, work in looks if passes > 0)
