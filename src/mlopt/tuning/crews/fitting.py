"""Any scikit-learn estimator, trained one split at a time, step by step where it can.

Three ways: ensembles that grow (``warm_start``), estimators with ``partial_fit``, and
everything else in one go. The work is a stateless task: what it needs comes in as
arguments, so that a task lost with its worker is simply run again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn import ensemble
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from mlopt.errors import InputError
from mlopt.passes import Passes, stretch
from mlopt.tuning.crews.chain import Names, params_of_final
from mlopt.tuning.crews.scoring import Metrics
from mlopt.tuning.crews.splits import Split

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
"""Estimators that have it improve with every epoch; others (naive Bayes) learn in one."""


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

    start: Passes
    stop: Passes
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
    work: float = 0.0
    """Seconds of a core that the fit took; others on the machine do not make it more."""
    killed: bool = False
    """Whether its worker died, alone with it."""


def make_fold(
    rows: tuple[Any, Any],
    labels: tuple[Any, ...],
    names: Names,
    split: Split,
    classes: Any,
) -> Fold:
    """What the final estimator of a chain is fitted and judged on, on one split.

    ``rows`` are its training and test rows as the estimator sees them.
    """
    y, weight, fit_params = labels[:3]
    y_train, y_test = (None, None) if y is None else (y[split.train], y[split.test])
    weights = (None, None) if weight is None else (weight[split.train], weight[split.test])
    own = cut_params(params_of_final(names, fit_params), labels[3], split)
    return Fold(rows[0], y_train, weights[0], rows[1], y_test, weights[1], own, classes)


def cut_params(params: Mapping[str, Any], n: int, split: Split) -> dict[str, Any]:
    """Fit parameters of ``n`` rows cut to the training rows, the others as they are."""
    return {
        name: _safe_indexing(value, split.train) if np.shape(value)[:1] == (n,) else value
        for name, value in params.items()
    }


def train_step(
    fold: Fold,
    model: Any,
    template: Any,
    step: Step,
    metrics: Metrics,
    wants: frozenset[str],
) -> tuple[Report, Any]:
    """Train ``model`` (None: a clone of ``template``) up to ``step.stop`` and score it."""
    begin, work = time.perf_counter(), time.thread_time()
    try:
        model = clone(template) if model is None else model
        done = fit_until(model, template, fold, step)
        fitted, work = time.perf_counter(), time.thread_time() - work
        weight = fold.weight_test if "weighted" in wants else None
        scores = metrics.score(model, fold.X_test, fold.y_test, weight)
        train = metrics.score(model, fold.X, fold.y) if "train" in wants else None
    except Exception as error:
        took = time.perf_counter() - begin
        return Report({}, None, True, took, 0.0, f"{type(error).__name__}: {error}"), None
    ended = time.perf_counter()
    return (
        Report(scores, train, done, fitted - begin, ended - fitted, work=work),
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
    n, stop = len(fold.y), min(step.stop, limit)
    for epoch in range(math.floor(step.start), math.ceil(stop)):
        order = np.random.default_rng((step.seed, epoch)).permutation(n)
        begin, end = max(step.start - epoch, 0), min(stop - epoch, 1)
        order = stretch(order, begin, end)
        if not order.size:
            continue
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
