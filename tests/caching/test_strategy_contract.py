"""What every strategy of the table promises, and `choose` with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.caching.graphs import GOLDEN, GOLDEN_CHOICES, brute_force, budgets, graphs

from mlopt.caching import STRATEGIES, Graph, Strategy, choose, run_seconds, simulate

ALL = STRATEGIES | {"choose": choose}
FIXED = {name: strategy for name, strategy in ALL.items() if name != "lru"}
"""Whose set is predicted by the recurrences, without eviction."""


@pytest.fixture(params=sorted(ALL), scope="module")
def strategy(request: pytest.FixtureRequest) -> Strategy:
    return ALL[request.param]


@given(graph=graphs(), budget=budgets)
def test_it_never_takes_more_than_the_budget(
    strategy: Strategy, graph: Graph, budget: float
) -> None:
    assert strategy(graph, budget).bytes <= max(budget, graph.bytes_of(graph.always))


@given(graph=graphs(), budget=budgets)
def test_it_keeps_candidates_and_what_is_always_kept(
    strategy: Strategy, graph: Graph, budget: float
) -> None:
    kept = strategy(graph, budget).nodes
    assert graph.always <= kept <= graph.always.union(graph.candidates)


@given(graph=graphs(), budget=budgets)
def test_what_it_predicts_is_what_a_simulated_run_takes(
    strategy: Strategy, graph: Graph, budget: float
) -> None:
    kept = strategy(graph, budget)
    run = simulate(graph, kept.nodes, budget)
    assert run.seconds == kept.seconds <= run_seconds(graph, graph.always)
    assert run.peak <= kept.bytes


@given(graph=graphs(), budget=budgets)
def test_it_gives_the_same_again(strategy: Strategy, graph: Graph, budget: float) -> None:
    assert strategy(graph, budget) == strategy(Graph(graph.nodes), budget)


def test_it_keeps_nothing_without_memory(strategy: Strategy) -> None:
    kept = strategy(GOLDEN, 0)
    assert (kept.bytes, kept.seconds) == (0, 640)


@pytest.mark.parametrize("name", ["greedy", "exact", "ladder", "choose"])
@pytest.mark.parametrize(("budget", "nodes", "seconds"), GOLDEN_CHOICES)
def test_the_golden_choices(
    name: str, budget: float, nodes: set[int], seconds: float
) -> None:
    kept = ALL[name](GOLDEN, budget)
    assert (set(kept.nodes), kept.seconds) == (nodes, seconds)
    assert brute_force(GOLDEN, budget) == seconds


@given(graph=graphs(), budget=budgets)
def test_choose_is_the_best_of_all_sets(graph: Graph, budget: float) -> None:
    assert choose(graph, budget).seconds == brute_force(graph, budget)


@pytest.mark.parametrize("name", sorted(FIXED))
@given(graph=graphs(), budget=budgets)
def test_choose_is_never_slower_than_a_fixed_set(
    name: str, graph: Graph, budget: float
) -> None:
    assert choose(graph, budget).seconds <= FIXED[name](graph, budget).seconds


@pytest.mark.parametrize("name", ["nothing", "exact", "ladder", "choose"])
@given(graph=graphs(), budget=budgets, more=budgets)
def test_more_memory_never_makes_it_slower(
    name: str, graph: Graph, budget: float, more: float
) -> None:
    small, large = ALL[name](graph, budget), ALL[name](graph, budget + more)
    assert large.seconds <= small.seconds
