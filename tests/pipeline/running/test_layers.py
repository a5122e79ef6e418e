"""Operators as named layers, and the tasks of a block as one task."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from dask.highlevelgraph import HighLevelGraph
from dask.task_spec import List, Task, TaskRef
from dask.utils import key_split
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import Normalizer, StandardScaler

import mlopt
from mlopt.cluster import Threads
from mlopt.pipeline.running.layers import Layers
from mlopt.pipeline.running.merging import merged, together

_RANDOM = np.random.default_rng(0)
X = _RANDOM.normal(size=(9000, 8)) * np.arange(1, 9)
Y = (X[:, 0] > X[:, 1]).astype(int)


def pipeline(**settings: Any) -> mlopt.Pipeline:
    steps = [
        ("unit", Normalizer()),
        ("scale", StandardScaler()),
        ("pca", PCA(3)),
        ("clf", LogisticRegression()),
    ]
    return mlopt.Pipeline(steps, **settings)


def prefixes(graph: HighLevelGraph) -> set[str]:
    """What Dask shows of the layers' names."""
    return {key_split(name).removesuffix("-source") for name in graph.layers}


def test_layers_carry_the_users_names_of_the_steps() -> None:
    graph = pipeline(optimize=False).visualize(X, Y)
    graph.validate()
    assert {"X", "y", "scale-fit", "pca-fit", "clf-fit"} <= prefixes(graph)


def test_steps_whose_tasks_are_one_are_one_layer_named_after_all() -> None:
    lazy, labels = da.from_array(X, chunks=(3000, 8)), da.from_array(Y, chunks=3000)
    graph = pipeline(optimize=False).visualize(lazy, labels)
    graph.validate()
    assert {"X+unit+scale-fit", "X+unit+scale+pca-apply"} <= prefixes(graph)
    (layer,) = (one for name, one in graph.layers.items() if "X+unit+scale-fit" in name)
    assert layer.annotations["mlopt"]["steps"] == ["X", "unit", "scale"]


def test_what_is_drawn_computes_what_is_fitted() -> None:
    steps = [("scale", StandardScaler()), ("pca", PCA(3, svd_solver="covariance_eigh"))]
    graph = mlopt.Pipeline(steps).visualize(da.from_array(X, chunks=(3000, 8)))
    (key,) = (k for k in graph.to_dict() if k[0].startswith("pca-fit") and k[1:] == (0,))
    wanted = PCA(3).fit(StandardScaler().fit_transform(X))
    np.testing.assert_allclose(
        np.abs(dask.get(graph.to_dict(), key).components_), np.abs(wanted.components_)
    )


def test_steps_that_were_fused_are_named_together() -> None:
    steps = [
        ("first", Normalizer()),
        ("second", Normalizer("l1")),
        ("scale", StandardScaler()),
    ]
    graph = mlopt.Pipeline([*steps, ("clf", LogisticRegression())]).visualize(X, Y)
    graph.validate()
    assert any("first+second" in name for name in graph.layers)


def test_steps_within_steps_are_named_by_their_path() -> None:
    prepare = make_column_transformer((StandardScaler(), [0, 1]), (Normalizer(), [2, 3]))
    steps = [("prepare", prepare), ("clf", LogisticRegression())]
    names = prefixes(mlopt.Pipeline(steps).visualize(X, Y))
    assert any("prepare.standardscaler" in name for name in names)


def test_a_graph_of_a_dask_array_reads_its_chunks() -> None:
    lazy = da.from_array(X, chunks=(3000, 8))
    graph = pipeline().visualize(lazy, da.from_array(Y, chunks=3000))
    graph.validate()
    assert "clf-fit" in prefixes(graph)


def test_a_path_within_a_name_stays_readable() -> None:
    steps = [("my step 2!", StandardScaler()), ("clf", LogisticRegression())]
    assert "my_step_2-fit" in prefixes(mlopt.Pipeline(steps).visualize(X, Y))


def add(*values: Any) -> Any:
    return sum(values)


def made(**tasks: Any) -> dict[Any, Any]:
    """A graph of sums: names of the parts of each, or a number."""
    return {
        key: Task(key, add, *(TaskRef(v) if isinstance(v, str) else v for v in parts))
        for key, parts in tasks.items()
    }


def merge_blocks(graph: Any, rows: Any, wanted: Any) -> dict[Any, Any]:
    return merged(graph, together(graph, rows, wanted))


def test_what_one_task_of_a_block_reads_becomes_part_of_it() -> None:
    graph = made(
        read=[1], scaled=["read", 5], part=["scaled", "model"], model=[2], other=["model"]
    )
    found = merge_blocks(graph, {"scaled", "part", "other"}, {"part", "other"})
    assert set(found) == {"part", "model", "other"}
    assert dask.get(found, "part") == dask.get(graph, "part") == 8


def test_what_is_wanted_or_read_twice_stays_a_task() -> None:
    graph = made(read=[1], a=["read"], b=["read"], sink=["a", "b"])
    found = merge_blocks(graph, {"a", "b"}, {"a", "sink"})
    assert set(found) == {"read", "a", "b", "sink"}
    assert dask.get(found, "sink") == 2


def test_tasks_that_gather_blocks_do_not_swallow_them() -> None:
    graph = made(r0=[1], r1=[2], r2=[3])
    graph["all"] = Task("all", sum, List(TaskRef("r0"), TaskRef("r1"), TaskRef("r2")))
    assert set(merge_blocks(graph, set(), {"all"})) == set(graph)


def test_sides_of_a_block_become_one_task() -> None:
    graph = made(read=[1], left=["read"], x=[5], right=["x"], join=["left", "right"])
    found = merge_blocks(graph, {"left", "right", "join"}, {"join"})
    assert set(found) == {"join"}
    assert dask.get(found, "join") == 6


def test_values_and_handles_stay_as_they_are() -> None:
    handle = object()
    graph = {"held": handle, **made(a=["held"])}
    assert merge_blocks(graph, {"a"}, {"a"})["held"] is handle


@pytest.mark.parametrize("budget", [0, "1GiB"], ids=["anew", "kept"])
def test_a_merged_graph_fits_what_scikit_learn_fits(budget: Any) -> None:
    lazy, labels = da.from_array(X, chunks=(2500, 8)), da.from_array(Y, chunks=2500)
    found = pipeline(memory_budget=budget).fit(lazy, labels)
    wanted = pipeline().export().fit(X, Y)
    np.testing.assert_array_equal(found.predict(X), wanted.predict(X))


def test_a_merged_graph_has_fewer_tasks_than_operators_have_blocks() -> None:
    lazy, labels = da.from_array(X, chunks=(2500, 8)), da.from_array(Y, chunks=2500)
    with closing(Threads(1)) as where:
        planned = pipeline()._plan(
            lazy, labels, {n: {} for n in ("unit", "scale", "pca", "clf")}, where
        )
    layers = Layers(planned.sources)
    (sink,) = planned.draft.sinks
    key = layers.model(sink)
    graph = layers.graph().to_dict()
    found, _ = layers.submitted(graph, [key])
    assert len(found.to_dict()) < len(graph)
