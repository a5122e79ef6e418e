"""Few rows in memory stay in this process although there is an active client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mlopt
from mlopt.cluster import Cluster, Threads, executor
from mlopt.cluster.near import NEAR, are_near, would_be_near
from mlopt.cluster.threads import driving, threads_beside
from mlopt.rows import arriving
from mlopt.rows.source import collected_together

pytestmark = pytest.mark.cluster

X = np.random.default_rng(0).normal(size=(300, 4))
Y = (X[:, 0] > 0).astype(int)
TEXTS = ["some words " * 100] * 20_000
MANY = np.broadcast_to(0.0, (int(NEAR), 2))


@pytest.fixture
def client() -> Iterator[distributed.Client]:
    with (
        dask.config.set({"mlopt.plan": "where it pays"}),
        distributed.Client(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address="127.0.0.1:0",
        ) as client,
    ):
        yield client


@pytest.mark.parametrize(
    ("data", "near"),
    [
        ((X, Y), True), ((X, None), True), ((pd.DataFrame(X), pd.Series(Y)), True),
        ((sp.csr_array(X), Y.tolist()), True), ((["some", "texts"], ["a", "b"]), True),
        ((), False), ((None,), False), ((MANY, Y), False), ((X.tolist(), Y), False),
        ((da.from_array(X), Y), False), ((X, da.from_array(Y)), False),
        ((["long" * int(NEAR)], [1]), False), ((object(),), False),
        ((pd.DataFrame({"text": TEXTS}), Y), False),
        ((np.array(TEXTS, dtype=object), Y), False), ((pd.Series(TEXTS), Y), False),
        ((pd.DataFrame({"text": TEXTS[:50]}), Y), True),
    ],
)  # fmt: skip
def test_what_is_here_and_little_is_near(data: Any, near: bool) -> None:
    with dask.config.set({"mlopt.plan": "where it pays"}):
        assert are_near(data) == near
    with dask.config.set({"mlopt.plan": "always"}):
        assert not are_near(data)


def test_an_active_client_is_left_alone_for_it(client: distributed.Client) -> None:
    assert isinstance(executor(rows=(X, Y)), Threads)
    assert isinstance(executor(rows=(MANY, Y)), Cluster)
    assert isinstance(executor(rows=(da.from_array(X),)), Cluster)
    assert isinstance(executor(), Cluster)
    assert isinstance(executor(client, rows=(X, Y)), Cluster)


def test_who_drives_a_job_has_one_thread_for_it(client: distributed.Client) -> None:
    with driving(client):
        here = executor(rows=(X, Y))
        assert isinstance(here, Threads)
        assert here.threads == 1
        far = executor(rows=(MANY, Y))
        assert isinstance(far, Cluster)
        beside = threads_beside(far, None, None, (X, Y))
        assert beside is not None
        assert beside.threads == 1
        assert threads_beside(far, client, None, (X, Y)) is None


FEW = da.from_array(X)
PLAIN = pd.DataFrame(X, columns=[*"abcd"]).assign(y=Y)
FRAME = dd.from_pandas(PLAIN, npartitions=3)
HALF = da.from_array(np.broadcast_to(0.0, (int(NEAR / 12), 1)))


@pytest.mark.parametrize(
    ("data", "near"),
    [
        ((FEW, None), True), ((FEW, Y), True), ((FEW, da.from_array(Y)), True),
        ((HALF, None), True), ((HALF, HALF[:, 0]), False), ((X, None), False),
        ((da.from_array(MANY), None), False), ((FEW[:, 0], None), False),
        ((FEW[da.from_array(Y) > 0], None), False), ((FEW.astype(object), None), False),
        ((FEW.map_blocks(sp.csr_array, meta=sp.csr_array((0, 4))), None), False),
        ((FEW, FEW[FEW[:, 0] > 0, 0]), False),
        ((FRAME[["a", "b"]], FRAME["y"]), True), ((FRAME.drop(columns="y"), Y), True),
        ((FRAME.assign(c=1), None), False), ((FRAME, FRAME["y"] + 1), False),
        ((dd.from_pandas(pd.DataFrame(MANY), npartitions=2), None), False),
        ((dd.from_dask_array(FEW), None), False),
    ],
)  # fmt: skip
def test_what_dask_tells_to_be_little_would_be_near(data: Any, near: bool) -> None:
    with dask.config.set({"mlopt.plan": "where it pays"}):
        assert would_be_near(*data) == near
    with dask.config.set({"mlopt.plan": "always"}):
        assert not would_be_near(*data)


def test_what_does_not_come_is_not_computed(
    client: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    del client
    asked: list[Any] = []

    def noted(*data: Any) -> list[Any]:
        asked.extend(data)
        return collected_together(*data)

    monkeypatch.setattr(arriving, "collected_together", noted)
    heavy = mlopt.make_pipeline(StandardScaler(), RandomForestClassifier(2))
    assert heavy._brought(FEW, Y) == (FEW, Y, ())
    assert not asked
    light = mlopt.make_pipeline(StandardScaler(), LogisticRegression())
    found, _, told = light._brought(FEW, Y)
    np.testing.assert_array_equal(found, X)
    assert len(asked) == 2
    assert told


def test_frames_that_workers_hold_come_if_they_are_few(client: distributed.Client) -> None:
    held = FRAME.persist()
    distributed.wait(held)
    assert would_be_near(held[["a", "b"]], held["y"])
    assert not would_be_near(held[["a", "b"]] * 2, held["y"])
    light = mlopt.make_pipeline(StandardScaler(), LogisticRegression())
    for frame in (held, FRAME):
        found, y, told = light._brought(frame[["a", "b"]], frame["y"])
        pd.testing.assert_frame_equal(found, PLAIN[["a", "b"]])
        pd.testing.assert_series_equal(y, PLAIN["y"])
        assert told
        heavy = mlopt.make_pipeline(StandardScaler(), RandomForestClassifier(2))
        assert heavy._brought(frame, Y) == (frame, Y, ())


def test_frames_still_computed_or_lost_tell_no_size(client: distributed.Client) -> None:
    go = distributed.Event("go")

    def waiting(part: pd.DataFrame) -> pd.DataFrame:
        distributed.Event("go").wait()
        return part

    held = FRAME.map_partitions(waiting, meta=PLAIN.iloc[:0]).persist()
    assert not would_be_near(held[["a"]], held["y"])
    go.set()
    distributed.wait(held)
    assert would_be_near(held[["a"]], held["y"])
    # Dask's configuration is that of an open client if the active one is closed by hand.
    with distributed.Client(client.scheduler.address, set_as_default=False) as other:
        held = other.persist(FRAME)
        distributed.wait(held)
        assert would_be_near(held[["a"]], held["y"])
    assert not would_be_near(held[["a"]], held["y"])


@pytest.mark.parametrize("model", [
    mlopt.LogisticRegression(), mlopt.PCA(2),
    mlopt.make_pipeline(StandardScaler(), LogisticRegression()),
    mlopt.ModelSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2, sampler="grid"),
    mlopt.ModelSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression()), {"C": [0.1, 1.0]}, cv=2,
        sampler="grid",
    ),
], ids=str)  # fmt: skip
def test_fits_of_few_rows_ask_no_worker(
    client: distributed.Client, monkeypatch: pytest.MonkeyPatch, model: Any
) -> None:
    del client
    monkeypatch.setattr(Cluster, "__init__", None)
    model.fit(X, Y)
    assert "cluster" not in str(model.plan_)


@pytest.mark.parametrize("last", [RandomForestClassifier(2), KNeighborsClassifier()])
def test_steps_of_unknown_work_go_to_workers(
    client: distributed.Client, monkeypatch: pytest.MonkeyPatch, last: Any
) -> None:
    del client
    asked, begin = [], Cluster.__init__

    def noted(self: Cluster, *given: Any, **settings: Any) -> None:
        asked.append(self)
        begin(self, *given, **settings)

    monkeypatch.setattr(Cluster, "__init__", noted)
    mlopt.make_pipeline(StandardScaler(), last).fit(X, Y)
    assert asked


def test_trials_of_other_models_go_to_workers(client: distributed.Client) -> None:
    del client
    search = mlopt.ModelSearchCV(
        DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2, sampler="grid"
    )
    assert "on the cluster" in str(search.fit(X, Y).plan_)


def test_few_rows_of_frames_come_to_searches_whatever_is_before_the_models(
    client: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    del client
    monkeypatch.setattr(Cluster, "reduce", None)  # a pass over rows
    columns = ColumnTransformer([("a", StandardScaler(), ["a"])], remainder="passthrough")
    search = mlopt.ModelSearchCV(
        make_pipeline(columns, LogisticRegression()),
        {"C": [0.1, 1.0]},
        cv=2,
        sampler="grid",
    )
    plan = str(search.fit(FRAME[[*"abcd"]], FRAME["y"]).plan_)
    assert "all rows come from the workers to this process" in plan


class OfAnother(StandardScaler):
    """A step that nobody has declared: it may take any time."""


def test_behind_steps_of_unknown_work_scans_of_few_rows_ask_no_worker(
    client: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = mlopt.ModelSearchCV(
        make_pipeline(OfAnother(), LogisticRegression()), {"C": [0.1, 1.0, 10.0]}, cv=2,
        sampler="grid",
    )  # fmt: skip
    line = "scans of few rows behind preprocessing run in this process"
    with monkeypatch.context() as patch:
        patch.setattr(Cluster, "reduce", None)  # a pass over rows
        near = search.fit(X, Y)
        assert line in str(near.plan_)
        scores, coef = near.cv_results_["mean_test_score"], near.best_estimator_[-1].coef_
    search.set_params(client=client).fit(X, Y)
    assert line not in str(search.plan_)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], scores)
    np.testing.assert_allclose(search.best_estimator_[-1].coef_, coef, rtol=1e-3)
