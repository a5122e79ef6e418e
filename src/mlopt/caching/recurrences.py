"""How often each node runs, and how long all of it takes, when some outputs are kept.

::

    C(v) = sum over readers p of  w_p * (1 if p is kept else C(p));    1 for a result
    T    = sum over v of          t(v) * (1 if v is kept else C(v))

``C(v)`` is how many times v is asked for, ``w_p`` the passes of p over its inputs, ``t(v)``
the seconds of one whole execution of v. All functions take time linear in the graph.

Source: Sparks et al., "KeystoneML" (ICDE 2017), section IV-C, with the exponents that make
its formula agree with its prose and code.

Law: what keeping v saves never grows when more is kept. Keeping v saves all executions of
v but one, ``(C(v) - 1) * cost(v)``, where ``cost(v)`` is one execution with what it makes
others run. Both factors fall, or stay, when another node is kept. So savings are
submodular: a set saves at most the sum of what its members save alone.
"""

from __future__ import annotations

from collections.abc import Collection

from mlopt.caching.graph import Graph


def requests(graph: Graph, kept: Collection[int]) -> list[float]:
    """How many times each node is asked for: C(v)."""
    counts = [0.0] * len(graph.nodes)
    for v in graph.sinks:
        counts[v] = 1.0
    for v, _, weight, inputs in reversed(graph.steps):
        reads = weight if v in kept else weight * counts[v]
        for i in inputs:
            counts[i] += reads
    return counts


def executions(graph: Graph, kept: Collection[int]) -> list[float]:
    """How many times each node runs: once if it is kept, else whenever asked for."""
    counts = requests(graph, kept)
    return [1.0 if v in kept else count for v, count in enumerate(counts)]


def run_seconds(graph: Graph, kept: Collection[int]) -> float:
    """How long the run takes that keeps the outputs of ``kept``: T."""
    times = executions(graph, kept)
    return sum(n * node.seconds for n, node in zip(times, graph.nodes, strict=True))


def savings(graph: Graph, kept: Collection[int]) -> list[float]:
    """What keeping each node in addition to ``kept`` saves, in seconds.

    ``savings(g, K)[v] == run_seconds(g, K) - run_seconds(g, K | {v})``, up to rounding; 0
    for nodes in ``kept``.
    """
    return outlook(graph, kept)[1]


def outlook(graph: Graph, kept: Collection[int]) -> tuple[float, list[float]]:
    """`run_seconds` and `savings` in one walk."""
    cost = [0.0] * len(graph.nodes)
    out = requests(graph, kept)
    total = 0.0
    for v, seconds, weight, inputs in graph.steps:
        if v in kept:
            # its first execution is paid for whether it is read or not
            total += seconds
            out[v] = 0.0
            continue
        total += out[v] * seconds
        own = seconds
        for i in inputs:
            own += weight * cost[i]
        cost[v] = own
        out[v] = (out[v] - 1.0) * own
    return total, out
