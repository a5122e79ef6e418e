"""What every way of choosing what to keep takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mlopt.caching.graph import Graph
from mlopt.caching.recurrences import requests, run_seconds, savings
from mlopt.errors import InputError


@dataclass(frozen=True)
class Kept:
    """What is kept, and what that is predicted to give.

    Parameters
    ----------
    nodes : frozenset of int
        Whose outputs may be in memory; those that are always kept among them.
    bytes : float
        Held at most at any one time.
    seconds : float
        Of the whole run.
    """

    nodes: frozenset[int]
    bytes: float
    seconds: float


Strategy = Callable[[Graph, float], Kept]
"""From a graph and a budget in bytes to what is kept.

Contract: what is kept are candidates and what is always kept; it takes no more bytes than
the budget, or than what is always kept when that is more; the run is not slower than one
that keeps only the latter; equal arguments give equal results.
"""


def fixed(graph: Graph, nodes: Iterable[int]) -> Kept:
    """The outputs of ``nodes`` and of those always kept stay from when they are made."""
    kept = graph.always.union(nodes)
    return Kept(kept, graph.bytes_of(kept), run_seconds(graph, kept))


def room(graph: Graph, budget: float) -> float:
    """Bytes of the budget that what is always kept leaves; below 0 when it is more.

    Raises
    ------
    InputError
        When the budget is negative or no number.
    """
    if not budget >= 0:
        raise InputError(f"`budget` must be at least 0 bytes, got {budget!r}.")
    return budget - graph.bytes_of(graph.always)


def filled(graph: Graph, budget: float, wanted: Iterable[int]) -> Kept:
    """Those of ``wanted`` that are candidates and fit, one after the other."""
    kept, left = list[int](), room(graph, budget)
    allowed = frozenset(graph.candidates)
    for v in wanted:
        if v in allowed and graph.nodes[v].bytes <= left:
            kept.append(v)
            left -= graph.nodes[v].bytes
    return fixed(graph, kept)


def trimmed(graph: Graph, nodes: frozenset[int]) -> Kept:
    """Without those that are asked for once: to forget them costs nothing."""
    counts = requests(graph, nodes)
    return fixed(graph, (v for v in nodes if counts[v] > 1))


def contenders(graph: Graph) -> tuple[int, ...]:
    """Candidates of which some best set consists, whatever the budget.

    Two kinds are left out. Keeping one saves nothing when nothing else is kept, so, savings
    being submodular, never. The other has one reader, which reads it once and whose output
    is not larger: keeping the reader instead saves as much and more.
    """
    saved = savings(graph, graph.always)
    allowed = frozenset(graph.candidates)

    def outdone(v: int) -> bool:
        if len(graph.readers[v]) != 1:
            return False
        reader = graph.nodes[graph.readers[v][0]]
        smaller = reader.bytes <= graph.nodes[v].bytes
        return reader.weight == 1 and smaller and graph.readers[v][0] in allowed

    return tuple(v for v in graph.candidates if saved[v] > 0 and not outdone(v))
