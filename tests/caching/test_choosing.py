"""What is chosen on pipelines like the published ones, on random and on large graphs."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from itertools import pairwise

import pytest
from tests.caching.graphs import GOLDEN, brute_force, random_budget, random_graph
from tests.caching.simulated import simulate

from mlopt.caching import STRATEGIES, Graph, Node, choose, contenders

MB = 1e6
VOC = Graph(
    (
        Node("Images", 30, 4000 * MB),
        Node("GrayScaler", 10, 2000 * MB, inputs=(0,)),
        Node("SIFT", 800, 900 * MB, inputs=(1,)),
        Node("ColumnSampler", 5, 50 * MB, inputs=(2,)),
        Node("PCA", 20, 0.1 * MB, inputs=(3,), always=True, estimator=True),
        Node("ReduceDimensions", 60, 500 * MB, inputs=(2, 4)),
        Node("SampleReduced", 5, 40 * MB, inputs=(5,)),
        Node("GMM", 120, 0.2 * MB, inputs=(6,), always=True, estimator=True),
        Node("FisherVector", 300, 420 * MB, inputs=(5, 7)),
        Node("Normalize", 10, 400 * MB, inputs=(8,)),
        Node("Labels", 20, 8 * MB),
        Node("TrainingLabels", 2, 1 * MB, inputs=(10,)),
        Node("LinearSolver", 100, 1 * MB, weight=4, inputs=(9, 11), estimator=True),
    )
)
"""KeystoneML, figure 5: one fit of components, one of a mixture, one of a linear model."""


def names(budget: float) -> set[str]:
    kept = choose(VOC, budget).nodes - VOC.always
    return {VOC.nodes[v].name for v in kept}


def test_with_memory_what_is_read_again_is_kept_as_late_as_possible() -> None:
    everything = {"SIFT", "ReduceDimensions", "Normalize", "TrainingLabels"}
    assert names(1e12) == everything


def test_with_little_memory_what_the_solver_reads_is_kept() -> None:
    assert names(450 * MB) == {"Normalize", "TrainingLabels"}


def test_an_aggressive_choice_keeps_what_is_read_again() -> None:
    assert STRATEGIES["aggressive"](GOLDEN, 10_000).nodes == {2, 5}


def test_greedy_equals_the_best_on_random_pipelines() -> None:
    rng, names_ = random.Random(20170419), ("greedy", "greedy per byte")
    seconds = []
    for _ in range(1000):
        graph = random_graph(rng, rng.randint(4, 12))
        budget = random_budget(rng, graph)
        by_name = [STRATEGIES[name](graph, budget).seconds for name in names_]
        seconds.append((by_name[0], min(by_name), choose(graph, budget).seconds))
    plain, either, best = zip(*seconds, strict=True)
    # A few long runs make up most of the total: for Algorithm 1 alone it lies between 0.2
    # and 2.7 % above the best, from one thousand pipelines to the next.
    assert_near(plain, best, share=0.95, ratio=1.03)
    assert_near(either, best, share=0.99, ratio=1.02)


def assert_near(
    found: Sequence[float], best: Sequence[float], share: float, ratio: float
) -> None:
    pairs = zip(found, best, strict=True)
    equal = sum(a <= b * (1 + 1e-12) for a, b in pairs) / len(best)
    total = sum(found) / sum(best)
    print(f"the best on {100 * equal:.1f} %; in total {total:.4f} of it")  # noqa: T201
    assert equal >= share
    assert total <= ratio


@pytest.mark.parametrize("seed", range(5))
def test_choose_is_the_best_of_all_sets_also_when_nothing_stays_by_itself(
    seed: int,
) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        graph = random_graph(rng, 10, fitted_stay=False, estimators=0.4)
        budget = random_budget(rng, graph)
        assert choose(graph, budget).seconds == pytest.approx(brute_force(graph, budget))


def test_memory_that_serves_one_part_and_then_another_is_beyond_any_fixed_set() -> None:
    graph = Graph(
        (
            Node("a", 10, 100),
            Node("fit a", 1, 1, weight=5, inputs=(0,)),
            Node("b", 10, 100),
            Node("fit b", 1, 1, weight=5, inputs=(2,)),
        )
    )
    assert choose(graph, 100).seconds == 10 + 50 + 2
    assert simulate(graph, STRATEGIES["lru"](graph, 100).nodes, 100).seconds == 10 + 10 + 2


def large_graphs() -> list[Graph]:
    rng = random.Random(60)
    found = [random_graph(rng, 60, fitted_stay=bool(i % 2)) for i in range(8)]
    assert min(len(contenders(graph)) for graph in found) > 14
    return found


LARGE = large_graphs()


@pytest.mark.slow
@pytest.mark.parametrize("graph", LARGE, ids=range(len(LARGE)))
def test_more_memory_never_makes_a_large_graph_slower(graph: Graph) -> None:
    all_of_it = graph.bytes_of(graph.candidates)
    rng = random.Random(1)
    shares = sorted([0, 1, *(rng.random() ** 2 for _ in range(20))])
    always = graph.bytes_of(graph.always)
    kept = [choose(graph, always + share * all_of_it) for share in shares]
    assert all(b.seconds <= a.seconds * (1 + 1e-9) for a, b in pairwise(kept))


@pytest.mark.parametrize("graph", LARGE, ids=range(len(LARGE)))
@pytest.mark.parametrize("name", ["nothing", "estimators", "aggressive", "greedy"])
def test_a_large_graph_is_not_slower_than_a_simpler_choice(graph: Graph, name: str) -> None:
    rng = random.Random(2)
    for _ in range(3):
        budget = random_budget(rng, graph)
        kept = choose(graph, budget)
        assert kept.bytes <= budget
        # between its rungs, a ladder may be behind a greedy choice that happens to fit
        slack = 1.15 if name == "greedy" else 1
        assert kept.seconds <= slack * STRATEGIES[name](graph, budget).seconds


def test_with_memory_for_all_a_large_graph_runs_each_node_once() -> None:
    for graph in LARGE:
        kept = choose(graph, graph.bytes_of(range(len(graph.nodes))))
        assert kept.seconds == pytest.approx(sum(node.seconds for node in graph.nodes))


def test_choosing_takes_no_time_beside_a_run() -> None:
    graph = LARGE[0]
    budget = graph.bytes_of(graph.always) + 0.3 * graph.bytes_of(graph.candidates)
    least = min(_seconds_of(graph, budget) for _ in range(3))
    print(f"{len(contenders(graph))} candidates: {1e3 * least:.0f} ms")  # noqa: T201
    assert least < 0.2  # about 30 ms on a machine that does nothing else


def _seconds_of(graph: Graph, budget: float) -> float:
    started = time.process_time()
    choose(graph, budget)
    return time.process_time() - started
