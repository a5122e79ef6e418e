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
    family : str
        Empty when there is but one.
    params : mapping
        The point, as in `mlopt.tuning.space`; `Space.decode` gives the hyperparameters.
    state : str
        "COMPLETE", "PRUNED", "FAIL", or "RUNNING" when its process died.
    values : mapping of int to float
        Optuna's step to the score that the search compares; higher is better.
    rungs : mapping of int or Fraction to mapping of str to tuple of float
        Passes to metric to the scores of the splits.
    train, failed : mapping of str to tuple of float
        Metric to the scores of the rows trained on, after the last rung; and of a trial
        that failed, with the error score where there is none.
    score : float, optional
        The last of ``values``, of a trial that has not failed.
    reason : str, optional
        Why it failed or was pruned.
    seconds : float
        Training time.
    work : float
        Seconds of a core that training would have taken alone, at most.
    attrs : mapping
        Whatever else was noted of it.
    """

    number: int
    family: str
    params: Mapping[str, Any]
    state: str = "RUNNING"
    values: Mapping[int, float] = field(default_factory=dict)
    rungs: Mapping[Passes, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)
    train: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    failed: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    score: float | None = None
    reason: str | None = None
    seconds: float = 0.0
    work: float = 0.0
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to train."""
        return self.state in ("COMPLETE", "PRUNED", "FAIL")


def recorded(trial: FrozenTrial) -> Recorded:
    """What ``trial`` says."""
    attrs = dict(trial.user_attrs)
    scores = attrs.pop(SCORES, {})
    return Recorded(
        number=trial.number,
        family=attrs.pop(FAMILY, ""),
        params=dict(trial.params),
        state=trial.state.name if trial.state.is_finished() else "RUNNING",
        values=dict(trial.intermediate_values),
        rungs={
            exact(Fraction(passes)): rung_from_json(rung) for passes, rung in scores.items()
        },
        train=rung_from_json(attrs.pop(TRAIN, {})),
        failed=rung_from_json(attrs.pop(FAILED, {})),
        score=trial.value,
        reason=attrs.pop(REASON, None),
        seconds=attrs.pop(SECONDS, 0.0),
        work=attrs.pop(WORK, 0.0),
        attrs=attrs,
    )


def rung_to_json(scores: Mapping[str, Any]) -> dict[str, list[float]]:
    """Scores by metric and split, as a study can hold them."""
    return {metric: [float(score) for score in splits] for metric, splits in scores.items()}


def rung_from_json(rung: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    """The inverse of `rung_to_json`."""
    return {metric: tuple(splits) for metric, splits in rung.items()}
