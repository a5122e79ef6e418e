"""A scan: the models that share every pass over one view of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import Threads
from mlopt.gd.direct_training import DirectLeastSquares
from mlopt.gd.dual_training import DualTraining
from mlopt.gd.l1_training import L1Training
from mlopt.gd.linear_training import LinearTraining
from mlopt.gd.lockstep import LockstepSGD
from mlopt.gd.lockstep_then_newton import LockstepThenNewton
from mlopt.gd.newton_training import AlongPenalties, NewtonTraining
from mlopt.gd.passes import Sums, decision_values, first_gradient
from mlopt.gd.plans.stop import GradientNorm
from mlopt.gd.quasi_newton import QuasiNewton
from mlopt.gd.sample import local_executor
from mlopt.tuning.crews import scoring
from mlopt.tuning.crews.linear_task import LinearTask
from mlopt.tuning.crews.many_scores import judge_of
from mlopt.tuning.crews.problem import Problem, View
from mlopt.tuning.crews.scans import DUAL, NEWTON
from mlopt.tuning.crews.spaces import AS_THEY_ARE, Space, patience_with, space_of
from mlopt.tuning.crews.trials import Trial

FloatArray = NDArray[np.floating[Any]]
_ALONE: Mapping[str, type[AlongPenalties]] = {NEWTON: NewtonTraining, DUAL: DualTraining}
"""What trains model by model."""
TRAIN = "train:"
"""Marks the scores on training rows where both travel in one table."""


@dataclass(eq=False)
class Scan:
    """The models of some trials on one view: they share every pass over its rows.

    Model ``i`` belongs to ``owners[i]``: a trial, its task, the column of its row set in
    the view, and the split. A scan sleeps when its view had to be let go: only its state
    is kept, of the models that were there then (``asleep``).
    """

    key: str
    part: int
    owners: list[Owner]
    max_passes: int | None
    training: LinearTraining | None = None
    view: View | None = None
    saved: Mapping[str, Any] | None = None
    asleep: Sequence[Owner] = ()
    space: Space | None = None
    """In which the rows are seen; None until that is asked."""

    @property
    def splits(self) -> tuple[int, ...]:
        """The splits that its models are of, in order."""
        return tuple(sorted({owner.split for owner in self.owners}))

    @property
    def trials(self) -> dict[int, Trial]:
        """Its trials by number, in order."""
        return {owner.trial.number: owner.trial for owner in self.owners}

    def wake(self, problem: Problem, views: Sequence[View]) -> LinearTraining:
        """The training, made anew from the saved state when it slept."""
        if self.training is None:
            self.view = seen_by(self.owners[0].task, views[self.part])
            if self.space is None:
                tasks = [owner.task for owner in self.owners]
                self.space = space_of(tasks, self.view.rows, problem)
            self.view = self.space.see(self.view)
            owners = self.asleep or self.owners
            self.training = training_of(
                problem, self.view, owners, self.max_passes, space=self.space
            )
            if self.saved is not None:
                self.training.restore(self.saved)
                if len(owners) > len(self.owners):
                    left = set(map(id, self.owners))
                    self.training.keep([id(owner) in left for owner in owners])
            self.saved, self.asleep = None, ()
        return self.training

    def sleep(self) -> None:
        """Keep the state, let go of the rows."""
        if self.training is not None:
            self.saved, self.training, self.view = self.training.state(), None, None
            self.asleep = self.owners

    def keep(self, alive: set[int]) -> None:
        """Let go of the columns of every trial whose number is not in ``alive``.

        When it wakes, if it sleeps: it need not see its rows for this.
        """
        mask = np.array([owner.trial.number in alive for owner in self.owners])
        if self.training is not None and mask.any() and not mask.all():
            self.training.keep(mask)
        self.owners = [owner for owner, kept in zip(self.owners, mask, strict=True) if kept]


@dataclass(frozen=True)
class Owner:
    """Whose model it is."""

    trial: Trial
    task: LinearTask
    column: int
    split: int


def seen_by(task: LinearTask, view: View) -> View:
    """The view in the precision in which the models of a scan are solved."""
    return replace(view, rows=view.rows.in_doubles()) if task.in_doubles else view


def training_of(
    problem: Problem,
    view: View,
    owners: Sequence[Owner],
    max_passes: int | None,
    *,
    space: Space = AS_THEY_ARE,
    judge: bool = True,
) -> LinearTraining:
    """The columns of all ``owners``, not yet trained; ``judge`` scores them as they go."""
    task, dtype = owners[0].task, view.rows.dtype
    weights, judged = problem.row_weights(view.splits, task.class_weight, dtype)
    weights, judged = view.arrange_sets(weights, judged)
    beside = {"score_weights": judged} if judge else {}
    targets = view.arrange(problem.targets(dtype))
    rows = view.rows.attach(targets=targets, weights=weights, **beside)
    sums = weights.sum(axis=0, dtype=np.float64)
    models = [
        o.task.model(o.column, float(sums[o.column]), problem.outputs) for o in owners
    ]
    limit = task.max_iter if max_passes is None else min(max_passes, task.max_iter)
    if task.by_columns:
        kept = view.kept if task.class_weight is None else None
        stop = GradientNorm(task.tol)
        return L1Training(rows, models, stop=stop, max_iter=limit, kept=kept)
    if task.direct:
        return DirectLeastSquares(
            rows, models, limit, kept=view.kept, parts=view.parts, tol=task.tol
        )
    if task.schedule is None:
        first = 1.0
        if task.loss == "squared_hinge":
            first = first_gradient(rows, models, Sums.of(rows))
        gtol = space.bound(view.rows, first * task.tol)
        if space.way in _ALONE:
            return _ALONE[space.way](rows, models, gtol=gtol, max_iter=limit)
        if not isinstance(rows.executor, Threads):
            return QuasiNewton(rows, models, gtol=gtol, max_passes=limit)
        return LockstepThenNewton(
            rows, models, gtol=gtol, max_passes=limit, patience=patience_with(rows)
        )
    schedules = [o.task.schedule for o in owners if o.task.schedule is not None]
    return LockstepSGD(
        rows, models, schedules, seed=problem.seed, tol=task.tol,
        n_iter_no_change=task.n_iter_no_change, max_passes=limit,
    )  # fmt: skip


def scan_scores(problem: Problem, scan: Scan) -> dict[str, FloatArray]:
    """Every metric of every model of a scan that is awake, (models,) each."""
    assert scan.training is not None
    counted = scoring.from_quality(problem.metrics, classifier=problem.classifier)
    if not problem.classifier and min(len(s.test) for s in problem.splits) < 2:
        counted = None  # scikit-learn has no r2 of one row
    if counted is not None and not problem.train_scores:
        variance = _test_variance(problem)[[owner.split for owner in scan.owners]]
        quality = scoring.convert_quality(counted, scan.training.quality(), variance)
        return {problem.metrics.main: quality}
    found: dict[str, FloatArray] = {}
    for number in scan.splits:
        models = np.flatnonzero([owner.split == number for owner in scan.owners])
        split = problem.splits[number]
        sides = {"": split.test} | ({TRAIN: split.train} if problem.train_scores else {})
        for mark, rows in sides.items():
            for name, values in _scores_on(problem, scan, models, rows).items():
                table = found.setdefault(mark + name, np.empty(len(scan.owners)))
                table[models] = values
    return found


def _test_variance(problem: Problem) -> FloatArray:
    """Weighted variance of y on the test rows of each split; r2 is relative to it."""
    if problem.classifier:
        return np.ones(len(problem.splits))
    weight = problem.scored_weight
    variances = []
    for split in problem.splits:
        y, w = problem.column[split.test], None if weight is None else weight[split.test]
        variances.append(np.average((y - np.average(y, weights=w)) ** 2, weights=w))
    return np.asarray(variances)


def _scores_on(
    problem: Problem, scan: Scan, models: NDArray[np.int64], rows: NDArray[np.int64]
) -> dict[str, FloatArray]:
    """Every metric of some models of a scan on some rows of the data, (models,) each."""
    assert scan.training is not None
    assert scan.view is not None
    owners = [scan.owners[i] for i in models]
    pairs = [scan.training.coefficients(int(i)) for i in models]
    W = np.concatenate([coef for coef, _ in pairs]).T
    b = np.concatenate([intercept for _, intercept in pairs])
    there = _positions(scan.view, problem.n)[rows]
    margins = decision_values(scan.view.rows, W, b, there)
    found = _known_scores(problem, scan.view, owners, margins, rows)
    known = np.isfinite(list(found.values())).all(axis=0)
    for i in np.flatnonzero(~known):
        if not all(np.isfinite(part).all() for part in pairs[i]):
            for name, value in problem.metrics.failed(found).items():
                found[name][i] = value  # as one whose fit has overflowed
            continue
        own = margins[:, i * problem.outputs : (i + 1) * problem.outputs]
        for name, value in _asked_scores(problem, owners[i].task, own, rows).items():
            found[name][i] = value
    return found


def _known_scores(
    problem: Problem,
    view: View,
    owners: Sequence[Owner],
    margins: FloatArray,
    rows: NDArray[np.int64],
) -> dict[str, FloatArray]:
    """What follows from margins without asking a scorer, (models,) each; else NaN."""
    metrics = problem.metrics.names
    found = {name: np.full(len(owners), np.nan) for name in metrics}
    two = len(problem.classes) == 2 and problem.scored_weight is None
    positive = problem.codes[rows] == 1 if two else np.zeros(0, bool)
    if not positive.any() or positive.all() or not np.isfinite(margins).all():
        return found
    executor = local_executor(view.rows)
    lines = np.array_split(np.ascontiguousarray(margins.T), executor.threads)
    probabilities = all(owner.task.proba for owner in owners)
    for name, scorer in metrics.items():
        judge = judge_of(scorer, problem.classes, probabilities=probabilities)
        if judge is not None:
            found[name] = np.concatenate(executor.map(judge, lines, positive))
    return found


def _asked_scores(
    problem: Problem, task: LinearTask, margins: FloatArray, rows: NDArray[np.int64]
) -> dict[str, float]:
    """Every metric of one model on some rows, as scikit-learn's scorers have it."""
    estimator, weight = _known(problem, task, margins), problem.scored_weight
    nothing = np.empty((len(rows), 0))  # named scorers look at predictions alone
    given = {} if weight is None else {"sample_weight": weight[rows]}
    return problem.metrics.score(estimator, nothing, problem.column[rows], given)


def _positions(view: View, n: int) -> NDArray[np.int64]:
    """Where each row of the data stands in the view."""
    if view.order is None:
        return np.arange(n)
    where = np.zeros(n, np.int64)
    where[view.order] = np.arange(len(view.order))
    return where


def _known(problem: Problem, task: LinearTask, margins: FloatArray) -> Any:
    if not problem.classifier:
        return scoring.FromPredictions(margins[:, 0])
    flat = margins[:, 0] if problem.outputs == 1 else margins
    return scoring.FromMargins(flat, problem.classes, task.proba)
