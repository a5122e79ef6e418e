"""What an earlier run has stored of its trials, given back look by look."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlopt.passes import Passes
from mlopt.tuning.crews.trials import TrainResult, Trial
from mlopt.tuning.storage.records import Recorded


@dataclass(eq=False)
class Earlier:
    """The trials of an earlier run.

    Parameters
    ----------
    trials : dict of int to Recorded
        By number, of those that were proposed again.
    """

    trials: dict[int, Recorded] = field(default_factory=dict)

    def look(
        self, trial: Trial, until: Passes = 0, *, late: bool = False
    ) -> TrainResult | None:
        """The next look at a trial that had ended in the storage, as it was then.

        That is the one after ``until`` passes, if there was one: scores before are stages.
        ``late``: at one that had not ended, too, since there is no time to train it again.
        """
        record = self.trials.get(trial.number)
        if record is None or not (record.finished or late):
            return None
        number, passes = trial.number, trial.passes
        later = [rung for rung in sorted(record.rungs) if rung > passes]
        if not later and record.state != "FAIL":
            return None  # a larger budget would have it go on: train it again
        if not later:
            reason = record.reason or "no reason is recorded"
            return TrainResult(
                number, passes, record.failed, True, 0.0, reason=reason, replayed=True,
                train_scores=record.train,
            )  # fmt: skip
        stop = until if until in later else later[0]
        last = stop == later[-1]
        return TrainResult(
            number, stop, record.rungs[stop], record.state == "COMPLETE" and last,
            record.seconds if last else 0.0, replayed=True,
            work=record.work if last else 0.0,
            train_scores=record.train if last else None,
            stages={rung: record.rungs[rung] for rung in later if rung < stop},
        )  # fmt: skip

    def end(self, trial: Trial) -> tuple[str, str | None]:
        """How the trial had ended, and why."""
        record = self.trials.get(trial.number)
        return ("RUNNING", None) if record is None else (record.state, record.reason)
