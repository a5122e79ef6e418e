"""Any scikit-learn estimator, trained one split at a time, step by step where it can.

Three ways: ensembles that grow (``warm_start``), estimators with ``partial_fit``, and
everything else in one go. The work is a stateless task: what it needs comes in as
arguments, so that a task lost with its worker is simply run again.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn import ensemble
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, has_fit_parameter

from mlopt.errors import InputError
from mlopt.tuning.families import Parts, Views
from mlopt.tuning.problem import Problem
from mlopt.tuning.scoring import Metrics
from mlopt.tuning.splits import Split
from mlopt.tuning.trials import Order, Outcome, Trial

GROWING: dict[type, str] = {
    ensemble.RandomForestClassifier: "n_estimators",
    ensemble.RandomForestRegressor: "n_estimators",
    ensemble.ExtraTreesClassifier: "n_estimators",
    ensemble.ExtraTreesRegressor: "n_estimators",
    ensemble.GradientBoostingClassifier: "n_estimators",
    ensemble.GradientBoostingRegressor: "n_estimators",
    ensemble.BaggingClassifier: "n_estimators",
    ensemble.BaggingRegressor: "n_estimators",
    ensemble.HistGradientBoostingClassifier: "max_iter",
    ensemble.HistGradientBoostingRegressor: "max_iter",
}
"""Ensembles that add members under ``warm_start``, and the parameter that says how many."""


EPOCHS = "max_iter"
"""Estimators that have it improve with every epoch; others learn all in one, as naive Bayes."""

KEPT_PREFIXES = 4
"""Preprocessings whose splits stay in memory between rungs; older ones are made again."""


@runtime_checkable
class PartialFit(Protocol):
    """An estimator that goes on from where it is."""

    def partial_fit(self, X: Any, y: Any) -> Any: ...

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


@dataclass(frozen=True, eq=False)
class Fold:
    """One split, preprocessed: what an estimator is fitted and judged on."""

    X: Any
    y: Any
    weight: Any
    X_test: Any
    y_test: Any
    weight_test: Any
    fit_params: dict[str, Any]
    classes: Any


@dataclass(frozen=True)
class Step:
    """How far one fit is to go: from pass ``start`` to pass ``stop`` of ``full``."""

    start: int
    stop: int
    full: int
    stepwise: bool
    seed: int


@dataclass(frozen=True, eq=False)
class Report:
    """What one step gave; small, since it travels to the driver."""

    scores: dict[str, float]
    train_scores: dict[str, float] | None
    done: bool
    seconds: float
    score_seconds: float
    reason: str | None = None


def make_fold(data: tuple[Any, ...], prefix: Any, split: Split, classes: Any) -> Fold:
    """Cut a split out of the data and preprocess it, once for all that share ``prefix``."""
    X, y, weight, fit_params = data
    X_train, X_test = _safe_indexing(X, split.train), _safe_indexing(X, split.test)
    y_train, y_test = (None, None) if y is None else (y[split.train], y[split.test])
    if prefix is not None:
        fresh = clone(prefix)
        X_train = fresh.fit_transform(X_train, y_train)
        X_test = fresh.transform(X_test)
    n = _num_samples(X)
    params = {
        name: _safe_indexing(value, split.train) if np.shape(value)[:1] == (n,) else value
        for name, value in fit_params.items()
    }
    cut = (None, None) if weight is None else (weight[split.train], weight[split.test])
    return Fold(X_train, y_train, cut[0], X_test, y_test, cut[1], params, classes)


def train_step(
    fold: Fold,
    model: Any,
    template: Any,
    step: Step,
    metrics: Metrics,
    wants: frozenset[str],
) -> tuple[Report, Any]:
    """Train ``model`` (None: a clone of ``template``) up to ``step.stop`` and score it."""
    begin = time.perf_counter()
    try:
        model = clone(template) if model is None else model
        done = fit_until(model, template, fold, step)
        fitted = time.perf_counter()
        weight = fold.weight_test if "weighted" in wants else None
        scores = metrics.score(model, fold.X_test, fold.y_test, weight)
        train = metrics.score(model, fold.X, fold.y) if "train" in wants else None
    except Exception as error:
        took = time.perf_counter() - begin
        return Report({}, None, True, took, 0.0, f"{type(error).__name__}: {error}"), None
    ended = time.perf_counter()
    return (
        Report(scores, train, done, fitted - begin, ended - fitted),
        None if done else model,
    )


def fit_until(model: Any, template: Any, fold: Fold, step: Step) -> bool:
    """Fit up to pass ``step.stop``; whether the model is then fully trained."""
    if step.stepwise and type(model) in GROWING:
        return _grow(model, template, fold, step)
    if step.stepwise and isinstance(model, PartialFit) and EPOCHS in model.get_params():
        return _partial_fit(model, fold, step)
    model.fit(fold.X, fold.y, **fit_arguments(model, fold))
    return True


def _grow(model: Any, template: Any, fold: Fold, step: Step) -> bool:
    name = GROWING[type(model)]
    members = getattr(template, name)
    model.set_params(
        **{name: max(1, -(-members * step.stop // step.full)), "warm_start": True}
    )
    model.fit(fold.X, fold.y, **fit_arguments(model, fold))
    grown_out = step.stop >= step.full
    stopped_early = name == "max_iter" and model.n_iter_ < model.max_iter
    return bool(grown_out or stopped_early)


def _partial_fit(model: Any, fold: Fold, step: Step) -> bool:
    arguments = fit_arguments(model, fold)
    takes_classes = "classes" in signature(model.partial_fit).parameters
    first = {"classes": fold.classes} if takes_classes else {}
    limit = min(step.full, model.get_params()[EPOCHS] or step.full)
    for epoch in range(step.start, min(step.stop, limit)):
        order = np.random.default_rng((step.seed, epoch)).permutation(len(fold.y))
        rows = {name: _safe_indexing(value, order) for name, value in arguments.items()}
        model.partial_fit(
            _safe_indexing(fold.X, order), _safe_indexing(fold.y, order), **first, **rows
        )
        first = {}
    return step.stop >= limit


def fit_arguments(model: Any, fold: Fold) -> dict[str, Any]:
    arguments = dict(fold.fit_params)
    if fold.weight is not None:
        target = model.steps[-1][1] if isinstance(model, Pipeline) else model
        if not has_fit_parameter(target, "sample_weight"):
            kind = type(target).__name__
            raise InputError(f"`sample_weight` was given, but {kind}.fit does not take it.")
        name = (
            f"{model.steps[-1][0]}__sample_weight"
            if target is not model
            else "sample_weight"
        )
        arguments[name] = fold.weight
    return arguments


@dataclass(eq=False)
class BlackBoxCrew:
    """Trains everything that has no batched form: trials and splits in parallel."""

    problem: Problem
    views: Views
    max_passes: int
    stepwise: bool
    seconds_left: Callable[[], float]
    models: dict[tuple[int, int], Any] = field(default_factory=dict)
    folds: dict[tuple[str, int], Any] = field(default_factory=dict)
    unit_seconds: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def advance(self, orders: Sequence[Order]) -> Iterator[Outcome]:
        """Train every order's trial on all splits; an outcome as soon as one is through.

        A unit of work that would not end within the time left is not started; its trial
        then gives no outcome this time.
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
                if self._fits_in_time(order.trial):
                    running[self._submit(order, split)] = (order, split)
            if not running:
                break
            handle = next(iter(executor.as_completed(list(running))))
            order, split = running.pop(handle)
            report = executor.result(handle)
            executor.release(handle)
            reports.setdefault(order.trial.number, {})[split] = report
            self._learn(order.trial.family, report)
            if len(reports[order.trial.number]) == len(self.problem.splits):
                yield self._outcome(order, reports.pop(order.trial.number))
        self.seconds += time.perf_counter() - begin

    def drop(self, alive: set[int]) -> None:
        """Let go of the models of every trial whose number is not in ``alive``."""
        for key in [key for key in self.models if key[0] not in alive]:
            self.problem.executor.release(self.models.pop(key))
        while (
            len(keys := list(dict.fromkeys(key for key, _ in self.folds))) > KEPT_PREFIXES
        ):
            for place in [place for place in self.folds if place[0] == keys[0]]:
                self.problem.executor.release(self.folds.pop(place))

    def _submit(self, order: Order, split: int) -> Any:
        problem, trial = self.problem, order.trial
        parts = self.views.split(trial)
        fold = self._fold(parts, split)
        model = self.models.pop((trial.number, split), None)
        step = Step(trial.passes, order.until, self.max_passes, self.stepwise, problem.seed)
        both = problem.executor.submit(
            train_step, fold, model, parts.final, step, problem.metrics, self._wants()
        )
        self.models[trial.number, split] = problem.executor.submit(
            operator.itemgetter(1), both
        )
        return problem.executor.submit(operator.itemgetter(0), both)

    def _fold(self, parts: Parts, split: int) -> Any:
        problem, place = self.problem, (parts.key, split)
        if place not in self.folds:
            self.folds[place] = problem.executor.submit(
                make_fold,
                problem.data,
                parts.prefix,
                problem.splits[split],
                problem.classes,
            )
        return self.folds[place]

    def _wants(self) -> frozenset[str]:
        flags = {
            "train": self.problem.train_scores,
            "weighted": self.problem.weighted_scores,
        }
        return frozenset(name for name, wanted in flags.items() if wanted)

    def _fits_in_time(self, trial: Trial) -> bool:
        return self.unit_seconds.get(trial.family, 0.0) < self.seconds_left()

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
        )


def _by_metric(rows: Sequence[dict[str, float]]) -> dict[str, tuple[float, ...]]:
    return {name: tuple(row[name] for row in rows) for name in (rows[0] if rows else ())}
