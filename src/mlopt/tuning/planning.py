"""What a search decides, as a `Plan`: predicted before, measured after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlopt.plan import Alternative, Choice, Plan
from mlopt.tuning.families import cut
from mlopt.tuning.linear_task import linear_task
from mlopt.tuning.problem import Problem


PROPOSALS, FINAL = "proposals and storage", "final fit"
"""Steps of the plan beside the families."""


def search_plan(
    search: Any,
    problem: Problem,
    estimators: Mapping[str, Any],
    batch: Choice | None,
) -> Plan:
    """How each family will be trained, before anything runs."""
    n, splits = len(problem.y), len(problem.splits)
    choices = [_family(name, est, problem, batch) for name, est in estimators.items()]
    amount = "" if search.n_trials is None else f"up to {search.n_trials} trials"
    limit = "" if search.timeout is None else f"{search.timeout:g} s"
    budget = ", ".join(part for part in (amount, limit) if part) or "the whole space"
    choices.append(Choice(PROPOSALS, _name(search.sampler), f"bandit: {_name(search.bandit)}"))
    if search.refit:
        choices.append(Choice(FINAL, "the best configuration", "all rows"))
    notes = (
        f"{n} rows, {splits} split{'s' if splits > 1 else ''}, scored by "
        f"{search.scoring or 'the estimators own score'}",
        f"runs on {problem.executor.threads} thread(s) of {type(problem.executor).__name__}",
    )
    return Plan(f"search, {budget}", tuple(choices), None, notes=notes)


def measured(plan: Plan, seconds: Mapping[str, float], total: float) -> Plan:
    """The plan with what every family took, the final fit and the search's own overhead."""
    return plan.with_measured(dict(seconds), total=total)


def _name(thing: Any) -> str:
    return thing if isinstance(thing, str) else "none" if thing is None else type(thing).__name__


def _family(name: str, estimator: Any, problem: Problem, batch: Choice | None) -> Choice:
    parts = cut(estimator)
    operator = type(parts.final).__name__
    notes = [] if parts.prefix is None else [
        f"preprocessing fitted once a split and shared: {' > '.join(parts.prefix.named_steps)}"
    ]  # fmt: skip
    step = name or operator
    if linear_task(parts.final) is None:
        return Choice(
            step, operator, "one fit a split, in parallel", notes=tuple(notes),
            rejected=(Alternative("batched", reason=f"{operator} has no batched form"),),
        )  # fmt: skip
    if batch is None:
        return Choice(step, operator, "batched: all splits share a scan", notes=tuple(notes))
    return replace(batch, step=step, operator=operator, notes=(*batch.notes, *notes))
