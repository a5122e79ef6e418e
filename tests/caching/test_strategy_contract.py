"""What every strategy of the table promises, and `choose` with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.caching.graphs import GOLDEN, GOLDEN_CHOICES, brute_force, budgets, graphs
from tests.caching.simulated import simulate

from mlopt.caching import STRATEGIES, Graph, Node, Strategy, choose, run_seconds
from mlopt.errors import InputError

ALL = STRATEGIES | {"choose": choose}
FIXED = {name: strategy for name, strategy in ALL.items() if name != "lru"}
"""Whose set stays, without eviction: that is what the recurrences predict."""


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


@pytest.mark.parametrize("name", sorted(FIXED))
@given(graph=graphs(), budget=budgets)
def test_what_it_predicts_is_what_a_simulated_run_takes(
    name: str, graph: Graph, budget: float
) -> None:
    kept = FIXED[name](graph, budget)
    run = simulate(graph, kept.nodes, budget)
    assert run.seconds == kept.seconds <= run_seconds(graph, graph.always)
    assert run.peak <= kept.bytes


@given(graph=graphs(), budget=budgets)
def test_to_forget_the_oldest_takes_what_is_predicted_where_all_fits(
    graph: Graph, budget: float
) -> None:
    kept = STRATEGIES["lru"](graph, budget)
    run = simulate(graph, kept.nodes, budget)
    assert kept.seconds <= run.seconds <= run_seconds(graph, graph.always)
    assert run.peak <= kept.bytes
    all_fit = graph.bytes_of(kept.nodes) <= budget
    assert run.seconds == kept.seconds or not all_fit


def test_any_number_of_repeated_passes_can_be_planned() -> None:
    fits = (Node(str(v), 1, 1, weight=3, inputs=(v - 1,)) for v in range(1, 31))
    chain = Graph((Node("0", 1, 1), *fits))
    for name in FIXED.keys() - {"exact"} | {"lru"}:
        assert STRATEGIES.get(name, choose)(chain, 0.5).bytes <= 0.5


@given(graph=graphs(), budget=budgets)
def test_it_gives_the_same_again(strategy: Strategy, graph: Graph, budget: float) -> None:
    assert strategy(graph, budget) == strategy(Graph(graph.nodes), budget)


@pytest.mark.parametrize("name", sorted(FIXED))
def test_it_keeps_nothing_without_memory(name: str) -> None:
    kept = FIXED[name](GOLDEN, 0)
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


@pytest.mark.parametrize("name", ["estimators", "greedy", "exact", "ladder", "choose"])
@pytest.mark.parametrize("budget", [-1, float("nan")])
def test_a_wrong_budget_is_refused(name: str, budget: float) -> None:
    with pytest.raises(InputError, match="`budget`"):
        ALL[name](GOLDEN, budget)


def test_more_candidates_than_exact_can_try_are_refused() -> None:
    fits = [Node(str(v), 1, 1, weight=2, inputs=(v - 1,)) for v in range(1, 25)]
    chain = Graph((Node("0", 1, 1), *fits))
    with pytest.raises(InputError, match="at most 20"):
        STRATEGIES["exact"](chain, 10)
    assert choose(chain, 24).seconds == 25


@given(graph=graphs(), budget=budgets)
def test_no_strategy_misses_the_best_when_memory_holds_everything(
    graph: Graph, budget: float
) -> None:
    everything = graph.bytes_of(range(len(graph.nodes))) + budget
    best = brute_force(graph, everything)
    for name in ("greedy", "greedy per byte", "exact", "ladder", "choose"):
        assert ALL[name](graph, everything).seconds == best


def test_what_is_always_kept_takes_its_share_of_the_budget() -> None:
    nodes = (Node("a", 5, 60), Node("model", 1, 50, always=True), *READERS)
    graph = Graph(nodes)
    assert choose(graph, 109).nodes == {1}
    assert choose(graph, 110).nodes == {0, 1}
    assert choose(graph, 10).nodes == {1}


READERS = (Node("b", 1, 1, inputs=(0, 1)), Node("c", 1, 1, inputs=(0, 1)))
