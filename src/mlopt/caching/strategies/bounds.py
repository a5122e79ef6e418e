"""The best set of all, for graphs with few candidates: branch and bound.

::

    keep nothing more
      keep a, the worthiest             what is left can save at most the fractional
        keep a and b                    knapsack of single savings (they are submodular):
      keep b but not a                  below the best known, the branch is cut
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlopt.caching.graph import Graph
from mlopt.caching.recurrences import outlook
from mlopt.caching.strategies.family import Kept, contenders, room, trimmed
from mlopt.caching.strategies.growth import greedy, greedy_per_byte, per_byte
from mlopt.errors import InputError

MOST = 20
"""Contenders at most. The time doubles with each in the worst case."""
_DIGITS = 1e-12
"""Relative rounding error of a run time and of a sum of savings."""


def exact(graph: Graph, budget: float) -> Kept:
    """The set with the shortest run within the budget; of equal ones, the first found.

    Raises
    ------
    InputError
        When more than 20 candidates can help.

    References
    ----------
    KeystoneML, section IV-C, states the problem. Nemhauser, Wolsey, Fisher, "Maximizing
    submodular set functions" (1978), bound a set's saving by its members'.
    """
    able = contenders(graph)
    if len(able) > MOST:
        raise InputError(
            f"`exact` takes at most {MOST} candidates whose keeping helps, got "
            f"{len(able)}. Use `choose`, or mark fewer as candidates."
        )
    start = min(
        (greedy(graph, budget), greedy_per_byte(graph, budget)), key=lambda k: k.seconds
    )
    search = _Search(graph, start.nodes, start.seconds)
    search.visit(set(graph.always), room(graph, budget), able)
    return trimmed(graph, search.best)


@dataclass
class _Search:
    """The best set so far, and the walk that looks for a better one."""

    graph: Graph
    best: frozenset[int]
    seconds: float
    bytes: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.bytes = [node.bytes for node in self.graph.nodes]

    def visit(self, kept: set[int], left: float, open_: Sequence[int]) -> None:
        """All sets of ``kept`` with some of ``open_`` that may beat the best."""
        seconds, saved = outlook(self.graph, kept)
        if seconds < self.seconds:
            self.best, self.seconds = frozenset(kept), seconds
        size = self.bytes
        able = [v for v in open_ if saved[v] > 0 and size[v] <= left]
        able.sort(key=lambda v: per_byte(saved[v], size[v]), reverse=True)
        # savings are known to a fraction of a run that may be far longer than the best
        least = seconds * (1 - _DIGITS)
        for position, v in enumerate(able):
            rest = able[position:]
            if least - self._at_most(rest, saved, left) >= self.seconds * (1 - _DIGITS):
                return
            kept.add(v)
            self.visit(kept, left - size[v], rest[1:])
            kept.discard(v)

    def _at_most(self, able: Sequence[int], saved: Sequence[float], left: float) -> float:
        """What ``able`` can save in ``left`` bytes: the fractional knapsack."""
        total = 0.0
        for v in able:
            size = self.bytes[v]
            if size > left:
                return total + saved[v] * left / size
            total += saved[v]
            left -= size
        return total
