"""Keep everything, and forget the least recently used when memory is full."""

from __future__ import annotations

from mlopt.caching.graph import Graph
from mlopt.caching.lru import simulate
from mlopt.caching.strategies.family import Kept


def lru(graph: Graph, budget: float) -> Kept:
    """Everything that may be kept, least recently used evicted, by simulation.

    Not a fixed set: its memory serves one part of the run and then another. So it can be
    faster than every fixed set, and it need not get faster with more memory.

    Source: KeystoneML, section V-D.
    """
    nodes = graph.always.union(graph.candidates)
    run = simulate(graph, nodes, budget)
    return Kept(nodes, run.peak, run.seconds)
