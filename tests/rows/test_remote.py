"""Dask collections of what workers hold, where this process or another client computes."""

from __future__ import annotations

from collections.abc import Iterator

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.cluster import Threads
from mlopt.pipeline.blocks.cut import cut
from mlopt.pipeline.running.rows_of import rows_of
from mlopt.rows import Rows

pytestmark = pytest.mark.cluster

X = np.random.default_rng(0).normal(size=(400, 3))
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(w=1.0 + Y)


@pytest.fixture
def client(shared_workers: str) -> Iterator[Client]:
    with Client(shared_workers, set_as_default=False) as client:
        yield client


@pytest.fixture
def threads() -> Iterator[Threads]:
    threads = Threads(2)
    yield threads
    threads.close()


@pytest.mark.parametrize("weight", ["array", "cut anew", "column"])
def test_weights_that_workers_hold_come_to_rows_that_are_here(
    client: Client, weight: str
) -> None:
    kinds = {
        "array": da.from_array(FRAME.w.to_numpy(), chunks=100),
        "cut anew": da.from_array(FRAME.w.to_numpy(), chunks=90),
        "column": dd.from_pandas(FRAME, npartitions=3),
    }
    held = client.persist(kinds[weight])
    given = {"logisticregression__sample_weight": held["w"] if weight == "column" else held}
    with client.as_current():
        steps = StandardScaler(), LogisticRegression(tol=1e-8)
        fitted = mlopt.make_pipeline(*steps).fit(X, Y, **given)
        peer = make_pipeline(*steps).fit(X, Y, logisticregression__sample_weight=FRAME.w)
    np.testing.assert_allclose(fitted[-1].coef_, peer[-1].coef_, rtol=1e-3)


@pytest.mark.parametrize("preprocessed", [False, True])
def test_a_search_takes_what_its_client_holds_though_it_is_not_the_active_one(
    client: Client, preprocessed: bool
) -> None:
    rows, targets = client.persist([da.from_array(X, (100, 3)), da.from_array(Y, 80)])
    last, path = LogisticRegression(), "logisticregression__" if preprocessed else ""
    search = mlopt.ModelSearchCV(
        make_pipeline(StandardScaler(), last) if preprocessed else last,
        {f"{path}C": [1.0]}, sampler="grid", cv=2, random_state=0, client=client,
    )  # fmt: skip
    assert search.fit(rows, targets).best_score_ > 0.95


@pytest.mark.parametrize("chunks", [(100, 3), (100, 2)])
def test_threads_read_what_workers_hold(
    client: Client, threads: Threads, chunks: tuple[int, int]
) -> None:
    held = client.persist(da.from_array(X, chunks))
    assert np.array_equal(Rows.of(held, executor=threads).collect(), X)
    blocks = cut(held + 0.0, threads)
    again = rows_of(dict(blocks.tasks), [*blocks.keys], threads, kept=False)
    assert np.array_equal(again.collect(), X)
