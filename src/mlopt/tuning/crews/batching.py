"""Linear models of many configurations and folds, trained as columns of one matrix.

::

    trial 0   C=0.1    fold 0 1 2 3 4   ->  columns 0..4   \\
    trial 1   C=1      fold 0 1 2 3 4   ->  columns 5..9    >  W (d, B): every pass over
    trial 2   C=10     fold 0 1 2 3 4   ->  columns 10..14 /   the rows serves all of them

Folds are row masks. Without preprocessing all folds see one matrix; behind preprocessing
each fold has a view of its own, and the configurations share it.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import Member, Threads
from mlopt.errors import ClusterError
from mlopt.gd.at_once import SolvedAtOnce
from mlopt.gd.linear_training import LinearTraining
from mlopt.gd.row_products import beyond
from mlopt.kernels.compiling import once, worked
from mlopt.passes import Passes
from mlopt.prices import price
from mlopt.training import Limits
from mlopt.tuning.batch_size import training_bytes
from mlopt.tuning.crews.families import Views
from mlopt.tuning.crews.linear_task import LinearTask
from mlopt.tuning.crews.prefixes import InTurns, Prefixes
from mlopt.tuning.crews.problem import Problem, View
from mlopt.tuning.crews.scan import TRAIN, Owner, Scan, scan_scores
from mlopt.tuning.crews.scans import LOCKSTEP
from mlopt.tuning.crews.trainer import Clock
from mlopt.tuning.crews.trials import TrainRequest, TrainResult, Trial

_LOOK = price("search.look")


@dataclass(eq=False)
class BatchCrew:
    """Trains the trials that have a batched form.

    Parameters
    ----------
    problem : Problem
    views : Views
    max_passes : int or None
        Passes that end a training early, where the user says so; each model has its own
        ``max_iter`` besides.
    max_trials : int
        Trials that share a scan at most; the cost model says from where on more do not pay.
    """

    problem: Problem
    views: Views
    max_passes: int | None
    max_trials: int
    scans: list[Scan] = field(default_factory=list)

    def takes(self, trial: Trial) -> bool:
        """Whether it has a batched form."""
        return self.views.is_batched(trial)

    def train(
        self, requests: Sequence[TrainRequest], clock: Clock
    ) -> Iterator[Sequence[TrainResult]]:
        """Train every request's trial, all that can in shared scans; results by scan.

        A trial without a result has no batched form any more (`Views.alone`): a scan that
        it was part of raised, and which of its trials is to blame only their own fits tell.
        A scan that has begun ends with a pass when time is up, and scores what there is.
        Where it takes models to their end, these are fits: without time for one there is
        none for another, and its trial gives no result this time.
        """
        known = {number for scan in self.scans for number in scan.trials}
        self._open([order.trial for order in requests if order.trial.number not in known])
        until = {order.trial.number: order.until for order in requests}
        for group in self._groups():
            if clock.waits() <= 0:
                return
            if wanted := [until[number] for number in group[0].trials if number in until]:
                try:
                    outcomes = list(self._advance_group(group, min(wanted), clock))
                except ClusterError:
                    raise
                except Exception as error:
                    self._dissolve(group, error)
                else:
                    yield outcomes
                    if all(one.done for one in outcomes):  # nobody asks again
                        self.scans = [scan for scan in self.scans if scan not in group]
                        for scan in group:
                            scan.training = None

    @property
    def prefixes(self) -> Prefixes:
        """The rows behind preprocessing."""
        return self.views.prefixes

    def drop(self, alive: set[int]) -> None:
        """Let go of every trial whose number is not in ``alive``."""
        for scan in self.scans:
            scan.keep(alive)
        self.scans = [scan for scan in self.scans if scan.owners]

    def _dissolve(self, group: list[Scan], error: Exception) -> None:
        self.scans = [scan for scan in self.scans if scan not in group]
        reason = f"its scan raised {type(error).__name__}: {error}"
        self.problem.gather(reason)  # for their own fits, if there is room
        for trial in group[0].trials.values():
            self.views.alone(trial, reason)

    def _views(self, scan: Scan) -> Sequence[View]:
        return self.prefixes.views(self.views.split(scan.owners[0].trial))

    def _open(self, trials: Sequence[Trial]) -> None:
        groups: dict[Hashable, list[tuple[Trial, LinearTask]]] = {}
        for trial in trials:
            task = self.views.task(trial)
            assert task is not None
            key = self.views.split(trial).key, task.shared
            groups.setdefault(key, []).append((trial, task))
        for members in groups.values():
            for start in range(0, len(members), self.max_trials):
                self._open_scans(members[start : start + self.max_trials])

    def _open_scans(self, trials: Sequence[tuple[Trial, LinearTask]]) -> None:
        parts = self.views.split(trials[0][0])
        for part, splits in enumerate(self.prefixes.layout(parts)):
            owners = [
                Owner(trial, task, column, split)
                for column, split in enumerate(splits)
                for trial, task in trials
            ]
            self.scans.append(Scan(parts.key, part, owners, self.max_passes))

    def _groups(self) -> list[list[Scan]]:
        """Scans of the same trials (one a view), together."""
        groups: dict[tuple[int, ...], list[Scan]] = {}
        for scan in self.scans:
            groups.setdefault(tuple(scan.trials), []).append(scan)
        return list(groups.values())

    def _advance_group(
        self, group: list[Scan], until: Passes, clock: Clock
    ) -> Iterator[TrainResult]:
        trials = group[0].trials
        new = {number for number, trial in trials.items() if not trial.passes}
        start, work = time.perf_counter(), self._work()
        table: dict[int, dict[str, dict[int, float]]] = {number: {} for number in trials}
        done, reached = dict.fromkeys(trials, True), dict.fromkeys(trials, True)
        seconds = np.zeros((len(self.problem.splits), 2))
        made: Passes = 0
        for scan, advanced in self._each(group, until, clock):
            made, until = max(made, advanced.made), min(until, advanced.until)
            seconds[list(scan.splits)] += advanced.seconds
            for name, values in advanced.scores.items():
                for owner, value in zip(scan.owners, values, strict=True):
                    table[owner.trial.number].setdefault(name, {})[owner.split] = value
            ends = zip(scan.owners, advanced.finished, advanced.reached, strict=True)
            for owner, stopped, there in ends:
                done[owner.trial.number] &= bool(stopped)
                reached[owner.trial.number] &= bool(there)
        through = [number for number in trials if reached[number]]
        for number in through:
            if done[number]:
                self.prefixes.leave(number)
        # Kernels compile, or are read, on one core: no model of these costs it again.
        work = max(self._work() - work - once(start), 0.0)
        share = seconds / max(1, len(through))
        fitted, scored = share.sum(axis=0).tolist()
        by_split = tuple(map(tuple, share.tolist()))
        for number in through:
            by_name = {
                name: tuple(own[s] for s in sorted(own))
                for name, own in table[number].items()
            }
            train = {k[len(TRAIN) :]: v for k, v in by_name.items() if k.startswith(TRAIN)}
            scores = {k: v for k, v in by_name.items() if not k.startswith(TRAIN)}
            yield TrainResult(
                number, min(until, made) if done[number] else until, scores, done[number],
                fitted, scored, train_scores=train or None, work=work, sharing=len(through),
                by_split=by_split, ran=self._ran(group, begun=number not in new),
            )  # fmt: skip

    def _ran(self, group: list[Scan], *, begun: bool) -> dict[str, int]:
        """A column for each split is one model; each look scores all of them."""
        splits = len(self.problem.splits)
        scored = {"score": splits * (1 + self.problem.train_scores)}
        if begun:
            return scored
        alone: Counter[str] = Counter()
        for scan in group:
            if scan.space is not None and scan.space.way != LOCKSTEP:
                alone[scan.space.way] += len(scan.splits)
        return {"fit": splits, **scored, **alone}

    def _work(self) -> float:
        """Seconds of cores so far; on a cluster, whose cores are not seen, of a clock."""
        here = isinstance(self.problem.executor, Threads)
        return time.process_time() if here else time.perf_counter()

    def _each(
        self, group: list[Scan], until: Passes, clock: Clock
    ) -> Iterator[tuple[Scan, _Advanced]]:
        """One scan after the other; together, where they read the same blocks anew."""
        views = self._views(group[0])
        executors = [] if isinstance(views, InTurns) else [v.rows.executor for v in views]
        members = [one for one in executors if isinstance(one, Member)]
        if len(group) == len(members) > 1:
            clock = replace(clock, late=Clock().late)  # all go as far
            jobs = {
                members[scan.part]: partial(self._advance, scan, until, views, clock)
                for scan in group
            }
            found = members[0].together.run(jobs)
            yield from zip(group, (one.shared(len(group)) for one in found), strict=True)
            self._sleep()
            return
        least: Passes = 0
        # The longest tells first how far all get: one that is through soon would be ahead.
        for place, scan in enumerate(sorted(group, key=self._rows, reverse=True)):
            after = len(group) - place - 1
            views = self._views(scan)
            own = self._advance(scan, until, views, clock, after, least)
            # The others go as far where time was up, and none goes less far than these.
            until, least = min(until, own.until), max(least, own.made)
            yield scan, own
            self._sleep()

    def _rows(self, scan: Scan) -> int:
        """That a scan goes through for its models."""
        return sum(len(self.problem.splits[split].train) for split in scan.splits)

    def _sleep(self) -> None:
        for scan in self.scans:
            if not self.prefixes.holds(scan.key):
                scan.sleep()

    def _advance(
        self,
        scan: Scan,
        until: Passes,
        views: Sequence[View],
        clock: Clock,
        after: int = 0,
        least: Passes = 0,
    ) -> _Advanced:
        start = time.perf_counter()
        training = scan.wake(self.problem, views)
        if isinstance(training, SolvedAtOnce):
            _limit(training, scan, clock, after)
        until = _go_on(training, until, clock, after, least)
        fit, trained = worked(start), time.perf_counter()
        scores, parts = scan_scores(self.problem, scan), len(scan.splits)
        if self._crowded(training.rows.d):  # the next advance learns it again
            training.rest()
        return _Advanced(
            np.array([fit, worked(trained)]) / parts,
            {name: [float(value) for value in values] for name, values in scores.items()},
            [bool(stopped) or training.done for stopped in training.finished],
            training.reached.tolist(),
            training.made,
            until,
        )

    def _crowded(self, d: int) -> bool:
        """Whether all scans cannot wait with what they know, besides their weights."""
        columns = self.problem.outputs * sum(len(scan.owners) for scan in self.scans)
        needed = training_bytes(d, columns)
        return beyond(needed, self.problem.resources, "weights in training") is not None


def _limit(training: SolvedAtOnce, scan: Scan, clock: Clock, after: int) -> None:
    """Have it begin and give up models by the clock; ``after`` scans of others follow."""
    waits, start = clock.waits(), time.monotonic()

    def may_begin(number: int, seconds: float) -> bool:
        # A trial needs this model in the scans that follow, too, which are as far then.
        others = after * (time.monotonic() - start + seconds)
        return clock.may_start(scan.owners[number].trial, seconds + others)

    training.may_begin = may_begin
    if math.isfinite(waits):
        training.limits = Limits(seconds=max(waits, np.finfo(float).tiny))


def _go_on(
    training: LinearTraining, until: Passes, clock: Clock, after: int, least: Passes
) -> Passes:
    """Train as far as there is time, with as long for each of ``after`` others, but for
    ``least`` passes; how far."""
    if isinstance(training, SolvedAtOnce) or math.isinf(clock.waits()):
        training.advance_to(until)
        return until
    begin, stretch = time.perf_counter(), 1
    while True:
        start = time.perf_counter()
        training.advance_to(min(until, math.floor(training.made) + stretch))
        if training.made >= until or training.done:
            return until
        # Others need not compile again.
        if training.made >= least and clock.late(after * worked(begin)):
            return training.made
        stretch *= 2 if time.perf_counter() - start < _LOOK else 1


@dataclass(frozen=True)
class _Advanced:
    """What became of a scan.

    Attributes
    ----------
    seconds : ndarray of shape (2,)
        Of training and of scoring, for each of its splits.
    scores : dict of metric to list of float
        One for each model, as are ``finished`` and ``reached``.
    finished, reached : list of bool
    made : int or float
        Passes so far.
    until : int or float
        As far as it was to go, or as there was time for.
    """

    seconds: NDArray[np.float64]
    scores: dict[str, list[float]]
    finished: list[bool]
    reached: list[bool]
    made: Passes
    until: Passes

    def shared(self, count: int) -> _Advanced:
        """The same, of seconds in which ``count`` scans were at work."""
        return replace(self, seconds=self.seconds / count)
