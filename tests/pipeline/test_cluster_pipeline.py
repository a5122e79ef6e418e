"""Pipelines on worker processes: what threads find, also when workers die."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mlopt
from mlopt.cluster import local_cluster
from mlopt.pipeline.environment import environment

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

EXACT = {"tol": 1e-10, "max_iter": 5000}
N = 6000
_RANDOM = np.random.default_rng(2)
X = _RANDOM.normal(size=(N, 8)) * np.arange(1, 9) + 3.0
Y = (X[:, 7] + 3.0 * _RANDOM.normal(size=N) > 3.0).astype(int)
FRAME = pd.DataFrame({
    "size": X[:, 0],
    "weight": X[:, 7],
    "colour": _RANDOM.choice(["red", "green", "blue"], N),
})  # fmt: skip


def numbers() -> mlopt.Pipeline:
    steps = [
        ("scale", StandardScaler()),
        ("pca", PCA(5)),
        ("clf", LogisticRegression(**EXACT)),
    ]
    return mlopt.Pipeline(steps)


def mixed() -> mlopt.Pipeline:
    prepare = make_column_transformer(
        (StandardScaler(), ["size", "weight"]), (OneHotEncoder(), ["colour"])
    )
    return mlopt.Pipeline([("prepare", prepare), ("clf", LogisticRegression(**EXACT))])


def unknown() -> Any:
    """Chunks of unknown length, one of them empty."""
    lazy = da.from_array(X, chunks=(1500, 8))
    return lazy[da.from_array(np.arange(N) >= 1500, chunks=1500)]


CASES: dict[str, Callable[[], Any]] = {
    "array": lambda: (numbers(), da.from_array(X, chunks=(1500, 8)), Y),
    "labels in dask": lambda: (
        numbers(),
        da.from_array(X, chunks=(1500, 8)),
        da.from_array(Y, chunks=1500),
    ),
    "chunks of columns": lambda: (numbers(), da.from_array(X, chunks=(1500, 3)), Y),
    "unknown lengths and an empty chunk": lambda: (numbers(), unknown(), Y[1500:]),
    "frame": lambda: (mixed(), dd.from_pandas(FRAME, npartitions=4), Y),
    "memory": lambda: (numbers(), X, Y),
}


def fitted(case: str) -> tuple[Any, Any]:
    """Coefficients, and predictions for some rows."""
    environment.clear()
    pipe, data, labels = CASES[case]()
    pipe.fit(data, labels)
    rows = FRAME[:100] if case == "frame" else X[:100]
    return pipe[-1].coef_, pipe.export().predict_proba(rows)


@pytest.fixture(scope="module")
def here() -> dict[str, tuple[Any, Any]]:
    """Every case, fitted while there is no client."""
    return {case: fitted(case) for case in CASES}


@pytest.fixture(scope="module")
def client(here: dict[str, Any]) -> Iterator[Any]:
    del here  # only its order matters: before there are workers
    with local_cluster(2, 1) as client:
        yield client


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("case", CASES)
def test_workers_find_what_threads_find(case: str, here: dict[str, Any]) -> None:
    coef, proba = fitted(case)
    np.testing.assert_allclose(coef, here[case][0], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(proba, here[case][1], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["persisted", "of persisted", "documents"])
def test_what_workers_hold_already_is_read_there(client: Any, kind: str) -> None:
    if kind == "documents":
        texts = [f"{'good' if one else 'bad'} {number % 7}" for number, one in enumerate(Y)]
        given: Any = db.from_sequence(texts, npartitions=3).persist()
        pipeline = mlopt.make_pipeline(TfidfVectorizer(), LogisticRegression(**EXACT))
        there, known = pipeline.fit(given, Y).predict(given), np.array(texts, object)
    else:
        lazy, targets = da.from_array(X, chunks=(1500, 8)), da.from_array(Y, chunks=1500)
        given, targets = lazy.persist(), targets.persist()
        if kind == "of persisted":
            given, targets = given + 0.0, targets + 0
        pipeline, known = numbers(), X
        there = pipeline.fit(given, targets).predict(given)
    here = clone(pipeline).fit(known, Y)
    np.testing.assert_allclose(pipeline[-1].coef_, here[-1].coef_, atol=1e-4)
    np.testing.assert_array_equal(np.asarray(there.compute()), here.predict(known))


def test_few_rows_of_a_dask_array_come_to_light_steps(client: Any) -> None:
    lazy = da.from_array(X, chunks=(1500, 8)), da.from_array(Y, chunks=1500)
    heavy = mlopt.make_pipeline(StandardScaler(), RandomForestClassifier(5))
    told = "all rows come from the workers to this process"
    with dask.config.set({"mlopt.plan": "where it pays"}), client.as_current():
        light = mlopt.make_pipeline(StandardScaler(), LogisticRegression(**EXACT))
        assert told in light.explain(*lazy).explain()
        there = light.fit(*lazy)
        assert told in there.plan_.explain()
        assert told not in heavy.fit(*lazy).plan_.explain()
        assert isinstance(there.predict(lazy[0]), da.Array)
    here = clone(light).fit(X, Y)
    np.testing.assert_allclose(there[-1].coef_, here[-1].coef_, atol=1e-4)


def test_nothing_is_held_when_a_fit_is_done(client: Any) -> None:
    fitted("array")
    deadline = time.monotonic() + 10
    while held := client.futures:
        assert time.monotonic() < deadline, sorted(map(str, held))[:5]
        time.sleep(0.05)


def test_tasks_are_named_after_the_steps(client: Any) -> None:
    client.get_task_stream()  # from the first call on, the scheduler takes notes
    fitted("array")
    events = client.get_task_stream()
    names = {str(event["key"]) for event in events}
    for step in ("scale-fit-", "pca-apply-"):
        assert any(step in name for name in names), step


def slow(block: Any) -> Any:
    time.sleep(0.05)
    return block


def test_a_worker_killed_in_the_middle_changes_nothing(
    client: Any, here: dict[str, Any]
) -> None:
    environment.clear()
    lazy = da.from_array(X, chunks=(1500, 8)).map_blocks(slow, dtype=X.dtype)
    pids = list(client.run(os.getpid).values())
    killer = threading.Timer(0.4, os.kill, (pids[0], signal.SIGKILL))
    killer.start()
    pipe = numbers().set_params(memory_budget=0).fit(lazy, Y)
    killer.join()
    assert client.run(os.getpid)
    np.testing.assert_allclose(pipe[-1].coef_, here["array"][0], rtol=1e-5, atol=1e-7)


def block(number: int, rows: int, columns: int) -> Any:
    """Numbers that depend on ``number`` alone."""
    few = np.random.default_rng(number).standard_normal((512, columns))
    return np.tile(few * np.linspace(3.0, 0.5, columns) + 5.0, (rows // 512, 1))


def test_data_larger_than_all_workers_stream_through() -> None:
    rows, columns, blocks = 16_384, 100, 88
    make = dask.delayed(block)
    parts = [make(number, rows, columns) for number in range(blocks)]
    lazy = da.concatenate([da.from_delayed(one, (rows, columns), "f8") for one in parts])
    labels = (np.arange(rows * blocks) % 7 == 0).astype(int)
    with local_cluster(2, 1, memory_limit="550MB") as client:
        before = set(client.run(os.getpid).values())
        pipe = mlopt.Pipeline([("scale", StandardScaler()), ("pca", PCA(3))])
        pipe.fit(lazy, labels)
        found = pipe.transform(lazy).std(axis=0).compute()
        assert set(client.run(os.getpid).values()) == before
    assert lazy.nbytes > 2 * 550e6
    np.testing.assert_allclose(found**2, pipe[-1].explained_variance_, rtol=1e-3)
