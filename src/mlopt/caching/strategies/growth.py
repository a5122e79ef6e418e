"""One more at a time: the one that saves most, or that saves most for its bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mlopt.caching.graph import Graph
from mlopt.caching.recurrences import outlook
from mlopt.caching.strategies.family import Kept, fixed, room

Worth = Callable[[float, float], float]
"""From seconds saved and bytes taken to what is compared."""
Look = Callable[[frozenset[int]], tuple[float, list[float]]]
"""`outlook` of a graph, which a search over many sets may remember."""


def greedy(graph: Graph, budget: float) -> Kept:
    """Keep what shortens the run most among what fits; again, until nothing does.

    Source: KeystoneML, Algorithm 1, and its code: only what runs more than once is
    considered, and what is always kept is kept from the beginning. One that fills the
    budget exactly fits. The algorithm is written with a search over all run times; the
    savings of all nodes together take the same time as one of them.
    """
    return fixed(graph, grown(graph, budget, by_seconds))


def greedy_per_byte(graph: Graph, budget: float) -> Kept:
    """The same by seconds saved for each byte.

    Source: Khuller, Moss, Naor, "The budgeted maximum coverage problem" (1999).
    """
    return fixed(graph, grown(graph, budget, per_byte))


def grown(
    graph: Graph, budget: float, worth: Worth, look: Look | None = None
) -> frozenset[int]:
    """What is kept when the worthiest that fits is added until none helps."""
    look = look or partial(outlook, graph)
    kept, left = graph.always, room(graph, budget)
    nodes = graph.nodes
    while True:
        saved = look(kept)[1]
        able = [v for v in graph.candidates if saved[v] > 0 and nodes[v].bytes <= left]
        if not able:
            return kept
        best = max(able, key=lambda v: worth(saved[v], nodes[v].bytes))
        kept = kept | {best}
        left -= nodes[best].bytes


def per_byte(seconds: float, size: float) -> float:
    """Seconds saved for each byte; what takes none comes first."""
    return seconds / size if size > 0 else float("inf")


def by_seconds(seconds: float, size: float) -> float:
    """Seconds saved, whatever they take."""
    return seconds
