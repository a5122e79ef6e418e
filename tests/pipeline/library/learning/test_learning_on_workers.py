"""Learning by blocks on worker processes: the same model as in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask.array as da
import numpy as np
import pytest

import mlopt
from mlopt.cluster.connect import connect
from mlopt.pipeline.library.learning import (
    BlockLeastSquares,
    KernelRidge,
    PerClassWeightedLeastSquares,
)

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(800, 6))
Y = np.sin(X[:, :2])
FEATURES = mlopt.RandomFeatures(70, gamma=0.1, random_state=0)
CASES = [
    (BlockLeastSquares(features=FEATURES, block_size=32, memory_budget="1GiB"), Y),
    (BlockLeastSquares(features=FEATURES, block_size=32, memory_budget=0), Y),
    (PerClassWeightedLeastSquares(features=FEATURES, block_size=32), Y[:, 0] > 0),
    (KernelRidge(0.5, gamma=0.2, block_size=300, tol=1e-6), Y),
]


def fitted(model: Any, y: Any) -> Any:
    return model.fit(da.from_array(X, chunks=(250, 6)), y)


@pytest.fixture(scope="module")
def here() -> list[Any]:
    """Predictions of every case, fitted while there is no client."""
    return [fitted(*case).predict(X) for case in CASES]


@pytest.fixture(scope="module")
def client(here: list[Any], shared_workers: str) -> Iterator[Any]:
    """Two workers; ``here`` is there before."""
    with connect(shared_workers) as started:
        yield started


@pytest.mark.parametrize("number", range(len(CASES)))
def test_workers_learn_the_same(client: Any, here: list[Any], number: int) -> None:
    there = fitted(*CASES[number]).predict(X)
    np.testing.assert_allclose(
        np.asarray(there, float), np.asarray(here[number], float), atol=1e-9
    )
