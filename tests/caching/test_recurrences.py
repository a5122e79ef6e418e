"""The recurrences: by hand, against a simulated run, and their law."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.caching.graphs import GOLDEN, GOLDEN_CHOICES, graphs
from tests.caching.simulated import simulate

from mlopt.caching import Graph, Node, executions, requests, run_seconds, savings


def chosen(graph: Graph, data: st.DataObject) -> frozenset[int]:
    picked = data.draw(st.sets(st.sampled_from(range(len(graph.nodes)))))
    return graph.always | (picked & set(graph.candidates))


def test_the_golden_graph_is_asked_for_as_by_hand() -> None:
    assert requests(GOLDEN, ()) == [8, 8, 8, 4, 4, 4, 1]
    assert requests(GOLDEN, {2, 5}) == [1, 1, 2, 1, 1, 4, 1]
    assert executions(GOLDEN, {2, 5}) == [1, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(("_budget", "kept", "seconds"), GOLDEN_CHOICES)
def test_the_golden_runs_take_what_is_published(
    _budget: float, kept: set[int], seconds: float
) -> None:
    assert run_seconds(GOLDEN, kept) == seconds


def test_the_golden_total_is_the_sum_over_executions_for_all_sets() -> None:
    times = [node.seconds for node in GOLDEN.nodes]
    for size in range(7):
        for kept in combinations(range(6), size):
            runs = executions(GOLDEN, kept)
            total = sum(t * n for t, n in zip(times, runs, strict=True))
            assert run_seconds(GOLDEN, kept) == total == simulated(GOLDEN, frozenset(kept))


def simulated(graph: Graph, kept: frozenset[int]) -> float:
    """The golden graph's node 0 has no size; it is held all the same here."""
    sized = tuple(Node(n.name, n.seconds, 1, n.weight, n.inputs) for n in graph.nodes)
    return simulate(Graph(sized), kept, 1e9).seconds


def test_the_passes_of_an_estimator_do_not_multiply_its_own_seconds() -> None:
    graph = Graph((Node("features", 3, 1), Node("fit", 5, 1, weight=10, inputs=(0,))))
    assert run_seconds(graph, ()) == 10 * 3 + 5
    assert run_seconds(graph, {0}) == 3 + 5


def test_each_result_is_asked_for_once() -> None:
    graph = Graph(
        (Node("a", 2, 1), Node("b", 1, 1, inputs=(0,)), Node("c", 1, 1, inputs=(0,)))
    )
    assert requests(graph, ()) == [2, 1, 1]


@given(graphs(), st.data())
def test_a_simulated_run_takes_what_the_recurrences_say(
    graph: Graph, data: st.DataObject
) -> None:
    kept = chosen(graph, data)
    run = simulate(graph, kept, graph.bytes_of(kept))
    assert run.seconds == run_seconds(graph, kept)
    assert list(run.executions) == executions(graph, kept)
    assert run.evictions == 0


@given(graphs(), st.data())
def test_savings_are_differences_of_run_times(graph: Graph, data: st.DataObject) -> None:
    kept = chosen(graph, data)
    now = run_seconds(graph, kept)
    expected = [now - run_seconds(graph, kept | {v}) for v in range(len(graph.nodes))]
    assert savings(graph, kept) == expected


@given(graphs(), st.data())
def test_what_a_node_saves_never_grows_when_more_is_kept(
    graph: Graph, data: st.DataObject
) -> None:
    some = chosen(graph, data)
    more = some | chosen(graph, data)
    pairs = zip(savings(graph, some), savings(graph, more), strict=True)
    assert all(now >= then >= 0 for now, then in pairs)
