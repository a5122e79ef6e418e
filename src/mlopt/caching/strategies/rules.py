"""Strategies that look at no times: nothing, estimators only, everything read again."""

from __future__ import annotations

from mlopt.caching.graph import Graph
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
