"""The same search on worker processes, and when one of them is killed in the middle."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import distributed
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.tuning.where import Told

import mlopt
from mlopt import events
from mlopt.cluster import local_cluster
from mlopt.errors import InputError

pytestmark = pytest.mark.cluster

Data = tuple[NDArray[np.float64], NDArray[np.int64]]


class Locked(StandardScaler):
    """A step that cannot be pickled."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


SEARCHES: dict[str, Any] = {
    "columns": (LogisticRegression(), {"C": loguniform(1e-3, 1e3)}),
    "epochs": (SGDClassifier(max_iter=12), {"alpha": loguniform(1e-6, 1e-1)}),
    "trees": (
        make_pipeline(StandardScaler(), DecisionTreeClassifier()),
        {"max_depth": range(2, 12)},
    ),
}


@pytest.fixture(scope="module")
def client() -> Iterator[distributed.Client]:
    with local_cluster(2, 1) as client:
        yield client


@pytest.fixture(scope="module")
def data() -> Data:
    X, y = make_classification(9000, 12, n_informative=8, random_state=0)
    return X, y


def run(name: str, data: Data, **settings: Any) -> mlopt.ModelSearchCV:
    estimator, space = SEARCHES[name]
    search = mlopt.ModelSearchCV(
        estimator, space, n_trials=8, cv=3, sampler="random",
        bandit="successive-halving", max_passes=12, **settings,
    )  # fmt: skip
    return search.fit(*data)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_cluster_gives_the_same_scores_as_this_process(
    name: str, data: Data, client: distributed.Client
) -> None:
    here = run(name, data, n_jobs=2).cv_results_
    there = run(name, data, client=client).cv_results_

    assert here["params"] == there["params"]
    np.testing.assert_array_equal(here["mean_test_score"], there["mean_test_score"])
    assert here["state"].tolist() == there["state"].tolist()


@pytest.mark.parametrize("steps", [[], [StandardScaler()]])
def test_few_rows_of_a_dask_array_come_and_are_searched_as_in_memory(
    steps: list[Any], data: Data, client: distributed.Client
) -> None:
    X, y = data
    lazy = da.from_array(X, chunks=(2000, 12)), da.from_array(y, chunks=2000)
    model = make_pipeline(*steps, LogisticRegression())
    space = {"logisticregression__C": [0.01, 0.1, 1.0, 10.0]}

    def found(*given: Any) -> mlopt.ModelSearchCV:
        return mlopt.ModelSearchCV(model, space, sampler="grid", cv=3).fit(*given)

    with dask.config.set({"mlopt.plan": "where it pays"}), client.as_current():
        there, here = found(*[one.persist() for one in lazy]), found(X, y)
    told = "all rows come from the workers to this process"
    assert told in there.plan_.explain()
    assert told not in here.plan_.explain()
    scores = (one.cv_results_["mean_test_score"] for one in (there, here))
    np.testing.assert_array_equal(*scores)
    assert there.predict(lazy[0]).compute().shape == y.shape


@pytest.mark.parametrize("name", SEARCHES)
def test_a_killed_worker_does_not_change_the_scores(
    name: str, data: Data, client: distributed.Client
) -> None:
    workers = client.run(os.getpid)
    killed: list[int] = []

    def kill_once(event: events.Event) -> None:
        if isinstance(event, events.TrialScored) and not killed:
            killed.append(next(iter(workers.values())))
            os.kill(killed[0], signal.SIGKILL)

    calm = run(name, data, n_jobs=1).cv_results_
    stormy = run(name, data, client=client, observer=kill_once).cv_results_

    assert killed
    np.testing.assert_array_equal(calm["mean_test_score"], stormy["mean_test_score"])


def test_dask_arrays_are_searched_where_they_are(
    data: Data, client: distributed.Client
) -> None:
    import dask.array as da

    X, y = data
    dX, dy = da.from_array(X, chunks=(1500, 12)), da.from_array(y, chunks=2000)
    there = run("columns", (dX, dy), client=client)
    here = run("columns", data)

    np.testing.assert_allclose(
        there.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"], atol=2e-3
    )
    assert there.best_estimator_.coef_.shape == (1, 12)


@pytest.mark.parametrize("tol", [1e-6, 1e-9])  # by few rows, and by all of them
def test_paths_of_l1_penalties_are_the_same_on_workers(
    client: distributed.Client, tol: float
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    y = X[:, 0] - 2.0 * X[:, 1] + rng.normal(size=300)

    def scores(rows: Any, **where: Any) -> Any:
        search = mlopt.ModelSearchCV(
            mlopt.Lasso(tol=tol), {"alpha": [0.01, 0.1, 1.0]}, sampler="grid", bandit=None,
            n_trials=None, cv=3, refit=False, **where,
        )  # fmt: skip
        return search.fit(rows, y).cv_results_["mean_test_score"]

    here = scores(X, n_jobs=2)
    np.testing.assert_allclose(scores(X, client=client), here, atol=1e-9)
    lazy = da.from_array(X, chunks=(100, 8))
    np.testing.assert_allclose(scores(lazy, client=client), here, atol=1e-9)


def test_rows_behind_a_pipeline_are_searched_on_workers_and_never_sent_here(
    client: distributed.Client, data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dask.dataframe as dd
    import pandas as pd
    from dask.sizeof import sizeof

    X, y = data
    frame = pd.DataFrame(np.tile(X, (6, 1)), columns=[f"x{i}" for i in range(X.shape[1])])
    labels = pd.Series(np.tile(y, 6))
    model = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-9, max_iter=999))
    search = mlopt.ModelSearchCV(
        model, {"C": [0.01, 1.0]}, n_trials=2, sampler="grid", bandit=None, cv=3
    )
    received: list[int] = []
    gather = distributed.Client._gather

    async def counted(self: distributed.Client, *args: Any, **settings: Any) -> Any:
        found = await gather(self, *args, **settings)
        received.append(sizeof(found))
        return found

    here = search.fit(frame, labels)
    scores, weights = here.cv_results_["mean_test_score"], here.best_estimator_[-1].coef_
    monkeypatch.setattr(distributed.Client, "_gather", counted)
    there = search.fit(
        dd.from_pandas(frame, npartitions=12), dd.from_pandas(labels, npartitions=12)
    )
    assert there.cv_results_["mean_test_score"] == pytest.approx(scores, abs=1e-7)
    assert there.best_estimator_[-1].coef_ == pytest.approx(weights, abs=1e-6)
    drawn = 4 * 500 * 12 * 12 * 8  # a sample of each training: 500 rows a column
    assert sum(received) < labels.nbytes + drawn + 1_000_000 < frame.memory_usage().sum()


def test_no_fit_of_the_search_runs_in_the_driver(
    client: distributed.Client, data: Data, tmp_path: Path
) -> None:
    """Not those to samples either: one that kills its process must not kill this one."""
    told, space = Told(folder=str(tmp_path)), {"max_depth": range(2, 12)}
    search = mlopt.ModelSearchCV(
        told, space, n_trials=6, cv=3, sampler="random", refit=False, client=client
    ).fit(*data)
    fitted = {path.name for path in tmp_path.iterdir()}
    assert "fits to" in str(search.plan_)
    assert fitted
    assert str(os.getpid()) not in fitted


def test_a_step_that_cannot_be_pickled_is_named_before_anything_runs(
    client: distributed.Client, data: Data
) -> None:
    steps = make_pipeline(StandardScaler(), Locked(), LogisticRegression())
    pair = (steps, {"C": [1.0, 2.0]})
    for given, step in ((pair, "Pipeline/locked"), (({"a": pair},), "a/locked")):
        search = mlopt.ModelSearchCV(*given, n_trials=2)
        with pytest.raises(InputError, match=f"Step `{step}` cannot go to workers"):
            search.fit(*data)
