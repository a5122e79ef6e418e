"""A trial as a study keeps it, and back: the names of its attributes live here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from optuna.trial import FrozenTrial

from mlopt.passes import Passes, exact

FAMILY, SCORES, REASON = "family", "scores", "reason"
TRAIN, FAILED = "train_scores", "failed_scores"
SECONDS, WORK = "seconds", "core_seconds"


@dataclass(frozen=True)
class Recorded:
    """A trial found in a study.

    Parameters
    ----------
    number : int
    params : mapping
        The point, as in `mlopt.tuning.space`; `Space.decode` gives the hyperparameters.
    state : str
        "COMPLETE", "PRUNED", "FAIL", or "RUNNING" when its process died.
    rungs : mapping of int or Fraction to mapping of str to tuple of float
        Passes to metric to the scores of the splits.
    train, failed : mapping of str to tuple of float
        Metric to the scores of the rows trained on, after the last rung; and of a trial
        that failed, with the error score where there is none.
    score : float, optional
        The last one that the search compares, of a trial that has not failed.
    reason : str, optional
        Why it failed or was pruned.
    seconds : float
        Training time.
    work : float
        Seconds of a core that training would have taken alone, at most.
    """

    number: int
    params: Mapping[str, Any]
    state: str = "RUNNING"
    rungs: Mapping[Passes, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)
    train: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    failed: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    score: float | None = None
    reason: str | None = None
    seconds: float = 0.0
    work: float = 0.0

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to train."""
        return self.state in ("COMPLETE", "PRUNED", "FAIL")


def recorded(trial: FrozenTrial) -> Recorded:
    """What ``trial`` says."""
    attrs = trial.user_attrs
    scores = attrs.get(SCORES, {})
    return Recorded(
        number=trial.number,
        params=dict(trial.params),
        state=trial.state.name if trial.state.is_finished() else "RUNNING",
        rungs={
            exact(Fraction(passes)): rung_from_json(rung) for passes, rung in scores.items()
        },
        train=rung_from_json(attrs.get(TRAIN, {})),
        failed=rung_from_json(attrs.get(FAILED, {})),
        score=trial.value,
        reason=attrs.get(REASON),
        seconds=attrs.get(SECONDS, 0.0),
        work=attrs.get(WORK, 0.0),
    )


def rung_to_json(scores: Mapping[str, Any]) -> dict[str, list[float]]:
    """Scores by metric and split, as a study can hold them."""
    return {metric: [float(score) for score in splits] for metric, splits in scores.items()}


def rung_from_json(rung: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    """The inverse of `rung_to_json`."""
    return {metric: tuple(splits) for metric, splits in rung.items()}
