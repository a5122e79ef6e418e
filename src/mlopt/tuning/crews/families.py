"""From proposed parameters to what is trained, and on which view of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sklearn.base import clone

from mlopt.tuning.crews.chain import Parts, cut, params_of_final
from mlopt.tuning.crews.linear_task import LinearTask, linear_task
from mlopt.tuning.crews.prefixes import Prefixes
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.crews.trials import Order, Trial


def configure(
    estimator: Any,
    params: Mapping[str, Any],
    seed: int | None,
    own: Mapping[str, Any] | None = None,
) -> Any:
    """A clone with ``params``; every ``random_state`` still None gets ``seed``.

    All trials share one seed: they then differ by their parameters only. ``own`` are the
    estimator's parameters, deep, where they are known: to ask it takes most of the time.
    """
    own = estimator.get_params(deep=True) if own is None else own
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
    _own: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _parts: dict[int, Parts] = field(default_factory=dict)
    _tasks: dict[int, LinearTask | None] = field(default_factory=dict)

    def split(self, trial: Trial) -> Parts:
        """Preprocessing and final estimator of a trial."""
        number = trial.number
        if number not in self._parts:
            estimator = self.estimators[trial.family]
            if trial.family not in self._own:
                self._own[trial.family] = estimator.get_params(deep=True)
            own = self._own[trial.family]
            configured = configure(estimator, trial.params, self.seed, own)
            parts = cut(configured, self.problem.fit_params)
            self._parts[number], self._tasks[number] = parts, self._task(parts)
            batched = self._tasks[number] is not None
            self.prefixes.expect(number, parts, batched=batched)
        return self._parts[number]

    def task(self, trial: Trial) -> LinearTask | None:
        """The batched form of a trial's final estimator, or None."""
        self.split(trial)
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

    def together(self, orders: Iterable[Order]) -> list[Order]:
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

    def _task(self, parts: Parts) -> LinearTask | None:
        problem = self.problem
        own = params_of_final(parts.path, problem.fit_params)
        unusual = own or problem.y.ndim > 1 or not problem.metrics.names_only
        task = None if unusual else linear_task(parts.final)
        return task if task is not None and task.classifier == problem.classifier else None
