"""Graphs with many candidates: budgets in steps, each step improving on the one below.

::

    rung 1       rung 2            rung 3                       budget
    set 1   ->   set 2        ->   set 3     -> best neighbour of set 3 that fits
                 greedy, greedy per byte, moves from set 1

Law: more memory never gives a slower run. The rungs depend on the graph only. Between two
rungs the answer is the best of a fixed list, the neighbours of the set of the rung below,
of which a larger budget admits more. The set of a rung is the best such neighbour at that
rung, or better.
"""

from __future__ import annotations

from mlopt.caching.graph import Graph
from mlopt.caching.recurrences import outlook
from mlopt.caching.strategies.family import Kept, contenders, fixed, room, trimmed
from mlopt.caching.strategies.greedy import greedy, greedy_per_byte

RUNGS = 24
"""Budgets between the smallest candidate and all of them, in equal ratios."""
_ROUNDS = 4
"""Moves at most on one rung after the first."""


def ladder(graph: Graph, budget: float) -> Kept:
    """The best set that greedy growth and single moves find, rung by rung.

    A rung's set is at least as good as both greedy strategies at that rung's budget.
    """
    left = room(graph, budget)
    kept = fixed(graph, ())
    if left < 0:
        return kept
    able = contenders(graph)
    for rung in _rungs(graph, able):
        if rung > left:
            break
        kept = _climbed(graph, kept, budget - left + rung, able)
    return trimmed(graph, _moved(graph, kept, budget, able).nodes)


def _rungs(graph: Graph, able: tuple[int, ...]) -> list[float]:
    """Bytes of the rungs; they depend on the graph only."""
    sizes = [graph.nodes[v].bytes for v in able if graph.nodes[v].bytes > 0]
    if not sizes:
        return [0.0]
    ratio = sum(sizes) / min(sizes)
    return [0.0, *(min(sizes) * ratio ** (i / RUNGS) for i in range(RUNGS)), sum(sizes)]


def _climbed(graph: Graph, below: Kept, budget: float, able: tuple[int, ...]) -> Kept:
    """The set of a rung from that of the rung below."""
    first = _moved(graph, below, budget, able)
    starts = (first, greedy(graph, budget), greedy_per_byte(graph, budget))
    best = min(starts, key=lambda k: k.seconds)
    for _ in range(_ROUNDS):
        better = _moved(graph, best, budget, able)
        if not better.seconds < best.seconds:
            break
        best = better
    return best


def _moved(graph: Graph, kept: Kept, budget: float, able: tuple[int, ...]) -> Kept:
    """The best of ``kept`` and its neighbours that fit: one more, or one for another."""
    size = [node.bytes for node in graph.nodes]
    best, shortest = kept, kept.seconds
    for out in (None, *sorted(kept.nodes - graph.always)):
        rest = kept.nodes - {out}
        seconds, saved = outlook(graph, rest)
        left = budget - kept.bytes + (0.0 if out is None else size[out])
        into = max(
            (v for v in able if size[v] <= left), key=saved.__getitem__, default=None
        )
        if into is not None and seconds - saved[into] < shortest:
            best, shortest = fixed(graph, rest | {into}), seconds - saved[into]
    return min(kept, best, key=lambda k: k.seconds)
