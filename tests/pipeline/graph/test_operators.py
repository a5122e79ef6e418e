"""Operators: what makes two of them equal, and what a graph looks like."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from tests.pipeline.graphs import DATA, OTHER, ranged, scaled, text, union

from mlopt.pipeline.fits.registry import ways_of
from mlopt.pipeline.graph.operators import (
    Apply,
    Convert,
    Fused,
    Given,
    Learn,
    Operator,
    Select,
)
from mlopt.pipeline.graph.walking import readers, rebuild, show, walk


def test_equal_parameters_and_inputs_make_equal_operators() -> None:
    assert scaled("a", DATA).token == scaled("a", DATA).token


def test_the_name_of_a_step_is_no_part_of_what_it_computes() -> None:
    assert scaled("a", DATA).token == scaled("b", DATA).token


@pytest.mark.parametrize(
    "other",
    [
        scaled("a", OTHER),
        ranged("a", DATA),
        scaled("a", DATA, StandardScaler(with_mean=False)),
        scaled("a", scaled("before", DATA)),
    ],
    ids=["data", "class", "parameter", "prefix"],
)
def test_another_value_has_another_token(other: Any) -> None:
    assert scaled("a", DATA).token != other.token


def test_how_a_model_is_learnt_is_no_part_of_what_it_is() -> None:
    learn = Learn("pca", PCA(2), DATA)
    (way, *_) = ways_of(learn.estimator)

    assert replace(learn, way=way).token == learn.token


def test_a_way_is_no_part_of_a_model_whose_code_cannot_be_told() -> None:
    class Hidden(StandardScaler):
        def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
            return globals()["StandardScaler"].fit(self, X)

    learn = Learn("hidden", Hidden(), DATA)
    (way, *_) = ways_of(PCA(2))
    assert Learn("hidden", learn.estimator, DATA).token != learn.token
    assert replace(learn, way=way).token == learn.token


def test_a_layout_has_a_token_but_means_the_same() -> None:
    x = scaled("a", DATA)
    dense = Convert("a", x, "dense")

    assert dense.token != x.token
    assert Learn("pca", PCA(2), dense).token == Learn("pca", PCA(2), x).token


def test_targets_and_weights_are_part_of_a_model() -> None:
    plain = Learn("scale", StandardScaler(), DATA)

    assert Learn("scale", StandardScaler(), DATA, weight=OTHER).token != plain.token


def test_random_steps_without_a_seed_are_never_equal() -> None:
    one, two = (Learn("pca", PCA(2), DATA, repeats=False, nonce=n) for n in ("1", "2"))

    assert one.token != two.token


def test_selected_columns_tell_by_their_names() -> None:
    assert Select("a", DATA, ["x"]).token != Select("a", DATA, ["y"]).token


def test_a_fused_operator_stands_for_its_last() -> None:
    inner = scaled("a", DATA)
    outer = Apply("b", Given("b", StandardScaler(), "given"), inner)

    assert Fused("a+b", outer, (inner.model, DATA, outer.model)).token == outer.token


def test_walking_visits_inputs_first_and_each_node_once() -> None:
    shared = scaled("a", DATA)
    order = list(walk([union(shared, ranged("b", shared))]))

    assert len(order) == len({id(op) for op in order})
    for op in order:
        assert all(order.index(i) < order.index(op) for i in op.inputs)


def test_a_deep_diamond_takes_no_time() -> None:
    begin = time.perf_counter()
    node: Operator = DATA
    for _ in range(300):
        node = union(node, node)
    same = rebuild((node,), lambda op: op)

    assert same == (node,)
    assert time.perf_counter() - begin < 5.0


def test_rebuilding_replaces_what_reads_a_replaced_operator() -> None:
    root = ranged("b", scaled("a", DATA))
    (new,) = rebuild((root,), lambda op: OTHER if op is DATA else op)

    assert new.token == ranged("b", scaled("a", OTHER)).token


def test_readers_are_those_that_name_an_operator_as_input() -> None:
    x = scaled("a", DATA)
    found = readers((x,))

    assert found[id(DATA)] == [x.model, x]


def test_a_graph_is_shown_with_shared_nodes_once() -> None:
    shared = scaled("scale", DATA)

    assert show((union(shared, shared),)) == text(
        """
        #0 Source X
        #1 Learn scale StandardScaler() #0
        #2 Apply scale #1 #0
        #3 Join union #2 #2
        """
    )


def test_arrays_among_parameters_count_by_their_content() -> None:
    class Shift(StandardScaler):
        def __init__(self, by: Any = None) -> None:
            super().__init__()
            self.by = by

        def get_params(self, deep: Any = True) -> Any:
            return {"by": self.by}

    tokens = {scaled("s", DATA, Shift(np.arange(n))).token for n in (3, 3, 4)}

    assert len(tokens) == 2
