"""Which rows to keep in memory for later passes and models (KeystoneML, IV-C)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlopt.caching import Graph, Node, choose
from mlopt.pipeline.graph import Sinks, walk
from mlopt.pipeline.operators import Apply, Learn, Operator, Outcome, Source
from mlopt.pipeline.profile import Profile
from mlopt.pipeline.rules.base import Context, Draft


@dataclass(frozen=True)
class KeepResults:
    """Without a profile everything is kept: the data are small."""

    name: str = "keep_results"

    def rewrite(self, draft: Draft, context: Context) -> Draft:
        """The draft with the set of operators whose rows are kept."""
        if context.profile is None:
            kept = frozenset(op.token for op in walk(draft.sinks) if op.gives_rows)
            return replace(draft, kept=kept)
        ops, graph = execution_graph(draft.sinks, context, context.profile)
        chosen = choose(graph, context.budget)
        kept = frozenset(ops[v].token for v in chosen.nodes if ops[v].gives_rows)
        kept -= {op.token for op in ops if isinstance(op, Source)}
        return draft if kept <= draft.kept else replace(draft, kept=kept | draft.kept)


def execution_graph(
    sinks: Sinks, context: Context, profile: Profile
) -> tuple[list[Operator], Graph]:
    """The operators, and what one execution of each takes, in the same order."""
    ops = list(walk(sinks, stop=lambda node: node.token in context.known))
    numbers = {id(op): number for number, op in enumerate(ops)}
    nodes = []
    for op in ops:
        inputs = () if op.token in context.known else op.inputs
        nodes.append(
            Node(
                op.step,
                profile.seconds(op),
                0.0 if is_there(op) else float(profile.bytes(op)),
                round(context.passes(op)) if isinstance(op, Learn) else 1,
                tuple(numbers[id(i)] for i in inputs),
                always=is_there(op) or must_stay(op),
                estimator=isinstance(op, Learn),
            )
        )
    return ops, Graph(tuple(nodes))


def is_there(op: Operator) -> bool:
    """Whether a value takes no memory of the budget: models, and data of the caller."""
    return not op.gives_rows or (isinstance(op, Source) and not op.lazy)


def must_stay(op: Operator) -> bool:
    """Whether a value cannot be made again: random ones, and outcomes of a whole fit."""
    return isinstance(op, Outcome) or (isinstance(op, Apply) and op.random)
