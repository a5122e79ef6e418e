"""Dask collections are fitted and predicted whatever their graphs are made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.cluster.connect import connect

DRAW = np.random.default_rng(0)
COLUMNS = ["a", "b", "c"]
FRAME = pd.DataFrame(DRAW.normal(size=(60, 3)), columns=COLUMNS).assign(
    y=lambda d: (d.a > 0).astype(int), k=DRAW.permutation(60), w=1.0
)


def steps() -> tuple[Any, ...]:
    return StandardScaler(), LogisticRegression(tol=1e-8)


def check(X: Any, y: Any, expected: pd.DataFrame) -> None:
    """Fitted and applied as in memory; the order of rows may be another."""
    fitted = mlopt.make_pipeline(*steps()).fit(X, y)
    peer = make_pipeline(*steps()).fit(expected[COLUMNS], expected["y"])
    np.testing.assert_allclose(fitted[-1].coef_, peer[-1].coef_, rtol=1e-3)
    assert sorted(fitted.predict(X).compute()) == sorted(peer.predict(expected[COLUMNS]))


@pytest.mark.parametrize(
    "made",
    [
        lambda frame: frame.repartition(npartitions=2),
        lambda frame: frame.head(30, npartitions=-1, compute=False),
        lambda frame: frame.set_index("k"),
        lambda frame: frame.sort_values("a"),
        lambda frame: frame.drop_duplicates(),
        lambda frame: frame.shuffle("k", shuffle_method="tasks"),
    ],
    ids=["repartition", "head", "set_index", "sort_values", "drop_duplicates", "shuffle"],
)
def test_frames_whose_tasks_are_tuples_are_fitted_and_predicted(
    made: Callable[[Any], Any],
) -> None:
    frame = made(dd.from_pandas(FRAME, npartitions=3))
    check(frame[COLUMNS], frame["y"], frame.compute())


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask
def test_columns_of_a_data_set_may_be_read_in_fewer_parts_than_its_rows(
    tmp_path: Path,
) -> None:
    dd.from_pandas(FRAME, npartitions=4).to_parquet(tmp_path)
    frame = dd.read_parquet(tmp_path)
    X, y = frame[COLUMNS], frame["y"]
    assert y.optimize().npartitions < X.optimize().npartitions
    check(X, y, FRAME)
    weighted = mlopt.make_pipeline(*steps())
    weighted.fit(X, FRAME.y, logisticregression__sample_weight=frame["w"])
    assert weighted.score(X, y) > 0.9


@pytest.mark.cluster
@pytest.mark.parametrize("budget", ["auto", 0])
def test_frames_behind_a_shuffle_on_workers_are_fitted_and_predicted(
    shared_workers: str, budget: Any
) -> None:
    with connect(shared_workers):
        frame = dd.from_pandas(FRAME, npartitions=3).shuffle("k", shuffle_method="p2p")
        X, y = frame[COLUMNS], frame["y"]
        fitted = mlopt.make_pipeline(*steps(), memory_budget=budget).fit(X, y)
        peer = make_pipeline(*steps()).fit(FRAME[COLUMNS], FRAME.y)
        np.testing.assert_allclose(fitted[-1].coef_, peer[-1].coef_, rtol=1e-3)
        assert fitted.predict(X).compute().sum() == peer.predict(FRAME[COLUMNS]).sum()
