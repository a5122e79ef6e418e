"""Graphs that the tests of caching share: published ones, random ones, arbitrary ones."""

from __future__ import annotations

import itertools
import math
import random

from hypothesis import strategies as st

from mlopt.caching import Graph, Node, run_seconds

GOLDEN = Graph(
    (
        Node("0", 10, math.inf),
        Node("1", 10, 50, inputs=(0,)),
        Node("2", 30, 200, inputs=(1,)),
        Node("3", 20, 1000, inputs=(2,)),
        Node("4", 20, 1000, inputs=(2,)),
        Node("5", 20, 100, inputs=(3, 4)),
        Node("6", 0, 0, weight=4, inputs=(5,), estimator=True),
    )
)
"""The graph of KeystoneML's own test of greedy caching; numbers computed by hand."""

GOLDEN_CHOICES = [
    (0, set(), 640),
    (10, set(), 640),
    (75, {1}, 500),
    (125, {5}, 160),
    (175, {1, 5}, 140),
    (350, {2, 5}, 110),
    (10000, {2, 5}, 110),
]


def random_graph(
    rng: random.Random, n: int, *, fitted_stay: bool = True, estimators: float = 0.2
) -> Graph:
    """A pipeline of ``n`` steps with one or two inputs among the four before.

    Seconds and bytes are log-normal (sigma 1 and 1.2); a fifth of the steps fit something
    in 1, 4, 10 or 50 passes. With ``fitted_stay`` what they return takes one byte and is
    always kept, as in KeystoneML's code.
    """

    def node(v: int) -> Node:
        near = range(max(0, v - 4), v)
        inputs = rng.sample(near, min(len(near), rng.choice((1, 1, 1, 1, 2, 2))))
        fits = v > 0 and rng.random() < estimators
        stays = fits and fitted_stay
        size = 1.0 if stays else float(round(rng.lognormvariate(4, 1.2)))
        weight = rng.choice((1, 4, 10, 50)) if fits else 1
        seconds = rng.lognormvariate(0, 1)
        ins = tuple(sorted(inputs))
        return Node(str(v), seconds, size, weight, ins, always=stays, estimator=fits)

    return Graph(tuple(node(v) for v in range(n)))


def random_budget(rng: random.Random, graph: Graph) -> float:
    """Between what is always kept and everything."""
    share = rng.random() * graph.bytes_of(graph.candidates)
    return graph.bytes_of(graph.always) + share


@st.composite
def graphs(draw: st.DrawFn, most: int = 8) -> Graph:
    """Any graph of up to ``most`` nodes with whole seconds and bytes: sums are exact."""
    nodes = []
    for v in range(draw(st.integers(1, most))):
        inputs = draw(st.sets(st.integers(0, v - 1), max_size=3)) if v else set()
        nodes.append(
            Node(
                f"n{v}",
                draw(st.integers(0, 20)),
                draw(st.integers(0, 50)),
                draw(st.sampled_from((1, 1, 1, 2, 3, 7))),
                tuple(sorted(inputs)),
                candidate=draw(st.sampled_from((True, True, True, False))),
                always=draw(st.sampled_from((False, False, False, False, True))),
                estimator=draw(st.booleans()),
            )
        )
    return Graph(tuple(nodes))


budgets = st.integers(0, 250).map(float)


def brute_force(graph: Graph, budget: float) -> float:
    """The shortest run over all sets: every one is tried."""
    left = budget - graph.bytes_of(graph.always)
    return min(
        run_seconds(graph, graph.always.union(kept))
        for size in range(len(graph.candidates) + 1)
        for kept in itertools.combinations(graph.candidates, size)
        if not kept or graph.bytes_of(kept) <= left
    )
