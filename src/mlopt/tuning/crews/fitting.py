"""Any scikit-learn estimator, trained one split at a time, step by step where it can.

Two ways: ensembles that grow (``warm_start``) where that gives the same as one fit, and
everything else in one go. The work is a stateless task: what it needs comes in as
arguments, so that a task lost with its worker is simply run again.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any

import numpy as np
import sklearn
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from mlopt.errors import ArgumentError
from mlopt.passes import Passes
from mlopt.pipeline.blocks.tables import copied
from mlopt.pipeline.steps.kinds import may_write
from mlopt.tuning.crews.chain import Names, inside, last_of, params_of_final
from mlopt.tuning.crews.clones import clone_apart
from mlopt.tuning.crews.growing import (
    add_members,
    first_members,
    grows,
    has_stopped,
    members,
    members_at,
)
from mlopt.tuning.crews.own import own_params
from mlopt.tuning.crews.problem import Labels
from mlopt.tuning.crews.scoring import Metrics
from mlopt.tuning.crews.splits import Split


@dataclass(frozen=True, eq=False)
class Fold:
    """One split, preprocessed: what an estimator is fitted and judged on."""

    X: Any
    y: Any
    X_test: Any = None
    y_test: Any = None
    weight: Any = None
    fit_params: dict[str, Any] = field(default_factory=dict)
    score_train: dict[str, Any] = field(default_factory=dict)
    score_test: dict[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=sklearn.get_config)


@dataclass(frozen=True, eq=False)
class Failed:
    """In place of rows, of test rows or of a fold: what a step before the model raised."""

    error: Exception


@dataclass(frozen=True)
class Step:
    """How far one fit is to go: from pass ``start`` to pass ``stop`` of ``full``."""

    start: Passes
    stop: Passes
    full: int
    stepwise: bool
    stages: tuple[Passes, ...] = ()
    """Of which the scores are wanted, too."""


@dataclass(frozen=True, eq=False)
class Report:
    """What one step gave; small, since it travels to the driver.

    ``scores`` is empty when the fit failed: ``reason`` is its last line then, ``trace`` all
    of it. ``error`` is what ends the whole search.
    """

    scores: dict[str, float]
    train_scores: dict[str, float] | None = None
    done: bool = True
    seconds: float = 0.0
    score_seconds: float = 0.0
    reason: str | None = None
    work: float = 0.0
    """Seconds of a core that the fit took; others on the machine do not make it more."""
    killed: bool = False
    """Whether its worker died, alone with it."""
    trace: str = ""
    error: Exception | None = None
    ran: Mapping[str, int] = field(default_factory=dict)
    """How often a model was fitted and scored."""
    stages: Mapping[Passes, dict[str, float]] = field(default_factory=dict)


def failure(error: Exception, seconds: float, metrics: Metrics) -> Report:
    """The report of a fit that raised; with ``error_score="raise"`` it ends the search."""
    trace = "".join(traceback.format_exception(error))
    ends = error if metrics.error_score == "raise" else None
    reason = f"{type(error).__name__}: {error}"
    return Report({}, seconds=seconds, reason=reason, trace=trace, error=ends)


def make_fold(
    rows: tuple[Any, Any] | Failed, labels: Labels, names: Names, split: Split
) -> Fold | Failed:
    """What the final estimator of a chain is fitted and judged on, on one split.

    ``rows`` are its training and test rows as the estimator sees them.
    """
    if isinstance(rows, Failed):
        return rows
    y, n = labels.y, labels.n
    y_train, y_test = (
        (None, None)
        if y is None
        else (_safe_indexing(y, split.train), _safe_indexing(y, split.test))
    )
    weight = cut_params({"weight": labels.sample_weight}, n, split.train)["weight"]
    own = params_of_final(names, labels.fit_params)
    return Fold(
        rows[0], y_train, rows[1], y_test, weight,
        own_params(cut_params(own, n, split.train)),
        cut_params(labels.score_params, n, split.train),
        cut_params(labels.score_params, n, split.test),
        labels.config,
    )  # fmt: skip


def own_rows(estimator: Any, *rows: Any) -> tuple[Any, ...]:
    """Rows that others read, too: copies of them for an estimator that may change them."""
    if not may_write(estimator):
        return rows
    return tuple(one if isinstance(one, Failed) else copied(one) for one in rows)


def cut_params(params: Mapping[str, Any], n: int, rows: Any) -> dict[str, Any]:
    """Parameters of ``n`` rows cut to ``rows``, others as they are: scikit-learn's rule."""
    cut: dict[str, Any] = _check_method_params(np.empty((n, 0)), dict(params), rows)
    return cut


def train_on(
    rows: tuple[Any, Any] | Failed, labels: Labels, names: Names, split: Split, *rest: Any
) -> tuple[Report, Any]:
    """`train_step` on a fold that is made where it is needed; ``rest`` as there."""
    return train_step(make_fold(rows, labels, names, split), *rest)


def train_step(
    fold: Fold | Failed,
    model: Any,
    template: Any,
    step: Step,
    metrics: Metrics,
    train_scores: bool,
) -> tuple[Report, Any]:
    """Train ``model`` (None: a clone of ``template``) up to ``step.stop`` and score it."""
    if isinstance(fold, Failed):
        return failure(fold.error, 0.0, metrics), None
    X, X_test = own_rows(template, fold.X, fold.X_test)
    fold = replace(fold, X=X, X_test=X_test)
    begin, work = time.perf_counter(), time.thread_time()
    before = _fits()
    with sklearn.config_context(**fold.config):
        try:
            model = clone_apart(template) if model is None else model
            done = fit_until(model, template, fold, step)
        except Exception as error:
            report = failure(error, time.perf_counter() - begin, metrics)
            return replace(report, ran={"fit": _fits() - before}), None
        fitted, work = time.perf_counter(), time.thread_time() - work
        lacking = isinstance(fold.X_test, Failed)
        judge = metrics.raising(fold.X_test.error) if lacking else metrics
        try:
            scores = judge.score(model, fold.X_test, fold.y_test, fold.score_test)
            stages = {
                stop: judge.score(young, fold.X_test, fold.y_test, fold.score_test)
                for stop, young in _younger(model, template, step)
            }
            scored = time.perf_counter()
            train = (
                metrics.score(model, fold.X, fold.y, fold.score_train)
                if train_scores
                else None
            )
        except Exception as error:  # what `error_score` does not stand for
            return Report({}, error=error), None
    ran = {"fit": _fits() - before, "score": 1 + train_scores + len(stages)}
    report = Report(
        scores, train, done, fitted - begin, scored - fitted, work=work, ran=ran,
        stages=stages,
    )  # fmt: skip
    return report, None if done else model


def fit_until(model: Any, template: Any, fold: Fold, step: Step) -> bool:
    """Fit up to pass ``step.stop``; whether the model is then fully trained."""
    if step.stepwise and grows(template):
        count, done = members_at(template, step.stop, step.full), step.stop >= step.full
        if not step.start or count > members(model):
            add_members(model, count, lambda: fit_fold(model, fold))
        return bool(done or has_stopped(model))
    fit_fold(model, fold)
    return True


def _younger(model: Any, template: Any, step: Step) -> Iterator[tuple[Passes, Any]]:
    """``model`` as it was at each stage that is asked for."""
    if step.stepwise and grows(template):
        for stop in step.stages:
            count = members_at(template, stop, step.full)
            yield stop, first_members(model, count)


_counted = threading.local()


def _fits() -> int:
    """Fits that this thread has begun."""
    return int(getattr(_counted, "fits", 0))


def fit_fold(model: Any, fold: Fold) -> Any:
    """``model``, fitted; without targets it is not given any."""
    targets = () if fold.y is None else (fold.y,)
    _counted.fits = _fits() + 1
    return model.fit(fold.X, *targets, **fit_arguments(model, fold))


def fit_arguments(model: Any, fold: Fold) -> dict[str, Any]:
    """What ``fit`` gets beside rows and targets."""
    arguments = dict(fold.fit_params)
    if fold.weight is not None:
        path, target = last_of(model)
        if not _takes_weights(target):
            kind = type(target).__name__
            raise ArgumentError(
                f"`sample_weight` was given, but {kind}.fit does not take it."
            )
        arguments[inside(path, "sample_weight")] = fold.weight
    return arguments


def _takes_weights(model: Any) -> bool:
    """Whether ``fit`` has such a parameter, or hands on whatever it is given."""
    known = signature(model.fit).parameters
    return "sample_weight" in known or any(p.kind is p.VAR_KEYWORD for p in known.values())
