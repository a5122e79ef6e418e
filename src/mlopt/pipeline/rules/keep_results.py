"""Which rows to keep in memory for later passes and models (KeystoneML, IV-C)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mlopt.caching import STRATEGIES, Found
from mlopt.errors import InputError
from mlopt.pipeline.graph.operators import Operator
from mlopt.pipeline.graph.schedule import must_stay, takes_memory
from mlopt.pipeline.graph.walking import walk
from mlopt.pipeline.profiling.profile import Profile
from mlopt.pipeline.rules.base import Context, Draft
from mlopt.pipeline.rules.engine import Engine
from mlopt.plan import format_bytes

KEEPERS = ("best", *STRATEGIES)
"""What `mlopt.keep` may name: the set with the shortest run as the engine runs it, or one
of those that KeystoneML compares."""


def keep_results(draft: Draft, context: Context) -> Draft:
    """The draft with the set of operators whose rows are kept.

    Without a profile one graph makes all rows once, so that there is nothing to keep. Where
    that cannot be, everything is kept that fits: the data are small.

    Raises
    ------
    InputError
        When rows that cannot be made again do not fit, or the budget is not 0 and yet
        smaller than a block of one column.
    """
    budget, draft = float(context.budget), _with_those_there(draft, context)
    if context.profile is None and context.at_once:
        return _changed(draft, at_once=True, budget=budget)
    if context.profile is None:
        kept = frozenset(op.token for op in walk(draft.sinks) if op.gives_rows)
        return _changed(draft, kept=kept, budget=budget)
    engine = Engine(draft.sinks, context, context.profile)
    _check_budget(engine.ops, context.profile, budget)
    found = _chosen(engine, context)
    stay = {op.token for op in engine.ops if must_stay(op)}
    chosen = {engine.ops[v].token for v in found.kept.nodes}
    partly = None
    if found.partly is not None:
        partly = (engine.ops[found.partly].token, found.share)
        chosen.add(partly[0])
    kept = draft.kept | chosen | stay
    return _changed(draft, kept=kept, budget=budget, partly=partly)


def _changed(draft: Draft, **changes: Any) -> Draft:
    new = replace(draft, **changes)
    return draft if new == draft else new


def _with_those_there(draft: Draft, context: Context) -> Draft:
    """Rows from before are the ends of tasks, as those that are kept."""
    return _changed(draft, kept=draft.kept | context.there)


def _chosen(engine: Engine, context: Context) -> Found:
    if context.keep == "best":
        starts = (engine.begin(budget) for budget in [context.budget])
        return engine.run().best(context.budget, starts)
    ops, graph = engine.graph()
    nodes = STRATEGIES[context.keep](graph, context.budget).nodes
    free = {v for v in nodes if takes_memory(ops[v])}
    numbers = engine.numbers(ops)
    return Found(engine.run().price(frozenset(numbers[v] for v in free)))


def _check_budget(ops: Sequence[Operator], profile: Profile, budget: float) -> None:
    """Refuse what could hold nothing at all, and what cannot hold what must be kept."""
    column = 8 * profile.rows / profile.blocks
    if 0 < budget < column:
        raise InputError(
            "`memory_budget` must be 0, for nothing kept, or hold a block of one column at "
            f"least, which takes {format_bytes(column)}; got {format_bytes(budget)}. Give "
            'more, or "auto".'
        )
    stay = [op for op in ops if must_stay(op)]
    total = sum(profile.bytes(op) for op in stay)
    if total > budget:
        steps = ", ".join(dict.fromkeys(f"`{op.step}`" for op in stay))
        raise InputError(
            f"Rows of {steps} may not be the same a second time, or are pinned by a "
            f"`Cacher`: they must be kept, and take {format_bytes(total)}; `memory_budget` "
            f"is {format_bytes(budget)}. Give more memory, declare a step of your own "
            "that treats each row by itself with `mlopt.register(..., row_wise=True)`, "
            "give a `random_state`, or leave the `Cacher` out."
        )
