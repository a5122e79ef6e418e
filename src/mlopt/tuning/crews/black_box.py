"""Trials without a batched form: their splits are fitted one by one, in parallel."""

from __future__ import annotations

import math
import operator
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mlopt.errors import ClusterError, TaskKilledError
from mlopt.passes import Passes
from mlopt.tuning.crews.families import Views
from mlopt.tuning.crews.fitting import Report, Step, failure, train_on
from mlopt.tuning.crews.plain import is_plain
from mlopt.tuning.crews.prefixes import Prefixes
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.crews.trainer import Clock
from mlopt.tuning.crews.trials import TrainRequest, TrainResult, Trial


@dataclass(eq=False)
class Unit:
    """One split of a trial to train: up to where, from which model."""

    order: TrainRequest
    split: int
    model: Any = None
    """A handle on the model of the rung before; None at the first."""
    suspect: bool = False
    """Whether every worker that tried it died."""

    @property
    def trial(self) -> int:
        """The number of its trial."""
        return self.order.trial.number


@dataclass(eq=False)
class BlackBoxCrew:
    """Trains everything that has no batched form: trials and splits in parallel."""

    problem: Problem
    views: Views
    full: int
    """Passes at which ensembles that grow have all their members."""
    stepwise: bool
    models: dict[tuple[int, int], Any] = field(default_factory=dict)
    ended: dict[tuple[int, int], Report] = field(default_factory=dict)
    """Of splits that are fully trained while others of their trial go on."""
    unit_seconds: dict[str, dict[Passes, float]] = field(default_factory=dict)
    """Of each family: the slowest unit so far, by the passes that it trained for."""
    _running: dict[Any, Unit] = field(default_factory=dict)

    def takes(self, trial: Trial) -> bool:
        """Whether it has no batched form."""
        return not self.views.is_batched(trial)

    def train(
        self, requests: Sequence[TrainRequest], clock: Clock
    ) -> Iterator[Sequence[TrainResult]]:
        """Train every request's trial on all splits; a result as soon as one is through.

        Without time for all fits of a trial there is no use in another, and the trial gives
        no result this time. A unit whose workers died is tried once more, with nothing
        beside it that could be to blame; its trial fails if they die again.
        """
        every = range(len(self.problem.splits))
        units = [Unit(order, split) for order in requests for split in every]
        queue = deque(u for u in units if (u.trial, u.split) not in self.ended)
        reports: dict[int, dict[int, Report]] = {
            order.trial.number: self._ended(order.trial.number) for order in requests
        }
        try:
            while queue or self._running:
                self._fill(queue, clock)
                if not self._running:
                    break
                ended = self._next(clock.waits)
                if ended is None:
                    break
                unit, report = ended
                if report is None:
                    queue = _behind(queue, unit)
                    continue
                done = reports.setdefault(unit.trial, {})
                done[unit.split] = report
                counts = report.reason is None or (self._goes_on and not report.killed)
                if report.done and counts:
                    self.ended[unit.trial, unit.split] = report
                self._learn(unit.order, report)
                if report.killed:
                    queue = deque(other for other in queue if other.trial != unit.trial)
                elif len(done) < len(every):
                    continue
                outcome = self._outcome(unit.order, reports.pop(unit.trial))
                if outcome.done:
                    self.prefixes.leave(outcome.trial)
                yield (outcome,)
        finally:
            # Time is up, or somebody has interrupted: what runs may run for ever.
            self._abandon()

    def _abandon(self) -> None:
        """Give up on what runs, and on the models that it would leave."""
        if not self._running:
            return
        keys = [(unit.trial, unit.split) for unit in self._running.values()]
        models = [self.models.pop(key) for key in keys if key in self.models]
        unsettled = self.prefixes.unsettled
        self.problem.executor.abandon([*self._running, *models, *unsettled])
        self._running.clear()

    def _fill(self, queue: deque[Unit], clock: Clock) -> None:
        """Start units as long as there is room; suspects come last, each alone."""
        room = self.problem.executor.threads + clock.ahead()
        while queue and len(self._running) < room:
            if queue[0].suspect and self._running:
                return
            unit = queue.popleft()
            trial = unit.order.trial
            if clock.may_start(trial, self._rest(unit.order, unit.split)):
                before = self.models.pop((unit.trial, unit.split), None)
                unit.model = before if unit.model is None else unit.model
                self._running[self._submit(unit)] = unit
            if unit.suspect:
                return

    def _next(self, waits: Callable[[], float]) -> tuple[Unit, Report | None] | None:
        """The next unit to end and what it gave; None when time is up."""
        executor = self.problem.executor
        while True:
            left = max(0.0, waits())
            timeout = left if math.isfinite(left) else None
            waiting = executor.as_completed(
                [*self._running, *self.prefixes.unsettled], timeout
            )
            try:
                handle = next(iter(waiting))
            except TimeoutError:
                return None
            if self.prefixes.settle(handle):
                continue
            unit = self._running.pop(handle)
            try:
                report = self._report(unit, handle)
            finally:
                executor.release(handle)
            return unit, report

    def _report(self, unit: Unit, handle: Any) -> Report | None:
        """What a unit gave; None where its workers died for the first time."""
        try:
            report: Report = self.problem.executor.result(handle)
        except ClusterError:
            raise
        except TaskKilledError as error:
            # What it shared with others may be lost with it.
            self.prefixes.forget(self.views.split(unit.order.trial), unit.split)
            self.problem.executor.release(self.models.pop((unit.trial, unit.split)))
            if not unit.suspect:
                return None
            told = ", ".join(f"{k}={v!r}" for k, v in unit.order.trial.params.items())
            reason = f"its workers died, alone with it too ({told}). {error}"
            return Report({}, None, True, 0.0, 0.0, reason, killed=True)
        except Exception as error:  # of a step before the model, or of another type of end
            report = failure(error, 0.0, self.problem.metrics)
        if report.error is not None:
            raise report.error
        return report

    @property
    def _goes_on(self) -> bool:
        """Whether a trial that fails on a split is trained to the end on the others: where
        a number stands for the failure, there is a mean to come to."""
        score = self.problem.metrics.error_score
        return score != "raise" and math.isfinite(score)

    @property
    def prefixes(self) -> Prefixes:
        """The rows behind preprocessing."""
        return self.views.prefixes

    def _ended(self, number: int) -> dict[int, Report]:
        """What the splits of a trial gave that have ended: no more time goes into them."""
        return {
            split: replace(report, seconds=0.0, score_seconds=0.0, work=0.0, ran={})
            for (trial, split), report in self.ended.items()
            if trial == number
        }

    def drop(self, alive: set[int]) -> None:
        """Let go of the models of every trial whose number is not in ``alive``."""
        self.ended = {key: r for key, r in self.ended.items() if key[0] in alive}
        for key in [key for key in self.models if key[0] not in alive]:
            self.problem.executor.release(self.models.pop(key))

    def _submit(self, unit: Unit) -> Any:
        problem, trial = self.problem, unit.order.trial
        parts = self.views.split(trial)
        begun = 0 if unit.model is None else trial.passes
        order = unit.order
        step = Step(begun, order.until, self.full, self.stepwise, order.stages)
        executor = problem.executor
        start = executor.beside if is_plain(parts.final) else executor.submit
        both = start(
            train_on, self.prefixes.rows(parts, unit.split), problem.labels, parts.path,
            problem.splits[unit.split], unit.model, parts.final, step, problem.metrics,
            problem.train_scores,
        )  # fmt: skip
        derive = executor.derive
        self.models[unit.trial, unit.split] = derive(operator.itemgetter(1), both)
        return derive(operator.itemgetter(0), both)

    def _rest(self, order: TrainRequest, split: int) -> float:
        """Seconds until this fit and those of the trial's later splits will have ended."""
        fits = len(self.problem.splits) - split
        rounds = -(-fits // self.problem.executor.threads)
        known, step = self.unit_seconds.get(order.trial.family, {}), _passes(order)
        # A longer step tells nothing of a shorter one, which takes a part of its time.
        slowest = max((s for passes, s in known.items() if passes <= step), default=0.0)
        return rounds * slowest

    def _learn(self, order: TrainRequest, report: Report) -> None:
        """The slowest of a family so far is what the next is expected to take."""
        known = self.unit_seconds.setdefault(order.trial.family, {})
        took, step = report.seconds + report.score_seconds, _passes(order)
        known[step] = max(known.get(step, 0.0), took)

    def _outcome(self, order: TrainRequest, by_split: dict[int, Report]) -> TrainResult:
        failed = next((r.reason for r in by_split.values() if r.reason is not None), None)
        none = Report({}, reason=failed)  # of the splits that were not tried after a death
        reports = [by_split.get(s, none) for s in range(len(self.problem.splits))]
        metrics, done = self.problem.metrics, all(r.done for r in reports)
        if self._goes_on and not done and not any(r.killed for r in reports):
            failed = None  # not yet
        train = metrics.alike([r.train_scores or {} for r in reports])
        return TrainResult(
            order.trial.number,
            order.until,
            _by_metric(metrics.alike([r.scores for r in reports])),
            done,
            sum(r.seconds for r in reports),
            sum(r.score_seconds for r in reports),
            failed,
            _by_metric(train) if self.problem.train_scores else None,
            work=sum(r.work for r in reports),
            by_split=tuple((r.seconds, r.score_seconds) for r in reports),
            traces=tuple(r.trace for r in reports if r.trace),
            ran=sum((Counter(r.ran) for r in reports), Counter()),
            stages={
                stop: _by_metric(metrics.alike([r.stages[stop] for r in reports]))
                for stop in order.stages
                if all(stop in report.stages for report in reports)
            },
        )


def _passes(order: TrainRequest) -> Passes:
    """Passes that it trains for."""
    return order.until - order.trial.passes


def _behind(queue: deque[Unit], unit: Unit) -> deque[Unit]:
    """The queue with ``unit`` and the others of its trial at its end, as suspects."""
    others = (other for other in queue if other.trial != unit.trial)
    mates = (mate for mate in queue if mate.trial == unit.trial)
    return deque([*others, *(replace(mate, suspect=True) for mate in (unit, *mates))])


def _by_metric(rows: Sequence[Mapping[str, float]]) -> dict[str, tuple[float, ...]]:
    return {name: tuple(row[name] for row in rows) for name in rows[0]}
