"""Trials without a batched form: their splits are fitted one by one, in parallel."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlopt.tuning.crews.chain import Parts
from mlopt.tuning.crews.families import Views
from mlopt.tuning.crews.fitting import Report, Step, make_fold, train_step
from mlopt.tuning.crews.prefixes import Prefixes
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.crews.trials import Order, Outcome, Trial


@dataclass(eq=False)
class BlackBoxCrew:
    """Trains everything that has no batched form: trials and splits in parallel."""

    problem: Problem
    views: Views
    max_passes: int
    stepwise: bool
    models: dict[tuple[int, int], Any] = field(default_factory=dict)
    unit_seconds: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def advance(
        self, orders: Sequence[Order], may_start: Callable[[Trial, float], bool]
    ) -> Iterator[Outcome]:
        """Train every order's trial on all splits; an outcome as soon as one is through.

        ``may_start`` is asked before each fit, with the seconds that this trial's fits will
        still take; without time for all of them there is no use in another, and the trial
        gives no outcome this time.
        """
        executor = self.problem.executor
        queue = [
            (order, split) for order in orders for split in range(len(self.problem.splits))
        ]
        queue.reverse()
        running: dict[Any, tuple[Order, int]] = {}
        reports: dict[int, dict[int, Report]] = {}
        begin = time.perf_counter()
        while queue or running:
            while queue and len(running) < executor.threads + 1:
                order, split = queue.pop()
                if may_start(order.trial, self._rest(order.trial, split)):
                    running[self._submit(order, split)] = (order, split)
            if not running:
                break
            handle = next(iter(executor.as_completed([*running, *self.prefixes.unsettled])))
            if self.prefixes.settle(handle):
                continue
            order, split = running.pop(handle)
            report = executor.result(handle)
            executor.release(handle)
            reports.setdefault(order.trial.number, {})[split] = report
            self._learn(order.trial.family, report)
            if len(reports[order.trial.number]) == len(self.problem.splits):
                outcome = self._outcome(order, reports.pop(order.trial.number))
                if outcome.done:
                    self.prefixes.leave(outcome.trial)
                yield outcome
        self.seconds += time.perf_counter() - begin

    @property
    def prefixes(self) -> Prefixes:
        """The rows behind preprocessing."""
        return self.views.prefixes

    def drop(self, alive: set[int]) -> None:
        """Let go of the models of every trial whose number is not in ``alive``."""
        for key in [key for key in self.models if key[0] not in alive]:
            self.problem.executor.release(self.models.pop(key))

    def _submit(self, order: Order, split: int) -> Any:
        problem, trial = self.problem, order.trial
        parts = self.views.split(trial)
        fold = self._fold(parts, split)
        model = self.models.pop((trial.number, split), None)
        begun = 0 if model is None else trial.passes
        step = Step(begun, order.until, self.max_passes, self.stepwise, problem.seed)
        both = problem.executor.submit(
            train_step, fold, model, parts.final, step, problem.metrics, self._wants()
        )
        self.models[trial.number, split] = problem.executor.submit(
            operator.itemgetter(1), both
        )
        return problem.executor.submit(operator.itemgetter(0), both)

    def _fold(self, parts: Parts, split: int) -> Any:
        problem, rows = self.problem, self.prefixes.rows(parts, split)
        cut = problem.splits[split]
        return problem.executor.submit(
            make_fold, rows, problem.labels, parts.path, cut, problem.classes
        )

    def _wants(self) -> frozenset[str]:
        flags = {
            "train": self.problem.train_scores,
            "weighted": self.problem.weighted_scores,
        }
        return frozenset(name for name, wanted in flags.items() if wanted)

    def _rest(self, trial: Trial, split: int) -> float:
        """Seconds until this fit and those of the trial's later splits will have ended."""
        fits = len(self.problem.splits) - split
        rounds = -(-fits // self.problem.executor.threads)
        return rounds * self.unit_seconds.get(trial.family, 0.0)

    def _learn(self, family: str, report: Report) -> None:
        """The slowest of a family so far is what the next is expected to take."""
        known = self.unit_seconds.get(family, 0.0)
        self.unit_seconds[family] = max(known, report.seconds + report.score_seconds)

    def _outcome(self, order: Order, by_split: dict[int, Report]) -> Outcome:
        reports = [by_split[s] for s in sorted(by_split)]
        failed = next((r.reason for r in reports if r.reason is not None), None)
        return Outcome(
            order.trial.number,
            order.until,
            {} if failed else _by_metric([r.scores for r in reports]),
            all(r.done for r in reports),
            sum(r.seconds for r in reports),
            sum(r.score_seconds for r in reports),
            failed,
            _by_metric([r.train_scores for r in reports if r.train_scores]) or None,
            work=sum(r.work for r in reports),
        )


def _by_metric(rows: Sequence[dict[str, float]]) -> dict[str, tuple[float, ...]]:
    return {name: tuple(row[name] for row in rows) for name in (rows[0] if rows else ())}
