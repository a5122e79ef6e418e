"""On worker processes an algorithm gives what it gives here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.gd.operators.cases import problem

from mlopt.cluster import Cluster, Threads
from mlopt.cluster.connect import connect
from mlopt.errors import TaskError
from mlopt.gd.operators import Algorithm, Batch, Context, MatrixSource, Settings, plan_row
from mlopt.rows import Rows

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

X, Y = problem(3000)


@pytest.fixture(scope="module")
def workers(shared_workers: str) -> Iterator[Cluster]:
    with connect(shared_workers) as client:
        yield Cluster(client)


@pytest.mark.parametrize(
    "name", ["bgd/eager", "mgd/lazy/shuffled-partition", "line-search/eager"]
)
def test_weights_agree_to_the_last_bit(workers: Cluster, name: str) -> None:
    algorithm = plan_row(name).build(Settings(max_iter=6, tolerance=0, batch=100))
    here = algorithm.run(MatrixSource(Rows.of(X, executor=Threads(1), block_rows=700), Y))
    there = algorithm.run(MatrixSource(Rows.of(X, executor=workers, block_rows=700), Y))
    np.testing.assert_array_equal(here.weights, there.weights)


def test_users_operators_travel_and_are_named_when_they_raise(workers: Cluster) -> None:
    def compute(batch: Batch, context: Context) -> Any:
        return batch.X.T @ (batch.X @ context["weights"] - batch.y)

    def broken(batch: Batch) -> Any:
        raise KeyError("mine")

    rows = MatrixSource(Rows.of(X, executor=workers, block_rows=700), Y)
    assert Algorithm(compute=compute, max_iter=3).run(rows).n_iter == 3
    with pytest.raises(TaskError, match="operator `compute` raised KeyError"):
        Algorithm(compute=broken).run(rows)
