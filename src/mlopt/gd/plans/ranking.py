"""All ways of solving a task on given rows, by predicted time, and the cheapest one run.

::

    shape of the data  ->  methods that can, what a pass of each costs
    sample of the rows ->  how many passes each will take
                           seconds with an interval, cheapest first
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlopt.cluster import executor as executor_for
from mlopt.errors import InputError
from mlopt.gd.estimator_base import resources_of
from mlopt.gd.plans.fitting import Ranker, not_for, unfit
from mlopt.gd.plans.forecast import Passes
from mlopt.gd.plans.method import Method
from mlopt.gd.plans.methods import BY_NAME, METHODS
from mlopt.gd.plans.running import Alternative, check_limits
from mlopt.gd.plans.samples import Samples
from mlopt.gd.plans.solver_plan import SolverPlan
from mlopt.gd.plans.speculation import speculate
from mlopt.gd.plans.stop import RelativeGap
from mlopt.gd.plans.task import Problem, Task, problem_of
from mlopt.gd.plans.working_sets import WORKING_SET
from mlopt.gd.sizes import ROUNDINGS
from mlopt.prices import price

SHARE = price("speculation.share")
MOST = price("speculation.most")
LEAST = price("speculation.least")
_BOTH = price("speculation.both")


def plan(
    task: Task,
    X: Any,
    y: Any,
    *,
    tolerance: float = 1e-3,
    sample_weight: Any = None,
    time_limit: float | None = None,
    max_iter: int | None = None,
    speculation: bool | float = True,
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
    speculation : bool or float, default=True
        Whether methods may run on a sample to see how many passes they take: those that
        may turn out the cheapest, within a tenth of the predicted time or one second. Or
        the seconds that all methods together may take for that.
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
    stop = RelativeGap(tolerance)
    check_limits(time_limit, max_iter)
    executor = executor_for(client, n_jobs)
    problem = problem_of(task, X, y, executor, sample_weight)
    least = ROUNDINGS * float(np.finfo(problem.rows.dtype).eps)
    if tolerance < least:
        raise InputError(
            f"`tolerance` must be at least {least:.1g} for {problem.rows.dtype} data, got "
            f"{tolerance:g}: rounding hides smaller differences. Use float64 for more."
        )
    wanted = _wanted(methods, problem.outline.sharp)
    useless = {
        m.name: why
        for m in wanted
        if (why := unfit(m, task.loss_name, problem.sharp, stop))
    }
    able = tuple(m for m in wanted if m.name not in useless)
    where = resources_of(problem.rows.executor)
    ranker = Ranker(problem, where, stop, able, comes=True)
    # A limit of passes may rule out the cheapest.
    ranked = ranker.contenders if max_iter is None else ranker.ranked
    # What may touch a few rows only is no rival of what takes whole passes.
    found = ranked(m for m in able if m.unit == "passes") or ranked(able)
    if not found:
        raise InputError(_why_none(problem, useless | ranker.refused))
    if speculation and len(found) > 1:
        if speculation is not True:
            found = ranker.ranked(able if methods else [a.method for a in found])
        if learnt := _sampled(problem, tolerance, found, speculation):
            ranker.passes |= learnt
            found = ranker.ranked(a.method for a in found)
    found = _within(found, time_limit, max_iter)
    seconds = time.perf_counter() - started
    return SolverPlan(task, found, ranker, useless, seconds, (time_limit, max_iter))


def _why_none(problem: Problem, refused: Mapping[str, str]) -> str:
    """That no method is left: what must hold, or each reason with those that have it."""
    task = problem.task
    plain = problem.sharp or task.l2 or problem.even
    if task.loss == "hinge" and not plain and "dual-coordinate-descent" in refused:
        return (
            "`l2` must be positive for the hinge loss of rows with weights, got "
            f"{task.l2!r}: give a small one, such as 1e-6, or leave `sample_weight` out."
        )
    reasons: dict[str, list[str]] = {}
    for name, why in refused.items():
        reasons.setdefault(why, []).append(name)
    other = reasons.pop(not_for(task.loss_name), [])
    if not reasons:  # which would say least, were there others
        reasons = {not_for(task.loss_name): other}
    told = (
        f"{why} ({names[0]}{f' and {len(names) - 1} more' if names[1:] else ''})"
        for why, names in reasons.items()
    )
    left = problem.sharp and WORKING_SET.name not in refused
    other_way = f" Leave it to {WORKING_SET.name}." if left else ""
    return f"No method can minimise {task.title} here: {'; '.join(told)}.{other_way}"


def _sampled(
    problem: Problem,
    tolerance: float,
    found: Sequence[Alternative],
    given: bool | float,
) -> dict[str, Passes]:
    """What speculation says of the methods that might turn out the cheapest; or of all."""
    open_, budget = list(found), float(given)
    if given is True:
        budget = min(SHARE * found[0].predicted_seconds, MOST)
        open_ = [a for a in found if a.span[0] <= found[0].span[1]]
        if budget < LEAST:
            return {}
    if len(open_) < 2 or not any(a.method.iterates for a in open_):
        return {}
    samples = Samples(problem, tolerance)
    if samples.least < problem.rows.d and not problem.rows.sparse:
        return {}  # fewer rows than columns: another problem
    out, started = dict[str, Passes](), time.monotonic()
    groups: dict[str, list[Alternative]] = {}
    for alternative in open_:
        method = alternative.method
        if alternative.forecast.passes.source == "typical":
            groups.setdefault(method.algorithm or method.name, []).append(alternative)
    for number, alike in enumerate(groups.values()):
        left = budget - (time.monotonic() - started)
        if left <= 0:
            break
        # What one does not need is left for the ones after it.
        share = left / (len(groups) - number)
        # A pass is not left half done: what takes too long on the samples is not begun.
        likely = _BOTH * min(a.predicted_seconds for a in alike)
        size = samples.within(share / likely * problem.rows.n)
        if size is not None:
            passes = speculate(alike[0].method, samples, size, tolerance, share)
            out |= dict.fromkeys((a.name for a in alike), passes)
    return out


def _wanted(methods: Sequence[str] | None, sharp: bool) -> list[Method]:
    if methods is None:
        # Where nothing has kinks, those made for kinks are not known to be sure.
        return [method for method in METHODS if sharp or not method.sharp]
    unknown = [name for name in methods if name not in BY_NAME]
    if unknown:
        raise InputError(f"`methods` must be among {sorted(BY_NAME)}, got {unknown[0]!r}.")
    return [BY_NAME[name] for name in methods]


def _within(
    found: Sequence[Alternative], time_limit: float | None, max_iter: int | None
) -> tuple[Alternative, ...]:
    """The plans that may keep the limits (ML4all, section 3).

    Raises
    ------
    InputError
        Before anything runs, when none can.
    """
    fastest = min(found, key=lambda a: a.interval[0])
    if time_limit is not None and fastest.interval[0] > time_limit:
        raise InputError(
            f"`time_limit` cannot be kept: the fastest plan, {fastest.name}, is predicted "
            f"to take {fastest.time_in_words}, and {time_limit:g} s are allowed. Allow "
            "more time, or a larger `tolerance`."
        )
    fewest = min(found, key=lambda a: a.passes.fewest)
    if max_iter is not None and fewest.passes.fewest > max_iter:
        raise InputError(
            f"`max_iter` cannot be kept: {fewest.name} is predicted to take "
            f"{fewest.passes_in_words}, and {max_iter} are allowed. Allow more, or a "
            "larger `tolerance`."
        )
    most = float("inf") if max_iter is None else max_iter
    able = tuple(a for a in found if a.passes.fewest <= most)
    likely = tuple(a for a in able if a.passes.expected <= most)
    return (*likely, *(a for a in able if a not in likely))
