"""The plan of a sweep: what was decided about the data, around the plan of the search."""

from __future__ import annotations

from collections.abc import Mapping

from mlopt.plan import Choice, Plan
from mlopt.sweep.config import Config
from mlopt.sweep.prepare import Prepared


def sweep_plan(
    prepared: Prepared,
    search: Plan,
    config: Config,
    seconds: Mapping[str, float],
    total: float | None,
) -> Plan:
    """The search's plan with the steps before and after it.

    Parameters
    ----------
    prepared : Prepared
    search : Plan
        Of the `ModelSearchCV`, before or after it ran.
    config : Config
    seconds : mapping of step to float
        What was measured; empty before the run.
    total : float or None
        Seconds in all; None before the run.
    """
    before = (
        Choice("read", prepared.name, _sizes(prepared), measured=seconds.get("read")),
        _columns(prepared, seconds.get("prepare")),
        Choice("test part", prepared.test_source, f"{len(prepared.y_test):,} rows"),
        Choice("validation", type(prepared.cv).__name__, prepared.cv_name),
    )
    middle = Choice(
        "search",
        f"{len(prepared.families)} families",
        f"{config.search.sampler}, {config.search.bandit}",
        predicted=search.predicted,
        measured=search.measured,
        notes=search.notes,
        children=search.choices,
    )
    tested = f"on {len(prepared.y_test):,} rows"
    after = Choice("test", prepared.scoring, tested, measured=seconds.get("test"))
    return Plan(
        f"sweep {prepared.name}",
        (*before, middle, after),
        predicted=_predicted(search, config, seconds),
        measured=total,
        memory=search.memory,
        memory_budget=search.memory_budget,
        estimates=search.estimates,
    )


def _predicted(search: Plan, config: Config, seconds: Mapping[str, float]) -> float | None:
    """Reading, which was measured, and the search: within the limit."""
    limit = config.search.timeout
    if search.predicted is None:
        return limit
    found = search.predicted + sum(seconds.get(step, 0.0) for step in ("read", "prepare"))
    return found if limit is None else min(limit, found)


def _sizes(prepared: Prepared) -> str:
    rows = len(prepared.y) + len(prepared.y_test)
    return f"{rows:,} rows, {prepared.X.shape[1]} columns"


def _columns(prepared: Prepared, seconds: float | None) -> Choice:
    roles, target = prepared.case.roles, prepared.target
    task = f"{target.task} of {target.name}"
    if roles is None:
        return Choice("columns", "sparse matrix", task, measured=seconds)
    counts = {
        "numbers": len(roles.numbers),
        "codes": len(roles.codes),
        "categories": len(roles.categories),
        "dates": len(roles.dates),
        "vectors": len(roles.vectors),
        "texts": len(roles.texts),
        "dropped": len(roles.dropped),
    }
    text = ", ".join(f"{n} {kind}" for kind, n in counts.items() if n)
    notes = tuple(f"dropped {name}: {why}" for name, why in roles.dropped.items())
    return Choice("columns", text, task, measured=seconds, notes=notes)
