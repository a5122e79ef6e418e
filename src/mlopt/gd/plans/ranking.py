"""All ways of solving a task on given rows, by predicted time, and the cheapest one run.

::

    shape of the data  ->  methods that can, what a pass of each costs
    sample of the rows ->  how many passes each will take
                           seconds with an interval, cheapest first
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlopt import plan as plans
from mlopt.cluster import executor as executor_for
from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.estimator_base import resources_of
from mlopt.gd.plans.methods import METHODS, Method
from mlopt.gd.plans.running import Alternative, Result, solve
from mlopt.gd.plans.speculation import Passes, Samples, speculate, typical
from mlopt.gd.plans.task import Problem, Task, problem_of
from mlopt.resources import Resources

SHARE, MOST = 0.1, 1.0
"""Of the cheapest run's time that speculation may take; and seconds at most."""
_DIGITS = 8
"""Rounding errors within which an objective is known."""
_SAMPLE = 20
"""Rows of the larger sample for each column."""


@dataclass(frozen=True, eq=False)
class SolverPlan:
    """Every plan for a task, ranked; see `plan`.

    Attributes
    ----------
    alternatives : tuple of Alternative
        Cheapest first.
    refused : mapping of str to str
        Methods that cannot be used here, and why.
    planning_seconds : float
    """

    task: Task
    alternatives: tuple[Alternative, ...]
    refused: dict[str, str] = field(default_factory=dict)
    planning_seconds: float = 0.0
    limits: tuple[float | None, int | None] = (None, None)

    @property
    def chosen(self) -> Alternative:
        """The cheapest."""
        return self.alternatives[0]

    @property
    def ties(self) -> tuple[str, ...]:
        """Names of plans whose interval reaches below what the chosen one is predicted."""
        best = self.chosen.predicted_seconds
        return tuple(a.name for a in self.alternatives[1:] if a.interval[0] <= best)

    def run(self) -> Result:
        """Run the chosen plan within the limits given to `plan`, and watch it.

        A plan that takes more passes than the most that were to be expected is left for
        the next one that can go on from its weights.
        """
        seconds, passes = self.limits
        return solve(self.alternatives, time_limit=seconds, max_iter=passes)

    def to_plan(self) -> plans.Plan:
        """The same as a `mlopt.Plan`."""
        first, *others = self.alternatives
        rejected = [
            plans.Alternative(a.name, a.predicted_seconds, _interval(a)) for a in others
        ]
        rejected += [
            plans.Alternative(name, None, why) for name, why in self.refused.items()
        ]
        notes = [f"{_passes(first.passes)}; {_interval(first)}"]
        if self.ties:
            notes.append(f"about as good: {', '.join(self.ties)}")
        choice = plans.Choice(
            "solver", f"{self.task.loss}, tolerance {first.tolerance:g}", first.name,
            first.predicted_seconds, rejected=tuple(rejected), notes=tuple(notes),
        )  # fmt: skip
        note = f"planned in {plans.format_seconds(self.planning_seconds)}"
        title = f"minimise the {self.task.loss} loss"
        return plans.Plan(title, (choice,), first.predicted_seconds, notes=(note,))

    def explain(self, *, verbose: bool = False) -> str:
        """The ranked plans as text."""
        return self.to_plan().explain(verbose=verbose)

    def _repr_html_(self) -> str:
        return self.to_plan()._repr_html_()

    def __repr__(self) -> str:
        return self.explain()


def plan(
    task: Task,
    X: Any,
    y: Any,
    *,
    tolerance: float = 1e-3,
    sample_weight: Any = None,
    time_limit: float | None = None,
    max_iter: int | None = None,
    speculation: bool = True,
    methods: Sequence[str] | None = None,
    client: Any = None,
    n_jobs: int | None = None,
) -> SolverPlan:
    """Predict what every way of solving ``task`` takes, and rank them.

    Parameters
    ----------
    task : Task
    X : array-like, sparse, data frame or dask collection of shape (n, d)
    y : array-like of shape (n,)
    tolerance : float, default=1e-3
        How far the objective may stay above its minimum, relative to it. All plans are
        compared at this quality.
    sample_weight : array-like of shape (n,), optional
    time_limit : float, optional
        Seconds for the run.
    max_iter : int, optional
        Passes over the rows at most.
    speculation : bool, default=True
        Whether methods may run on a sample to see how many passes they take.
    methods : sequence of str, optional
        Consider these only.
    client : distributed.Client, optional
    n_jobs : int, optional

    Raises
    ------
    InputError
        When the data or a parameter cannot work, no method can solve the task, or no plan
        is predicted to stay within ``time_limit`` or ``max_iter``: the error says which.
    """
    started = time.perf_counter()
    _check(tolerance, time_limit, max_iter)
    executor = executor_for(client, n_jobs)
    problem = problem_of(task, X, y, executor, sample_weight)
    least = _DIGITS * float(np.finfo(problem.rows.dtype).eps)
    if tolerance < least:
        raise InputError(
            f"`tolerance` must be at least {least:.1g} for {problem.rows.dtype} data, got "
            f"{tolerance:g}: rounding hides smaller differences. Use float64 for more."
        )
    resources = resources_of(executor)
    wanted = _wanted(methods)
    able = [m for m in wanted if task.loss in m.losses]
    refused = {m.name: f"not for the {task.loss} loss" for m in wanted if m not in able}
    expected = {m.name: typical(m, problem) for m in able}
    found, why = _ranked(problem, resources, tolerance, able, expected)
    if not found:
        reasons = "; ".join(f"{name}: {text}" for name, text in (refused | why).items())
        raise InputError(f"No method can minimise the {task.loss} loss here. {reasons}.")
    if speculation and len(found) > 1:
        expected |= _sampled(problem, tolerance, found)
        found, why = _ranked(problem, resources, tolerance, able, expected)
    _check_limits(found, time_limit, max_iter)
    seconds = time.perf_counter() - started
    return SolverPlan(task, found, refused | why, seconds, (time_limit, max_iter))


def _ranked(
    problem: Problem,
    resources: Resources,
    tolerance: float,
    methods: Sequence[Method],
    expected: dict[str, Passes],
) -> tuple[tuple[Alternative, ...], dict[str, str]]:
    """The methods by predicted seconds, and why the others cannot be used."""
    found, refused = [], {}
    for method in methods:
        passes = expected[method.name]
        costs = [
            method.cost(problem, resources, count)
            for count in (passes.expected, passes.low, passes.high)
        ]
        if isinstance(costs[0], str):
            refused[method.name] = costs[0]
            continue
        took = [
            c.seconds(resources, resources.threads) for c in costs if isinstance(c, Cost)
        ]
        interval = (took[1], took[2])
        found.append(
            Alternative(method.name, method, problem, tolerance, passes, took[0], interval)
        )
    return tuple(sorted(found, key=lambda a: a.predicted_seconds)), refused


def _sampled(
    problem: Problem, tolerance: float, found: Sequence[Alternative]
) -> dict[str, Passes]:
    """What speculation says of the methods that might turn out the cheapest."""
    best = found[0].predicted_seconds
    budget = min(SHARE * best, MOST)
    open_ = [a for a in found if a.interval[0] <= found[0].interval[1]]
    if len(open_) < 2 or not any(a.method.iterates for a in open_):
        return {}
    size = _SAMPLE * (problem.rows.d + 1) * problem.model.outputs
    samples = Samples(problem, min(max(size, 2000), max(problem.rows.n // 8, 1)))
    out, started = {}, time.monotonic()
    for alternative in open_:
        left = budget - (time.monotonic() - started)
        if left <= 0:
            break
        out[alternative.name] = speculate(alternative.method, samples, tolerance, left)
    return out


def _wanted(methods: Sequence[str] | None) -> list[Method]:
    if methods is None:
        return list(METHODS)
    known = {method.name: method for method in METHODS}
    unknown = [name for name in methods if name not in known]
    if unknown:
        raise InputError(f"`methods` must be among {sorted(known)}, got {unknown[0]!r}.")
    return [known[name] for name in methods]


def _check(tolerance: float, time_limit: float | None, max_iter: int | None) -> None:
    if not 0 < tolerance < 1:
        raise InputError(f"`tolerance` must lie between 0 and 1, got {tolerance!r}.")
    for name, value in (("time_limit", time_limit), ("max_iter", max_iter)):
        if value is not None and not value > 0:
            raise InputError(f"`{name}` must be positive, got {value!r}.")


def _check_limits(
    found: Sequence[Alternative], time_limit: float | None, max_iter: int | None
) -> None:
    """Refuse what no plan is predicted to keep, before anything runs (ML4all, 3)."""
    fastest = min(found, key=lambda a: a.interval[0])
    if time_limit is not None and fastest.interval[0] > time_limit:
        raise InputError(
            f"`time_limit` cannot be kept: the fastest plan, {fastest.name}, is predicted "
            f"to take {_interval(fastest)}, and {time_limit:g} s are allowed. Allow more "
            "time, or a larger `tolerance`."
        )
    fewest = min(found, key=lambda a: a.passes.low)
    if max_iter is not None and fewest.passes.low > max_iter:
        raise InputError(
            f"`max_iter` cannot be kept: {fewest.name} is predicted to take "
            f"{_passes(fewest.passes)}, and {max_iter} are allowed. Allow more, or a "
            "larger `tolerance`."
        )


def _interval(alternative: Alternative) -> str:
    low, high = map(plans.format_seconds, alternative.interval)
    return low if low == high else f"{low} to {high}"


def _passes(passes: Passes) -> str:
    if passes.low == passes.high:
        return f"{passes.expected:.0f} passes"
    return f"{passes.low:.0f} to {passes.high:.0f} passes ({passes.source})"
