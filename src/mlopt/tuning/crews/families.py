"""From proposed parameters to what is trained, and on which view of the rows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import joblib
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mlopt.tuning.crews.linear_task import LinearTask, linear_task
from mlopt.tuning.crews.problem import Problem, View, prefix_views, whole_view
from mlopt.tuning.crews.trials import Trial


@dataclass(frozen=True)
class Parts:
    """A configured estimator, cut where preprocessing ends.

    ``key`` names the preprocessing by content: trials with equal keys (and the same split)
    see the same rows, so that it is fitted once for all of them.
    """

    key: str
    prefix: Pipeline | None
    final: Any


def cut(estimator: Any) -> Parts:
    """Split a pipeline before its last step; anything else has no preprocessing."""
    if not isinstance(estimator, Pipeline) or estimator.steps[-1][1] in (
        None,
        "passthrough",
    ):
        return Parts("", None, estimator)
    steps = [step for step in estimator.steps[:-1] if step[1] not in (None, "passthrough")]
    if not steps:
        return Parts("", None, estimator.steps[-1][1])
    prefix = Pipeline(steps)
    return Parts(joblib.hash(prefix), prefix, estimator.steps[-1][1])


def configure(estimator: Any, params: Mapping[str, Any], seed: int | None) -> Any:
    """A clone with ``params``; every ``random_state`` still None gets ``seed``.

    All trials share one seed: they then differ by their parameters only.
    """
    own = estimator.get_params(deep=True)
    changes = {k: clone(v, safe=False) for k, v in params.items()}
    if not any("__" in name for name in (*own, *changes)) and changes.keys() <= own.keys():
        # What the rest comes to without nested estimators, at a tenth of the time.
        kept = {k: clone(v, safe=False) for k, v in own.items() if k not in changes}
        values = kept | changes
        return type(estimator)(**values | _seeds(values, seed))
    fresh = clone(estimator).set_params(**changes)
    return fresh.set_params(**_seeds(fresh.get_params(deep=True), seed))


def _seeds(params: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    """``seed`` for every ``random_state`` of ``params`` that is None."""
    names = [k for k in params if k.split("__")[-1] == "random_state"]
    return {k: seed for k in names if params[k] is None}


@dataclass(eq=False)
class Views:
    """What each trial trains on; preprocessed rows are made once and kept while they fit.

    Parameters
    ----------
    estimators : mapping of family to estimator
    problem : Problem
    memory : int
        Bytes of preprocessed rows that may be kept.
    """

    estimators: Mapping[str, Any]
    problem: Problem
    memory: int
    seed: int | None
    made: int = 0
    _parts: dict[int, Parts] = field(default_factory=dict)
    _tasks: dict[int, LinearTask | None] = field(default_factory=dict)
    _views: OrderedDict[str, list[View]] = field(default_factory=OrderedDict)

    def split(self, trial: Trial) -> Parts:
        """Preprocessing and final estimator of a trial."""
        if trial.number not in self._parts:
            configured = configure(self.estimators[trial.family], trial.params, self.seed)
            self._parts[trial.number] = cut(configured)
        return self._parts[trial.number]

    def task(self, trial: Trial) -> LinearTask | None:
        """The batched form of a trial's final estimator, or None."""
        if trial.number not in self._tasks:
            self._tasks[trial.number] = self._task(self.split(trial))
        return self._tasks[trial.number]

    def is_batched(self, trial: Trial) -> bool:
        """Whether a trial trains as columns of a scan."""
        return self.task(trial) is not None

    def batched(self, trial: Trial) -> LinearTask:
        """The batched form of a trial that has one."""
        task = self.task(trial)
        if task is None:
            raise TypeError(f"Trial {trial.number} has no batched form.")
        return task

    def layout(self, parts: Parts) -> list[tuple[int, ...]]:
        """The splits of each view that `get` gives."""
        every = range(len(self.problem.splits))
        return [tuple(every)] if parts.prefix is None else [(split,) for split in every]

    def get(self, parts: Parts) -> list[View]:
        """The views behind one preprocessing: one for all splits, or one a split."""
        key, prefix = parts.key, parts.prefix
        if key in self._views:
            self._views.move_to_end(key)
            return self._views[key]
        if prefix is None:
            views = [whole_view(self.problem)]
        else:
            views = prefix_views(self.problem, prefix)
        self.made += prefix is not None
        self._views[key] = views
        self._shrink()
        return views

    def holds(self, key: str) -> bool:
        """Whether the views behind ``key`` are still kept."""
        return key in self._views

    def _shrink(self) -> None:
        """Forget the views that were used longest ago, but for the newest."""
        while len(self._views) > 1 and sum(map(_bytes, self._views.values())) > self.memory:
            self._views.popitem(last=False)

    def _task(self, parts: Parts) -> LinearTask | None:
        problem = self.problem
        unusual = problem.fit_params or problem.y.ndim > 1 or not problem.metrics.names_only
        task = None if unusual else linear_task(parts.final)
        return task if task is not None and task.classifier == problem.classifier else None


def _bytes(views: list[View]) -> int:
    sizes = (
        view.rows.nonzero * (view.rows.dtype.itemsize + 4 * view.rows.sparse)
        for view in views
    )
    return sum(sizes)
