"""Plans on worker processes: the same coefficients, also when a worker is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import dask.array as da
import distributed
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_classification

import mlopt
from mlopt.cluster import Threads, local_cluster
from mlopt.cluster import executor as executor_for
from mlopt.gd.plans import running
from mlopt.gd.plans.dual_logistic import DualLogistic
from mlopt.gd.plans.stop import RelativeGap
from mlopt.gd.plans.task import problem_of

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


def test_who_brought_the_rows_here_asks_no_worker_any_more(
    client: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, y = TASKS["logistic"]
    there, here = executor_for(client), Threads(1)
    stop = RelativeGap(1e-9)
    far, near = (
        DualLogistic(problem_of(task, X, y, where), stop, 50) for where in (there, here)
    )
    for name in ("map", "reduce", "submit"):
        monkeypatch.setattr(there, name, None)
    far.advance(3)
    near.advance(3)
    np.testing.assert_allclose(far.quality(), near.quality(), rtol=1e-9)


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
