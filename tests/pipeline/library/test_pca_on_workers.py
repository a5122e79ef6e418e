"""PCA on worker processes: the same components as in this process, to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask.array as da
import numpy as np
import pytest
from scipy import sparse

from mlopt.cluster.connect import connect
from mlopt.pipeline.library.pca import PCA

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

_RANDOM = np.random.default_rng(0)
X = _RANDOM.normal(size=(6000, 20)) * 0.8 ** np.arange(20) + 10.0
SPARSE = sparse.random_array((6000, 50), density=0.05, format="csr", rng=_RANDOM)
CASES = [
    ("covariance_eigh", X),
    ("tsqr", X),
    ("randomized", X),
    ("full", X),
    ("covariance_eigh", SPARSE),
    ("randomized", SPARSE),
    ("arpack", SPARSE),
]


def fitted(solver: str, data: Any) -> PCA:
    return PCA(4, svd_solver=solver, random_state=0).fit(data)


@pytest.fixture(scope="module")
def here() -> list[PCA]:
    """Every case, fitted while there is no client."""
    return [fitted(*case) for case in CASES]


@pytest.fixture(scope="module")
def workers(here: list[PCA], shared_workers: str) -> Iterator[None]:
    del here  # only its order matters: before there is a client
    with connect(shared_workers):
        yield


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("number", range(len(CASES)))
def test_workers_find_what_threads_find(number: int, here: list[PCA]) -> None:
    there = fitted(*CASES[number])
    np.testing.assert_array_equal(there.components_, here[number].components_)
    np.testing.assert_array_equal(there.singular_values_, here[number].singular_values_)


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("solver", ["auto", "covariance_eigh", "tsqr", "randomized"])
def test_dask_arrays_are_fitted_where_they_are(solver: str, here: list[PCA]) -> None:
    lazy = da.from_array(X, chunks=(1000, 20))
    there = fitted(solver, lazy)
    np.testing.assert_allclose(there.components_, here[3].components_, atol=1e-5)
    np.testing.assert_allclose(there.transform(lazy).compute(), there.transform(X))
