"""Strategies that look at no times: nothing, estimators, what is read again, everything."""

from __future__ import annotations

from mlopt.caching.graph import Graph
from mlopt.caching.recurrences import run_seconds
from mlopt.caching.strategies.family import Kept, filled, fixed


def nothing(graph: Graph, budget: float) -> Kept:
    """Only what is always kept."""
    return fixed(graph, ())


def estimators_only(graph: Graph, budget: float) -> Kept:
    """What fits return, in the graph's order while it fits.

    Source: KeystoneML, section V-D: the rule-based strategy.
    """
    wanted = (v for v, node in enumerate(graph.nodes) if node.estimator)
    return filled(graph, budget, wanted)


def aggressive(graph: Graph, budget: float) -> Kept:
    """What its direct readers read more than once in all, in the graph's order.

    The best set when memory is not limited.

    Source: KeystoneML's published code, ``AutoCacheRule``: its naive strategy, which has no
    limit; here one that does not fit is passed over.
    """
    uses = (sum(graph.nodes[p].weight for p in readers) for readers in graph.readers)
    return filled(graph, budget, (v for v, n in enumerate(uses) if n > 1))


def lru(graph: Graph, budget: float) -> Kept:
    """Everything that may be kept; a run forgets the least recently used when it must.

    Not a fixed set: its memory serves one part of the run and then another. So it can be
    faster than every fixed set, and it need not get faster with more memory. Predicted as
    if nothing were forgotten.

    Source: KeystoneML, section V-D.
    """
    nodes = graph.always.union(graph.candidates)
    most = max(budget, graph.bytes_of(graph.always))
    return Kept(nodes, min(most, graph.bytes_of(nodes)), run_seconds(graph, nodes))
