"""On worker processes the trainings give what they give here."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.gd.problems import binary, folds

from mlopt.cluster import Cluster, Threads
from mlopt.cluster.connect import connect
from mlopt.gd.columns import Model
from mlopt.gd.linear_training import LinearTraining
from mlopt.gd.lockstep import LockstepSGD, Schedule
from mlopt.gd.quasi_newton import QuasiNewton
from mlopt.rows import Rows

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

X, Y = binary(12_000)
C = folds(12_000)
MODELS = [Model("logistic", l2, rowset=k) for l2 in (1e-5, 1e-2) for k in range(3)]


@pytest.fixture(scope="module")
def workers(shared_workers: str) -> Iterator[Cluster]:
    with connect(shared_workers) as client:
        yield Cluster(client)


def rows_on(where: Cluster | Threads) -> Rows:
    rows = Rows.of(X / X.std(axis=0).clip(0.1), executor=where)
    return rows.attach(targets=Y[:, None], weights=C, score_weights=1 - C)


def assert_same(here: LinearTraining, there: LinearTraining) -> None:
    here.advance(4)
    there.advance(4)
    np.testing.assert_array_equal(here.quality(), there.quality())
    for number in range(len(MODELS)):
        np.testing.assert_array_equal(
            here.coefficients(number)[0], there.coefficients(number)[0]
        )


def test_full_passes_are_the_same_to_the_last_bit(workers: Cluster) -> None:
    here, there = rows_on(Threads(2)), rows_on(workers)
    assert_same(QuasiNewton(here, MODELS, tol=1e-9), QuasiNewton(there, MODELS, tol=1e-9))


def test_sgd_over_blocks_of_workers_learns_as_much(workers: Cluster) -> None:
    models = MODELS[3:]
    schedules = [Schedule("invscaling", 0.01)] * len(models)
    here = LockstepSGD(rows_on(Threads(2)), models, schedules)
    there = LockstepSGD(rows_on(workers), models, schedules)
    for training in (here, there):
        training.advance(10)
    np.testing.assert_allclose(there.quality(), here.quality(), atol=0.02)
