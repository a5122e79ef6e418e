"""Rows in memory do not depend on a client that has nothing to do with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from distributed import Client
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import mlopt

pytestmark = pytest.mark.cluster

X = np.random.default_rng(0).normal(size=(30_000, 60))
Y = (X[:, 0] > 0).astype(int)


def _predicted() -> Any:
    pipe = mlopt.make_pipeline(StandardScaler(), LogisticRegression())
    return pipe.fit(X[:900], Y[:900]).predict(np.tile(X, (2, 1)))


def _searched() -> Any:
    search = mlopt.ModelSearchCV(
        LogisticRegression(), {"C": [0.1]}, sampler="grid", cv=2, random_state=0
    )
    return search.fit(X[:400], Y[:400]).best_score_


@pytest.mark.parametrize(
    "work",
    [
        _predicted,
        _searched,
        lambda: mlopt.Ridge().fit(X, Y).coef_,
        lambda: mlopt.RandomFeatures(5, random_state=0).fit(X).transform(X),
    ],
    ids=["predict", "search", "fit", "transform"],
)
def test_an_active_client_that_is_asynchronous_is_left_alone(
    work: Callable[[], Any], shared_workers: str
) -> None:
    expected = work()

    async def beside() -> Any:
        async with Client(shared_workers, asynchronous=True):
            return work()

    np.testing.assert_allclose(asyncio.run(beside()), expected)
