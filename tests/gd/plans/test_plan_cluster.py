"""Plans on worker processes: the same coefficients, also when a worker is killed."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import distributed
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_classification

import mlopt
from mlopt.cluster import Threads, local_cluster
from mlopt.cluster import executor as executor_for
from mlopt.cluster.workers import Cluster
from mlopt.gd.plans import running
from mlopt.rows import Rows

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

Array = NDArray[Any]
X, Y = make_classification(20_000, 15, n_informative=8, random_state=0)
TASKS = {
    "logistic": (mlopt.gd.Task("logistic", l2=1e-3), Y),
    "multinomial": (mlopt.gd.Task("multinomial", l2=1e-3), Y + 2 * (X[:, 0] > 0)),
    "squared": (mlopt.gd.Task("squared", l2=1e-3), X[:, 1] + X[:, 2] ** 2),
}
METHODS = [
    "lbfgs", "newton-cholesky", "newton-cg", "cholesky", "svd", "sparse_cg",
    "barzilai-borwein/eager",
]  # fmt: skip


@pytest.fixture(scope="module")
def client() -> Iterator[distributed.Client]:
    with local_cluster(2, 1) as client:
        yield client


@pytest.mark.parametrize("name", TASKS)
def test_coefficients_are_the_same_here_there_and_from_dask(
    name: str, client: distributed.Client
) -> None:
    task, y = TASKS[name]
    settings: dict[str, Any] = {"tolerance": 1e-8}
    here = mlopt.gd.plan(task, X, y, n_jobs=2, **settings).run()
    there = mlopt.gd.plan(task, X, y, client=client, **settings).run()
    dX, dy = da.from_array(X, chunks=(3000, 15)), da.from_array(y, chunks=3000)
    lazy = mlopt.gd.plan(task, dX, dy, client=client, **settings).run()
    for found in (there, lazy):
        assert found.converged
        assert found.objective == pytest.approx(here.objective, rel=1e-7)
        np.testing.assert_allclose(found.coef, here.coef, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_plan_runs_on_workers(
    method: str, client: distributed.Client
) -> None:
    task, y = TASKS["squared"]
    if method.startswith("newton"):
        task, y = TASKS["logistic"]
    found = mlopt.gd.plan(task, X, y, tolerance=1e-2, methods=[method], client=client)
    result = found.run()
    here = mlopt.gd.plan(task, X, y, tolerance=1e-6, n_jobs=2).run()
    assert result.converged, result.message
    assert result.objective <= here.objective * 1.02


def test_samples_are_drawn_from_rows_on_workers(client: distributed.Client) -> None:
    task, y = TASKS["squared"]
    methods = ["mgd/lazy/shuffled-partition"]
    found = mlopt.gd.plan(task, X, y, tolerance=1e-3, methods=methods, client=client)
    result = found.chosen.run(max_iter=25)
    assert result.n_iter == 25
    assert result.objective < 0.5 * np.mean(y**2) / 2


@pytest.mark.parametrize("method", ["dual-logistic", "lbfgs"])
def test_who_brought_the_rows_here_asks_no_worker_any_more(
    method: str, client: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, y = TASKS["logistic"]
    settings: dict[str, Any] = {"tolerance": 1e-8, "methods": [method]}
    here = mlopt.gd.plan(task, X, y, n_jobs=1, **settings).run()
    with dask.config.set({"mlopt.plan": "where it pays"}):
        found = mlopt.gd.plan(task, X, y, client=client, **settings)
    assert "come from the workers to this process" in found.explain()
    assert found.chosen.posed is found.chosen.posed
    assert len(pickle.dumps(found.ranker.problem)) < X.nbytes / 10
    for name in ("results", "submit"):
        monkeypatch.setattr(Cluster, name, None)
    there = found.run()
    assert there.converged
    assert there.objective == pytest.approx(here.objective, rel=1e-7)


@pytest.mark.parametrize("kind", [mlopt.Ridge, mlopt.LogisticRegression, mlopt.LinearSVC])
def test_few_rows_of_workers_are_fitted_as_those_in_memory(
    kind: Any, client: distributed.Client
) -> None:
    few, y = X[:2000], Y[:2000]
    lazy = da.from_array(few, chunks=(500, 15)), da.from_array(y, chunks=500)
    with dask.config.set({"mlopt.plan": "where it pays"}), client.as_current():
        here, found = kind().fit(few, y), kind().fit(*lazy)
    told = found.plan_.explain()
    assert "come from the workers to this process" in told
    assert "read in" in told
    np.testing.assert_allclose(found.coef_, here.coef_, rtol=1e-2, atol=1e-3)
    if kind is mlopt.Ridge:  # others have methods that need the rows in one piece
        stayed = kind().fit(*lazy)
        assert "come from the workers" not in stayed.plan_.explain()


def test_rows_that_are_placed_already_stay(client: distributed.Client) -> None:
    with dask.config.set({"mlopt.plan": "where it pays"}), client.as_current():
        here = Rows.of(X, executor=Threads(1))
        there = Rows.of(X, executor=executor_for(client))
        for rows in (here, there):
            told = mlopt.LogisticRegression(max_iter=1000).fit(rows, Y).plan_.explain()
            assert "read in" not in told
        assert "come from the workers" not in mlopt.Ridge().fit(here, Y).plan_.explain()
        assert "come from the workers" not in mlopt.Ridge().fit(there, Y).plan_.explain()
        found = mlopt.gd.plan(TASKS["logistic"][0], here, Y, speculation=False)
        assert not found.chosen.brings
    found = mlopt.gd.plan(TASKS["logistic"][0], there, Y, speculation=False)
    assert found.ranker.resources.remote


@pytest.mark.parametrize("method", METHODS[:-1])
def test_a_price_counts_what_workers_are_asked(
    method: str, client: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, y = TASKS["logistic" if method.startswith("newton") else "squared"]
    found = mlopt.gd.plan(task, X, y, tolerance=1e-6, methods=[method], client=client)
    asked, answers = [0], Cluster.results

    def counted(self: Cluster, handles: Any) -> list[Any]:
        asked[0] += 1
        return answers(self, handles)

    monkeypatch.setattr(Cluster, "results", counted)
    result = found.run()
    ((where, price),) = found.ranker.usable(found.chosen.method)
    trips = price(result.n_iter).round_trips
    # Sums, and the proof: targets, margins, sums of slopes, sums of weights.
    assert 0.6 < asked[0] / (trips + 5) < 1.6
    assert not where.brings


@pytest.mark.parametrize("method", ["lbfgs", "sparse_cg", "barzilai-borwein/eager"])
def test_a_killed_worker_does_not_change_the_coefficients(
    method: str, client: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, y = TASKS["squared"]
    calm = mlopt.gd.plan(
        task, X, y, tolerance=1e-6, methods=[method], client=client
    ).run()  # fmt: skip
    workers, killed = list(client.run(os.getpid).values()), list[int]()
    ended = running.Race._ended

    def kill_once(race: running.Race) -> bool:
        if race.training.passes >= 1 and not killed:
            killed.append(workers[0])
            os.kill(workers[0], signal.SIGKILL)
        return ended(race)

    monkeypatch.setattr(running.Race, "_ended", kill_once)
    stormy = mlopt.gd.plan(
        task, X, y, tolerance=1e-6, methods=[method], client=client
    ).run()  # fmt: skip
    assert killed
    assert stormy.converged
    np.testing.assert_allclose(stormy.coef, calm.coef, rtol=1e-6, atol=1e-9)
