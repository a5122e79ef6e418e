"""What to keep: the best set where it can be found, else the best that a ladder finds."""

from __future__ import annotations

from mlopt.caching.graph import Graph
from mlopt.caching.strategies.bounds import exact
from mlopt.caching.strategies.family import Kept, contenders
from mlopt.caching.strategies.rungs import ladder

EXACT = 14
"""Candidates that can help, up to which the best set of all is looked for."""


def choose(graph: Graph, budget: float) -> Kept:
    """The outputs to keep within ``budget`` bytes for the shortest run.

    Up to 14 candidates that can help, the best fixed set of all. Beyond, the set that
    `ladder` climbs to, which may be a little behind a greedy choice that happens to fit.
    Which of the two depends on the graph only, so more memory never gives a slower run.

    A fixed set keeps its memory from the first use to the end of the run. Eviction can be
    faster where one memory could serve two parts of a run, one after the other.

    Parameters
    ----------
    graph : Graph
    budget : float
        Bytes, those of what is always kept included.
    """
    if len(contenders(graph)) <= EXACT:
        return exact(graph, budget)
    return ladder(graph, budget)
