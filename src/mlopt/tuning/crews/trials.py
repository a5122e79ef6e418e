"""A trial: one configuration on its way through the rungs."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError
from mlopt.passes import Passes

FAILURES_IN_A_ROW = 8
"""When the first trials all fail, the search stops: something is wrong with all of them."""

NOT_FINITE = "its score is not finite"
"""How the reason begins of a trial whose fits went through and whose score is no number."""

Scores = Mapping[str, tuple[float, ...]]
"""Metric name to the scores of the splits, in order."""


def mean_score(known: Scores, metric: str) -> float:
    """The mean over splits of ``metric``, or of the first metric; NaN without one."""
    scores = known.get(metric) or next(iter(known.values()), ())
    return _mean(scores) if scores else math.nan


@dataclass(frozen=True)
class TrainResult:
    """What became of a trial that was trained for a while; a trainer's answer."""

    trial: int
    passes: Passes
    scores: Scores
    done: bool
    seconds: float
    score_seconds: float = 0.0
    reason: str | None = None
    """Why it failed; None when it did not."""
    train_scores: Scores | None = None
    replayed: bool = False
    work: float = 0.0
    """Seconds of a core that it would have taken alone, at most."""
    sharing: int = 1
    """Trials that shared the scans."""
    by_split: tuple[tuple[float, float], ...] = ()
    """Seconds of fitting and of scoring, a pair a split; empty when nobody measured."""
    traces: tuple[str, ...] = ()
    """What the fits that failed raised, in full."""
    ran: Mapping[str, int] = field(default_factory=dict)
    """How many models were fitted, and how often one was scored, for this."""
    stages: Mapping[Passes, Scores] = field(default_factory=dict)
    """Of the same model after fewer passes, where that was asked for and can be told."""


@dataclass(eq=False)
class Trial:
    """A configuration, and what is known of it so far."""

    number: int
    family: str
    params: Mapping[str, Any]
    bracket: int = 0
    passes: Passes = 0
    state: str = "RUNNING"
    done: bool = False
    reason: str | None = None
    unfinished: bool = False
    """Whether time ran out before it was trained to the end."""
    seconds: float = 0.0
    score_seconds: float = 0.0
    work: float = 0.0
    rungs: dict[Passes, Scores] = field(default_factory=dict)
    train_scores: Scores | None = None
    by_split: NDArray[np.float64] | None = None
    """Seconds of fitting and of scoring, (splits, 2); None when nobody measured."""
    traces: tuple[str, ...] = ()
    failed: Scores | None = None
    """Of a trial that failed: its scores, with the error score where there is none."""
    replayed: bool = False
    """Whether its latest look is that of an earlier run."""
    _means: dict[str, float] = field(default_factory=dict)

    @property
    def scores(self) -> Scores:
        """The latest scores; empty before the first."""
        return self.rungs.get(self.passes, {}) if self.failed is None else self.failed

    @property
    def fitted(self) -> bool:
        """Whether it was fitted as far as it was to be, whatever its score."""
        return not self.unfinished and (
            self.state != "FAIL" or (self.reason or "").startswith(NOT_FINITE)
        )

    def mean(self, metric: str) -> float:
        """The latest mean over splits; not a number before the first.

        A scorer that is a function names its metrics only when it is called: when none of
        them is ``metric``, the first decides.
        """
        if metric not in self._means:
            self._means[metric] = mean_score(self.scores, metric)
        return self._means[metric]

    def record(self, outcome: TrainResult) -> None:
        """Take in what one round of training gave."""
        self.seconds += outcome.seconds
        self.score_seconds += outcome.score_seconds
        self.work += outcome.work
        self.done, self.replayed = outcome.done, outcome.replayed
        self.train_scores = outcome.train_scores or self.train_scores
        if outcome.by_split:
            before = 0.0 if self.by_split is None else self.by_split
            self.by_split = before + np.array(outcome.by_split, dtype=float)
        if outcome.reason is not None:
            self.reason, self.traces = outcome.reason, outcome.traces
            self.failed = dict(outcome.scores)
            self._means.clear()
            return
        self.passes = outcome.passes
        self.rungs.update({p: dict(scores) for p, scores in outcome.stages.items()})
        self.rungs[outcome.passes] = dict(outcome.scores)
        self._means.clear()


def _mean(scores: tuple[float, ...]) -> float:
    """As NumPy has it, which adds up fewer than eight one after the other, too."""
    if len(scores) >= 8:
        return float(np.mean(scores))
    return reduce(operator.add, scores) / len(scores)


@dataclass(frozen=True)
class TrainRequest:
    """Train ``trial`` until it has made ``until`` passes.

    ``stages`` are passes before that of which the scores are wanted, if the trained model
    tells them.
    """

    trial: Trial
    until: Passes
    stages: tuple[Passes, ...] = ()


def best_trial(trials: Iterable[Trial], metric: str) -> Trial | None:
    """The best trial that the bandit did not give up; without one, of all with a score.

    A trial that the time limit ended in the middle stands with the fully trained ones: more
    training would hardly have made it worse. One that failed has a score where the user
    says what a failure counts, and an infinite score is one, as for scikit-learn.
    """
    scored = [
        t
        for t in trials
        if not math.isnan(t.mean(metric))
        and (t.state != "FAIL" or t.failed is not None or t.fitted)
    ]
    kept = [t for t in scored if t.state != "PRUNED" or t.unfinished]
    # Of equals the earliest proposed wins, so that the answer does not depend on timing.
    pool = sorted(kept or scored, key=lambda t: t.number)
    return max(pool, key=lambda t: t.mean(metric), default=None)


def check_failures(trials: Iterable[Trial]) -> None:
    """Raise when the first trials to end have all failed."""
    ended = [t for t in trials if t.state != "RUNNING"]
    if len(ended) >= FAILURES_IN_A_ROW and all(t.state == "FAIL" for t in ended):
        raise InputError(
            f"The first {len(ended)} trials all failed; the search stops. The first "
            f"reason: {ended[0].reason}"
        )


def why_none(trials: Sequence[Trial]) -> str:
    """Why none of ``trials`` has a score."""
    if not trials:
        return "the budget allowed none."
    if all(trial.unfinished for trial in trials):
        return (
            f"of {len(trials)} that were begun none was fitted once in the time given, nor "
            "in as much again. Give a longer `timeout`; a fit that hangs never ends."
        )
    return f"the first reason is {trials[0].reason}."
