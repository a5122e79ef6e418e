"""The best set where runs are priced as a whole."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from tests.caching.graphs import budgets, graphs

from mlopt.caching import Graph, Kept, run_seconds, search
from mlopt.caching.searching import ALL, Price

SIZES = {1: 10.0, 2: 20.0, 3: 30.0}


def priced(graph: Graph) -> Price:
    return lambda nodes: Kept(nodes, graph.bytes_of(nodes), run_seconds(graph, nodes))


def pairs(nodes: frozenset[int]) -> Kept:
    """1 and 2 save only together; 3 saves a little alone."""
    saved = 50.0 * ({1, 2} <= nodes) + 10.0 * (3 in nodes)
    return Kept(nodes, sum(SIZES[v] for v in nodes), 100.0 - saved)


@given(graph=graphs(most=6), budget=budgets)
def test_few_candidates_are_all_tried(graph: Graph, budget: float) -> None:
    price, able = priced(graph), range(len(graph.nodes))
    sets = itertools.chain.from_iterable(
        itertools.combinations(able, size) for size in range(len(able) + 1)
    )
    best = min(
        kept.seconds for kept in map(price, map(frozenset, sets)) if kept.bytes <= budget
    )
    assert search(price, able, budget).kept.seconds == best


def test_two_that_save_together_only_are_found() -> None:
    assert search(pairs, [1, 2, 3], 30.0).kept.nodes == {1, 2}
    many = [1, 2, 3, *range(4, ALL + 3)]
    SIZES.update(dict.fromkeys(range(4, ALL + 3), 1.0))
    assert search(pairs, many, 30.0).kept.nodes == {1, 2}


def test_of_equal_sets_the_smallest_is_taken() -> None:
    assert search(pairs, [1, 3], 100.0).kept.nodes == {3}


def test_what_does_not_fit_is_kept_in_part() -> None:
    found = search(pairs, [3], 16.0, parts=4)
    assert (found.kept.nodes, found.partly, found.share) == (frozenset(), 3, 0.5)
    assert (found.kept.seconds, found.kept.bytes) == (95.0, 15.0)


def test_less_than_a_part_is_not_kept() -> None:
    assert search(pairs, [3], 7.0, parts=4).partly is None


@pytest.mark.parametrize("start", [frozenset({1, 2}), frozenset({1, 2, 3})])
def test_a_beginning_is_never_made_worse(start: frozenset[int]) -> None:
    SIZES.update(dict.fromkeys(range(4, ALL + 3), 1.0))
    many = [*range(1, ALL + 3)]
    assert search(pairs, many, 60.0, [start]).kept.seconds <= pairs(start).seconds
