"""From proposed parameters to what is trained, and on which view of the rows."""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from mlopt.identity import CONSTANT
from mlopt.pipeline.steps.by_rows import goes_by_rows
from mlopt.tuning.crews.chain import Parts, cut
from mlopt.tuning.crews.linear_task import ADAPTERS, LinearTask, linear_form
from mlopt.tuning.crews.prefixes import Prefixes
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.crews.trials import TrainRequest, Trial


@dataclass(frozen=True)
class Way:
    """How a configured estimator trains.

    Parameters
    ----------
    parts : Parts
        Shared preprocessing and what is fitted behind it.
    task : LinearTask or None
        The columns of a shared scan that it trains as; None when it is fitted one by one.
    reason : str
        Why it is fitted one by one; "" when it is not.
    """

    parts: Parts
    task: LinearTask | None
    reason: str = ""


def way_of(
    problem: Problem,
    estimator: Any,
    params: Mapping[str, Any],
    seed: int | None,
    own: Mapping[str, Any] | None = None,
) -> Way:
    """How ``estimator`` with ``params`` trains on ``problem``, in the plan and in the run.

    Parameters
    ----------
    problem : Problem
    estimator : estimator
        As the user gave it.
    params : mapping
        For ``set_params``.
    seed : int or None
        For every ``random_state`` that is left open.
    own : mapping, optional
        The parameters of ``estimator``, deep, where they are known.
    """
    open_ = configure(estimator, params, None, own)
    free = getattr(_parts(problem, open_).final, "random_state", 0) is None
    parts = _parts(problem, seeded(open_, seed))
    if problem.not_columns:
        return Way(parts, None, problem.not_columns)
    form = linear_form(parts.final, free_order=free)
    if isinstance(form, str):
        return Way(parts, None, form)
    if form.classifier != problem.classifier:
        return Way(parts, None, "it is no model of this kind of target")
    return _in_a_scan(problem, parts, form)


def _in_a_scan(problem: Problem, parts: Parts, form: LinearTask) -> Way:
    """As columns, unless these rows and these targets forbid it."""
    given = form.class_weight
    if given == "balanced" and problem.sample_weight is not None:
        return Way(parts, None, "balanced classes count the weights of rows")
    if isinstance(given, dict) and not all(weight > 0 for weight in given.values()):
        return Way(parts, None, "a class has no positive weight")
    if given is not None and form.one_against_rest and problem.outputs > 1:
        return Way(parts, None, "the weight of a class does not count for the other models")
    if form.by_columns and form.one_against_rest and problem.outputs > 1:
        return Way(parts, None, "each class has a path of its own")
    if form.schedule is not None and problem.uneven:
        return Way(parts, None, "not every row of a split is one step of its weight")
    if not parts.steps:
        try:
            matrix = problem.matrix
        except (TypeError, ValueError) as error:
            return Way(parts, None, f"X is no matrix of finite numbers: {error}")
    if form.dense_only and (parts.steps or not isinstance(matrix, np.ndarray)):
        return Way(parts, None, "its solver does not take sparse rows, if they are that")
    return Way(parts, form)


def _parts(problem: Problem, estimator: Any) -> Parts:
    """Preprocessing apart, where it can be fitted apart and nobody can tell."""
    whole = Parts((), estimator, routed=frozenset(problem.fit_params))
    if problem.routed or not problem.metrics.names_only:
        return whole  # a scorer of the user's may look at the rows and at every step
    if not isinstance(estimator, Pipeline) or get_tags(estimator).input_tags.pairwise:
        return whole
    if getattr(estimator, "transform_input", None):
        return whole
    if problem.train_scores and not all(
        goes_by_rows(one, fitted=False) for _, one in estimator.steps[:-1]
    ):
        return whole  # the rows trained on are scored as `transform` gives them
    names = [f"{name}__" for name, _ in estimator.steps]
    if any(not p.startswith(tuple(names)) for p in problem.fit_params):
        return whole  # scikit-learn says what is wrong with them
    return cut(estimator, problem.fit_params)


def configure(
    estimator: Any,
    params: Mapping[str, Any],
    seed: int | None,
    own: Mapping[str, Any] | None = None,
) -> Any:
    """A clone with ``params``; every ``random_state`` still None gets a number of ``seed``.

    All trials share it: they then differ by their parameters only. ``own`` are the
    estimator's parameters, deep, where they are known: to ask it takes most of the time.
    """
    own = estimator.get_params(deep=True) if own is None else own
    changes = {k: _copy(v) for k, v in params.items()}
    plain = not any("__" in name for name in (*own, *changes))
    if plain and changes.keys() <= own.keys() and _bare(estimator, own):
        # What the rest comes to there, at a tenth of the time.
        kept = {k: _copy(v) for k, v in own.items() if k not in changes}
        values = kept | changes
        return type(estimator)(**values | _seeds(values, seed))
    return seeded(clone(estimator).set_params(**changes), seed)


def _bare(estimator: Any, own: Mapping[str, Any]) -> bool:
    """Whether it is made of its parameters alone, as scikit-learn's classes promise."""
    kind = type(estimator)
    if not vars(estimator).keys() <= own.keys():
        return False  # requests for metadata, callbacks
    usual = kind.__module__.startswith("sklearn.") and all(
        getattr(kind, name) is getattr(BaseEstimator, name)
        for name in ("get_params", "set_params", "__sklearn_clone__")
    )
    return kind in ADAPTERS or usual


def _copy(value: Any) -> Any:
    """A value of one estimator's own; numbers and texts cannot change."""
    return value if type(value) in CONSTANT else clone(value, safe=False)


def seeded(estimator: Any, seed: int | None) -> Any:
    """``estimator``, changed: every ``random_state`` that is None becomes a number."""
    if seed is None:
        return estimator
    if type(estimator) in ADAPTERS:  # all of its attributes are parameters
        vars(estimator).update(_seeds(vars(estimator), seed))
        return estimator
    seeds = _seeds(estimator.get_params(deep=True), seed)
    return estimator.set_params(**seeds) if seeds else estimator


def _seeds(params: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    """A seed for each ``random_state`` of ``params`` that is None, ``seed`` for its own.

    Those within get numbers by their names: members of an ensemble are to differ, and a
    step is the same whatever stands beside it.
    """
    if seed is None:
        return {}
    names = [k for k in params if k.split("__")[-1] == "random_state" and params[k] is None]
    return {k: seed if k == "random_state" else _mixed(seed, k) for k in names}


def _mixed(seed: int, name: str) -> int:
    """A seed from 0 to 2**31 - 1, all that an int of C takes."""
    return zlib.crc32(f"{seed} {name}".encode()) >> 1


@dataclass(eq=False)
class Views:
    """What each trial trains on: its final estimator, and the rows that this one sees.

    Parameters
    ----------
    estimators : mapping of family to estimator
    problem : Problem
    prefixes : Prefixes
    seed : int or None
    """

    estimators: Mapping[str, Any]
    problem: Problem
    prefixes: Prefixes
    seed: int | None
    _apart: dict[str, str] = field(default_factory=dict)
    _own: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _known: dict[Hashable, Way] = field(default_factory=dict)
    _ways: dict[int, Way] = field(default_factory=dict)

    def of(self, family: str, params: Mapping[str, Any]) -> Way:
        """How a configuration trains; what is found for the plan holds in the run."""
        plain = all(type(value) in CONSTANT for value in params.values())
        key = (family, *((k, type(v), v) for k, v in params.items())) if plain else None
        if key in self._known:
            return self._known[key]
        estimator = self.estimators[family]
        if family not in self._own:
            self._own[family] = estimator.get_params(deep=True)
        way = way_of(self.problem, estimator, params, self.seed, self._own[family])
        if family in self._apart and way.task is not None:
            way = Way(way.parts, None, self._apart[family])
        if plain:
            self._known[key] = way
        return way

    def apart(self, family: str, reason: str) -> None:
        """Every trial of the family is fitted one split at a time; said before any is."""
        self._apart[family] = reason
        self._known.clear()

    def way(self, trial: Trial) -> Way:
        """How a trial trains."""
        number = trial.number
        if number not in self._ways:
            way = self.of(trial.family, trial.params)
            self._ways[number] = way
            self.prefixes.expect(number, way.parts, batched=way.task is not None)
        return self._ways[number]

    def alone(self, trial: Trial, reason: str) -> None:
        """From now on the trial is fitted one split at a time."""
        parts = self.way(trial).parts
        self._ways[trial.number] = Way(parts, None, reason)
        self.prefixes.expect(trial.number, parts, batched=False)

    def split(self, trial: Trial) -> Parts:
        """Preprocessing and final estimator of a trial."""
        return self.way(trial).parts

    def task(self, trial: Trial) -> LinearTask | None:
        """The batched form of a trial's final estimator, or None."""
        return self.way(trial).task

    def is_batched(self, trial: Trial) -> bool:
        """Whether a trial trains as columns of a scan."""
        return self.task(trial) is not None

    def together(self, orders: Iterable[TrainRequest]) -> list[TrainRequest]:
        """The orders with those side by side that share preprocessing, the more the nearer.

        Which comes first stays as it is, so that equal histories give equal scans.
        """
        orders = list(orders)
        first: dict[str, int] = {}
        chains = [self.split(order.trial).tokens for order in orders]
        for chain in chains:
            for token in chain:
                first.setdefault(token, len(first))
        ranks = [tuple(first[token] for token in chain) for chain in chains]
        places = sorted(range(len(orders)), key=lambda place: ranks[place])
        return [orders[place] for place in places]
