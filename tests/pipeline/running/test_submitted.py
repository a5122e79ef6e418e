"""What Dask is given is what is drawn, under the user's names of the steps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import dask.array as da
import numpy as np
import pytest
from dask.utils import key_split
from distributed import SchedulerPlugin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

import mlopt
from mlopt.cluster import Cluster
from mlopt.cluster.connect import connect
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.blocks.cut import ask, cut
from mlopt.pipeline.environment import environment

pytestmark = pytest.mark.cluster

_RANDOM = np.random.default_rng(4)
X = _RANDOM.normal(size=(6000, 6)) * np.arange(1, 7)
Y = (X[:, 5] > X[:, 0]).astype(int)


class Spy(SchedulerPlugin):
    """Writes down what workers computed: the name that Dask shows, and the steps."""

    name = "spy"

    def __init__(self) -> None:
        self.seen: set[tuple[str, tuple[str, ...]]] = set()

    def start(self, scheduler: Any) -> None:
        self.scheduler = scheduler

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:
        if start == "processing" and finish == "memory":
            annotations = self.scheduler.tasks[key].annotations or {}
            if "mlopt" in annotations:
                steps = tuple(annotations["mlopt"]["steps"])
                self.seen.add((key_split(key), steps))


def _seen(dask_scheduler: Any) -> set[tuple[str, tuple[str, ...]]]:
    found: set[tuple[str, tuple[str, ...]]] = dask_scheduler.plugins["spy"].seen
    return found


@pytest.fixture
def client(shared_workers: str) -> Iterator[Any]:
    environment.clear()
    with connect(shared_workers) as client:
        client.register_plugin(Spy())
        yield client
        client.unregister_scheduler_plugin("spy")


def slow(block: Any) -> Any:
    time.sleep(0.02)
    return block + 1.0


mlopt.register(slow, row_wise=True)


def pipeline() -> mlopt.Pipeline:
    both = FeatureUnion([("scale", StandardScaler()), ("min_max", MinMaxScaler())])
    steps = [
        ("add 1", FunctionTransformer(slow)),
        ("both", both),
        ("last", StandardScaler()),
    ]
    return mlopt.Pipeline(steps)


def test_workers_compute_what_is_drawn_under_the_names_of_the_steps(client: Any) -> None:
    lazy = da.from_array(X, chunks=(1500, 6))
    graph = pipeline().visualize(lazy)
    graph.validate()
    drawn = {
        (key_split(name), tuple(layer.annotations["mlopt"]["steps"]))
        for name, layer in graph.layers.items()
    }
    plan = pipeline().fit(lazy).plan_
    seen = client.run_on_scheduler(_seen)
    assert seen == drawn
    named = {choice.step for _, choice in plan.walk()}
    assert named == {step for _, steps in seen for step in steps} - {"X"}


def test_workers_that_hold_an_answer_do_not_give_it_to_another_question(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = Cluster(client)
    blocks = cut(da.from_array(X, chunks=(1500, 6)), where)
    monkeypatch.setattr(where, "release", lambda handle: None)
    held: list[Any] = []
    whole = where.run_graph

    def kept(*given: Any) -> Any:
        held.append(whole(*given))
        return held[-1]

    monkeypatch.setattr(where, "run_graph", kept)
    for size in (2, 3):
        (rows,) = ask(blocks, where, "sample", tables.take_rows, {0: (range(size),)})
        assert len(rows) == size


def test_the_passes_of_a_fit_are_named_after_its_step(client: Any) -> None:
    lazy, labels = da.from_array(X, chunks=(1500, 6)), da.from_array(Y, chunks=1500)
    steps = [("scale", StandardScaler()), ("my clf", LogisticRegression())]
    mlopt.Pipeline(steps).fit(lazy, labels)
    seen = client.run_on_scheduler(_seen)
    assert any(
        name.startswith("my_clf-fit") for name, steps in seen if steps == ("my clf",)
    )


def test_seconds_are_measured_on_the_workers(client: Any) -> None:
    lazy = da.from_array(X, chunks=(500, 6))
    begin = time.perf_counter()
    plan = pipeline().set_params(memory_budget=0).fit(lazy).plan_
    took = time.perf_counter() - begin
    measured = {c.step: c.measured for _, c in plan.walk()}
    # 12 blocks, at least twice, on two slots
    assert (measured["add 1"] or 0.0) >= 12 * 2 * 0.02 / 2
    assert all(seconds is not None for seconds in measured.values())
    assert sum(seconds or 0.0 for seconds in measured.values()) <= took
    del client
