"""The simulated run: what it holds, what it forgets, and that it ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.caching.graphs import budgets, graphs
from tests.caching.simulated import simulate

from mlopt.caching import Graph, Node, choose, run_seconds

PIPELINE = Graph(
    (
        Node("load", 5, 100),
        Node("features", 10, 60, inputs=(0,)),
        Node("fit", 1, 1, weight=3, inputs=(1,)),
    )
)


def test_without_memory_everything_runs_each_time() -> None:
    run = simulate(PIPELINE, {0, 1, 2}, 0)
    assert run.executions == (3, 3, 1)
    assert run.seconds == 46
    assert (run.hits, run.evictions, run.peak) == (0, 0, 0)


def test_the_least_recently_used_is_forgotten_first() -> None:
    run = simulate(PIPELINE, {0, 1, 2}, 100)
    # load is held, then features takes its place, then the model fits beside it
    assert run.executions == (1, 1, 1)
    assert run.held == ((5, 100), (15, 60), (16, 61))
    assert (run.hits, run.evictions) == (2, 1)


def test_an_output_larger_than_all_the_room_evicts_nothing() -> None:
    run = simulate(PIPELINE, {0, 1}, 70)
    assert run.held == ((15, 60),)
    assert run.evictions == 0


def test_what_is_always_kept_is_held_beyond_the_budget_and_stays() -> None:
    nodes = (Node("load", 5, 100, always=True), *PIPELINE.nodes[1:])
    run = simulate(Graph(nodes), {0, 1, 2}, 50)
    assert run.executions == (1, 3, 1)
    assert run.peak == 100


def test_repeated_passes_are_counted_but_not_simulated_one_by_one() -> None:
    fit = Node("fit", 1, 1, weight=10**9, inputs=(1,))
    run = simulate(Graph((*PIPELINE.nodes[:2], fit)), (), 0)
    assert run.seconds == 15 * 10**9 + 1
    assert run.executions == (10**9, 10**9, 1)


def test_a_chain_deeper_than_the_stack_of_python_runs() -> None:
    chain = (
        Node("0", 1, 1),
        *(Node(str(v), 1, 1, inputs=(v - 1,)) for v in range(1, 5000)),
    )
    assert simulate(Graph(chain), (), 0).seconds == 5000


@given(graphs(), budgets)
def test_memory_holds_no_more_than_the_budget_and_never_slows_a_run(
    graph: Graph, budget: float
) -> None:
    run = simulate(graph, graph.candidates, budget)
    assert run.peak <= max(budget, graph.bytes_of(graph.always))
    assert run.seconds <= run_seconds(graph, graph.always)


@given(graphs(), budgets, st.data())
def test_wrong_estimates_fall_back_to_eviction_within_the_chosen_set(
    graph: Graph, budget: float, data: st.DataObject
) -> None:
    kept = choose(graph, budget).nodes
    factors = data.draw(st.lists(st.integers(1, 5), min_size=8, max_size=8))
    real = Graph(
        tuple(
            Node(n.name, n.seconds, n.bytes * f, n.weight, n.inputs, always=n.always)
            for n, f in zip(graph.nodes, factors, strict=False)
        )
    )
    run = simulate(real, kept, budget)
    assert run.peak <= max(budget, real.bytes_of(real.always))
    assert run_seconds(graph, kept) <= run.seconds <= run_seconds(graph, graph.always)
