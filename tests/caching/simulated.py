"""A run, step by step: depth-first, recomputing what is not held, evicting the oldest.

::

    read v:   held            -> it becomes the most recently used
              not held        -> weight times: read each input; run v; hold it if it may be

What is kept by a fixed set within its budget is the same run without any eviction, so the
recurrences can be checked against it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field

from mlopt.caching import Graph


@dataclass(frozen=True)
class Simulated:
    """What a simulated run took.

    Parameters
    ----------
    seconds : float
    executions : tuple of int
        How often each node ran.
    hits, evictions : int
        Reads of what was held; outputs forgotten before the end.
    held : tuple of (float, float)
        Seconds since the start and bytes held from then on, at each change. The first of
        passes that repeat stands for all of them.
    """

    seconds: float
    executions: tuple[int, ...]
    hits: int
    evictions: int
    held: tuple[tuple[float, float], ...]

    @property
    def peak(self) -> float:
        """Bytes held at most."""
        return max((size for _, size in self.held), default=0.0)


def simulate(graph: Graph, kept: Collection[int], budget: float) -> Simulated:
    """Run the graph with ``budget`` bytes, holding only outputs of ``kept``.

    What is always kept is held whatever the budget, and never evicted. Of the others the
    least recently used are evicted until a new one fits; one that is larger than all the
    room is not held. With sizes as measured and a set chosen for sizes as predicted, this
    is the fallback of KeystoneML, section V-D.
    """
    run = _Run(graph, frozenset(kept), budget - graph.bytes_of(graph.always))
    for sink in graph.sinks:
        run.read(sink)
    counts = tuple(run.executions)
    return Simulated(run.seconds, counts, run.hits, run.evictions, tuple(run.held))


@dataclass
class _Frame:
    """One execution under way."""

    node: int
    passes: int
    position: int = 0
    before: tuple[tuple[int, ...], float, list[int], int, int] | None = None


@dataclass
class _Run:
    graph: Graph
    kept: frozenset[int]
    room: float
    seconds: float = 0.0
    hits: int = 0
    evictions: int = 0
    used: float = 0.0
    pinned: float = 0.0
    held: list[tuple[float, float]] = field(default_factory=list)
    memory: OrderedDict[int, float] = field(default_factory=OrderedDict)
    executions: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.executions = [0] * len(self.graph.nodes)

    def read(self, v: int) -> None:
        """The output of ``v``, with a stack of our own: graphs are deeper than Python's."""
        stack = [] if self._hit(v) else [self._frame(v)]
        while stack:
            frame = stack[-1]
            inputs = self.graph.inputs[frame.node]
            if not inputs or not frame.passes:
                self._ran(stack.pop().node)
            elif frame.position < len(inputs):
                if frame.position == 0 and frame.passes > 1:
                    frame.before = self._state()
                frame.position += 1
                i = inputs[frame.position - 1]
                if not self._hit(i):
                    stack.append(self._frame(i))
            else:
                self._passed(frame)

    def _frame(self, v: int) -> _Frame:
        return _Frame(v, self.graph.nodes[v].weight)

    def _hit(self, v: int) -> bool:
        if v not in self.memory:
            return False
        self.memory.move_to_end(v)
        self.hits += 1
        return True

    def _ran(self, v: int) -> None:
        self.seconds += self.graph.nodes[v].seconds
        self.executions[v] += 1
        self._hold(v)

    def _hold(self, v: int) -> None:
        size, always = self.graph.nodes[v].bytes, self.graph.nodes[v].always
        if not always and (v not in self.kept or size > self.room):
            return
        if always:
            self.pinned += size
        else:
            self._evict(size)
            self.used += size
        self.memory[v] = size
        self.held.append((self.seconds, self.used + self.pinned))

    def _evict(self, size: float) -> None:
        """The oldest first, until ``size`` bytes fit."""
        for v in list(self.memory):
            if self.used + size <= self.room:
                return
            if not self.graph.nodes[v].always:
                self.used -= self.memory.pop(v)
                self.evictions += 1

    def _state(self) -> tuple[tuple[int, ...], float, list[int], int, int]:
        counts = list(self.executions)
        return tuple(self.memory), self.seconds, counts, self.hits, self.evictions

    def _passed(self, frame: _Frame) -> None:
        """End of a pass; if it left memory as it found it, so will all that follow."""
        frame.passes -= 1
        frame.position = 0
        if frame.before is None or not frame.passes:
            return
        memory, seconds, counts, hits, evictions = frame.before
        if tuple(self.memory) != memory:
            return
        self.seconds += frame.passes * (self.seconds - seconds)
        self.hits += frame.passes * (self.hits - hits)
        self.evictions += frame.passes * (self.evictions - evictions)
        for v, count in enumerate(counts):
            self.executions[v] += frame.passes * (self.executions[v] - count)
        frame.passes = 0
