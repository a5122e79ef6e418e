"""Estimators on worker processes: the same numbers as in this process, to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

import mlopt
from mlopt.cluster.connect import connect

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

X, Y = make_classification(6000, 12, n_informative=6, n_classes=3, random_state=0)
WEIGHTS = np.random.default_rng(0).random(6000)
ESTIMATORS = [
    mlopt.LinearRegression(),
    mlopt.Ridge(solver="svd"),
    mlopt.Ridge(solver="sparse_cg", tol=1e-10),
    mlopt.Ridge(solver="sketched_cg"),
    mlopt.Ridge(solver="mixed_cholesky"),
    # "auto" may choose another solver on workers, where tasks cost more
    mlopt.LogisticRegression(tol=1e-9, max_iter=1000, solver="lbfgs"),
    mlopt.LinearSVC(tol=1e-10, max_iter=10_000),
    mlopt.LinearSVC(loss="hinge", C=1e-4, random_state=0),
]


def fitted(estimator: Any, X: Any) -> Any:
    return clone(estimator).fit(X, Y, sample_weight=WEIGHTS)


@pytest.fixture(scope="module")
def here() -> list[Any]:
    """Every estimator, fitted while there is no client."""
    return [fitted(estimator, X) for estimator in ESTIMATORS]


@pytest.fixture(scope="module")
def workers(here: list[Any], shared_workers: str) -> Iterator[None]:
    del here  # only its order matters: before there is a client
    with connect(shared_workers):
        yield


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("number", range(len(ESTIMATORS)))
def test_workers_find_what_threads_find(number: int, here: list[Any]) -> None:
    there = fitted(ESTIMATORS[number], X)
    same = chosen(there) == chosen(here[number])
    assert same or number == 6  # which has no name for its solver
    near: Any = {"rtol": 0.0, "atol": 0.0 if same else 1e-6}
    np.testing.assert_allclose(there.coef_, here[number].coef_, **near)
    np.testing.assert_allclose(there.intercept_, here[number].intercept_, **near)


def chosen(model: Any) -> str:
    return str(model.plan_.choices[0].chosen)


@pytest.mark.usefixtures("workers")
def test_dask_arrays_are_fitted_and_predicted_where_they_are(here: list[Any]) -> None:
    lazy = da.from_array(X, chunks=(1000, 12))
    there = fitted(ESTIMATORS[6], lazy)
    np.testing.assert_allclose(there.coef_, here[6].coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(there.predict(lazy).compute(), there.predict(X))
