"""Graphs with many candidates: budgets in steps, each step improving on the one below.

::

    rung 1       rung 2                        budget      rung 3       rung 4
    set 1   ->   set 2                            |        set 3   ->   set 4
                 greedy, greedy per byte,         `- the best that fits of sets 2, 3, 4
                 moves from set 1                    and of their neighbours

Law: more memory never gives a slower run. The rungs and their sets depend on the graph
only. Between two rungs the answer is the best of a fixed list, of which a larger budget
admits more. Past the next rung the list loses the neighbours of the lowest set; the set of
that rung is as good as any of them that fit below it.
"""

from __future__ import annotations

from functools import cache, partial

from mlopt.caching.graph import Graph
from mlopt.caching.recurrences import outlook
from mlopt.caching.strategies.family import Kept, contenders, fixed, room, trimmed
from mlopt.caching.strategies.growth import Look, by_seconds, grown, per_byte

RUNGS = 24
"""Budgets between the smallest candidate and all of them, in equal ratios."""
_ROUNDS = 4
"""Moves at most on one rung after the first."""
_ABOVE = 2
"""Rungs above the budget whose neighbours are looked at."""


def ladder(graph: Graph, budget: float) -> Kept:
    """The best set that greedy growth and single moves find, rung by rung.

    A rung's set is at least as good as both greedy strategies at that rung's budget.
    Between rungs it may be worse than a greedy one.
    """
    left = room(graph, budget)
    sets, above = [fixed(graph, ())], 0
    if left < 0:
        return sets[0]
    climb = _Climb(graph)
    for rung in climb.rungs():
        sets.append(climb.up(sets[-1], sets[0].bytes + rung))
        above += rung > left
        if above == _ABOVE:
            break
    moved = (climb.moved(kept, budget) for kept in sets[-_ABOVE - 1 :])
    return trimmed(graph, min(moved, key=lambda k: k.seconds).nodes)


class _Climb:
    """The search on one graph. Sets that come again, and most do, are not priced again."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.able = contenders(graph)
        self.size = [node.bytes for node in graph.nodes]
        self.look: Look = cache(partial(outlook, graph))

    def rungs(self) -> list[float]:
        """Bytes beside what is always kept; they depend on the graph only."""
        sizes = [self.size[v] for v in self.able if self.size[v] > 0]
        if not sizes:
            return [0.0]
        least, ratio = min(sizes), sum(sizes) / min(sizes)
        return [0.0, *(least * ratio ** (i / RUNGS) for i in range(RUNGS)), sum(sizes)]

    def up(self, below: Kept, budget: float) -> Kept:
        """The set of a rung from that of the rung below."""
        grow = partial(grown, self.graph, budget, look=self.look)
        grown_sets = (fixed(self.graph, grow(worth)) for worth in (by_seconds, per_byte))
        best = min(self.moved(below, budget), *grown_sets, key=lambda k: k.seconds)
        for _ in range(_ROUNDS):
            better = self.moved(best, budget)
            if not better.seconds < best.seconds:
                break
            best = better
        return best

    def moved(self, kept: Kept, budget: float) -> Kept:
        """The best of ``kept`` and its neighbours that fit: one more, less, or another."""
        graph, size = self.graph, self.size
        best = kept if kept.bytes <= budget else fixed(graph, ())
        shortest, nodes = best.seconds, best.nodes
        fitting = [v for v in self.able if size[v] <= budget]
        for out in (None, *sorted(kept.nodes - graph.always)):
            rest = kept.nodes if out is None else kept.nodes - {out}
            left = budget - kept.bytes + (0.0 if out is None else size[out])
            if left < 0:
                continue
            after, saved = self.look(rest)
            able = [v for v in fitting if size[v] <= left]
            into = max(able, key=saved.__getitem__, default=None)
            if into is not None and saved[into] > 0:
                after, rest = after - saved[into], rest | {into}
            if after < shortest:
                shortest, nodes = after, rest
        if nodes == best.nodes:
            return best
        return min(best, fixed(graph, nodes), key=lambda k: k.seconds)
