"""Which rows to keep in memory for later passes and models (KeystoneML, IV-C)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlopt.caching import STRATEGIES, Found, Graph, Kept, Node, choose, search
from mlopt.errors import InputError
from mlopt.pipeline.graph.operators import Learn, Operator
from mlopt.pipeline.graph.schedule import Timetable, must_stay, schedule, takes_memory
from mlopt.pipeline.graph.walking import Sinks, walk
from mlopt.pipeline.profiling.profile import Profile
from mlopt.pipeline.rules.base import Context, Draft
from mlopt.plan import format_bytes

KEEPERS = ("best", *STRATEGIES)
"""What `mlopt.keep` may name: the set with the shortest run as the engine runs it, or one
of those that KeystoneML compares."""

_MARGIN = 0.98
"""Share of the budget that sizes as predicted may fill."""


@dataclass(frozen=True)
class KeepResults:
    """Without a profile everything is kept that fits: the data are small."""

    name: str = "keep_results"

    def rewrite(self, draft: Draft, context: Context) -> Draft:
        """The draft with the set of operators whose rows are kept.

        Raises
        ------
        InputError
            When rows that cannot be made again do not fit, or the budget is not 0 and yet
            smaller than a block of one column.
        """
        budget, draft = float(context.budget), _with_those_there(draft, context)
        if context.profile is None:
            kept = frozenset(op.token for op in walk(draft.sinks) if op.gives_rows)
            return _changed(draft, kept=kept, budget=budget)
        ops, graph = execution_graph(draft.sinks, context, context.profile)
        _check_budget(ops, context.profile, budget)
        found = _chosen(draft.sinks, ops, graph, context, context.profile)
        stay = {op.token for op in ops if must_stay(op)}
        chosen = {ops[v].token for v in found.kept.nodes if takes_memory(ops[v])}
        partly = None if found.partly is None else (ops[found.partly].token, found.share)
        more = {partly[0]} if partly else set()
        kept = draft.kept | chosen | stay | more
        return _changed(draft, kept=kept, budget=budget, partly=partly)


def _changed(draft: Draft, **changes: Any) -> Draft:
    new = replace(draft, **changes)
    return draft if new == draft else new


def _with_those_there(draft: Draft, context: Context) -> Draft:
    """Rows from before are the ends of tasks, as those that are kept."""
    return _changed(draft, kept=draft.kept | context.there)


def _chosen(
    sinks: Sinks,
    ops: Sequence[Operator],
    graph: Graph,
    context: Context,
    profile: Profile,
) -> Found:
    if context.keep not in KEEPERS:
        raise InputError(f"`mlopt.keep` must be one of {KEEPERS}, got {context.keep!r}.")
    if context.keep != "best":
        return Found(STRATEGIES[context.keep](graph, context.budget))
    return Engine(sinks, ops, graph, context, profile).best(context.budget)


class Engine:
    """Prices sets of kept rows as the engine runs: each operator once a job.

    Attributes
    ----------
    able : list of int
        Nodes of the graph whose rows are worth keeping, if there is room.
    """

    def __init__(
        self,
        sinks: Sinks,
        ops: Sequence[Operator],
        graph: Graph,
        context: Context,
        profile: Profile,
    ) -> None:
        self.graph, self.profile = graph, profile
        jobs = schedule(sinks, context.passes, context.known)
        self.table = Timetable(jobs, context.there, profile.bytes)
        positions = {id(op): v for v, op in enumerate(ops)}
        self._positions = [positions[id(op)] for op in self.table.ops]
        self._numbers = {v: number for number, v in enumerate(self._positions)}
        self._seconds = [profile.seconds(op) for op in self.table.ops]
        self.able = self._able()

    def price(self, nodes: frozenset[int]) -> Kept:
        """Seconds of all rows computed, and bytes at most, when these nodes are kept."""
        followed = self.table.follow(self._numbers[v] for v in nodes if v in self._numbers)
        pairs = zip(followed.executions, self._seconds, strict=True)
        return Kept(nodes, followed.peak, sum(n * seconds for n, seconds in pairs))

    def best(self, budget: float) -> Found:
        """The shortest run within the budget; the recurrences' choice is a beginning."""
        start = choose(self.graph, budget).nodes
        room = _MARGIN * budget
        return search(self.price, self.able, room, [start], self.profile.blocks)

    def _able(self) -> list[int]:
        counts = self.table.follow(()).executions
        allowed = set(self.graph.candidates)
        often = [v for v, n in zip(self._positions, counts, strict=True) if n > 1.0]
        return [v for v in often if v in allowed and not self._outdone(v, allowed)]

    def _outdone(self, v: int, allowed: set[int]) -> bool:
        """Whether keeping its only reader, which is no larger, saves as much and more."""
        readers, nodes = self.graph.readers[v], self.graph.nodes
        one = len(readers) == 1 and readers[0] in allowed
        return one and nodes[readers[0]].bytes <= nodes[v].bytes


def _check_budget(ops: Sequence[Operator], profile: Profile, budget: float) -> None:
    """Refuse what could hold nothing at all, and what cannot hold what must be kept."""
    column = 8 * profile.rows / profile.blocks
    if 0 < budget < column:
        raise InputError(
            "`memory_budget` must be 0, for nothing kept, or hold a block of one column at "
            f"least, which takes {format_bytes(column)}; got {budget:.0f} bytes. Give "
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


def execution_graph(
    sinks: Sinks, context: Context, profile: Profile
) -> tuple[list[Operator], Graph]:
    """The operators, and what one execution of each takes, in the same order."""
    ops = list(walk(sinks, stop=lambda node: node.token in context.known))
    numbers = {id(op): number for number, op in enumerate(ops)}
    nodes = []
    for op in ops:
        ends = op.token in context.known | context.there
        free = ends or not takes_memory(op)
        nodes.append(
            Node(
                op.step,
                0.0 if ends else profile.seconds(op),
                0.0 if free else float(profile.bytes(op)),
                round(context.passes(op)) if isinstance(op, Learn) else 1,
                () if ends else tuple(numbers[id(i)] for i in op.inputs),
                always=free or must_stay(op),
                estimator=isinstance(op, Learn),
            )
        )
    return ops, Graph(tuple(nodes))
