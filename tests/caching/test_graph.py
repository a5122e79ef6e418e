"""What a graph refuses, and what it knows of itself."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.caching.graphs import GOLDEN

from mlopt.caching import Graph, Node
from mlopt.errors import InputError


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"seconds": -1}, "seconds"),
        ({"seconds": math.nan}, "seconds"),
        ({"seconds": math.inf}, "seconds"),
        ({"bytes": -1}, "bytes"),
        ({"bytes": math.nan}, "bytes"),
        ({"bytes": math.inf, "always": True}, "bytes"),
        ({"weight": 0}, "weight"),
        ({"weight": 1.5}, "weight"),
        ({"weight": math.inf}, "weight"),
    ],
)
def test_a_wrong_number_is_named(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=f"`{named}` of 'sift'"):
        Node("sift", **({"seconds": 1.0, "bytes": 1.0} | wrong))


@pytest.mark.parametrize("inputs", [(1,), (2,), (-1,), (0, 1)])
def test_an_input_that_does_not_come_before_is_refused(inputs: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="topological order"):
        Graph((Node("a", 1, 1), Node("b", 1, 1, inputs=inputs)))


def test_a_graph_without_nodes_is_refused() -> None:
    with pytest.raises(InputError, match="at least one"):
        Graph(())


def test_a_graph_that_would_never_end_is_refused() -> None:
    chain = [Node("0", 1, 1)]
    chain += [Node(str(v), 1, 1, weight=1000, inputs=(v - 1,)) for v in range(1, 100)]
    with pytest.raises(InputError, match="weights"):
        Graph(tuple(chain))


def test_readers_and_sinks_follow_from_inputs() -> None:
    assert GOLDEN.readers == ((1,), (2,), (3, 4), (5,), (5,), (6,), ())
    assert GOLDEN.sinks == (6,)
    two = Graph((Node("a", 1, 1), Node("b", 1, 1, inputs=(0,)), Node("c", 1, 1)))
    assert two.sinks == (1, 2)


def test_a_repeated_input_is_read_once_in_a_pass() -> None:
    graph = Graph((Node("a", 1, 1), Node("join", 1, 1, inputs=(0, 0))))
    assert graph.inputs == ((), (0,))
    assert graph.readers == ((1,), ())


def test_an_output_of_unknown_size_is_no_candidate() -> None:
    assert GOLDEN.candidates == (1, 2, 3, 4, 5, 6)
