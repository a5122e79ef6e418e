"""Columns taken from a Dask frame are all that a pipeline sees of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mlopt

N = 3000
COLUMNS = ["a", "b", "c"]


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=COLUMNS)
    frame["target"] = (frame["a"] + rng.normal(size=N) > 0).astype(int)
    return frame


@pytest.fixture(params=["from_pandas", "read_csv", "read_parquet", "computed"])
def frame(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "from_pandas":
        return dd.from_pandas(table(), npartitions=4)
    if request.param == "read_csv":
        table().to_csv(tmp_path / "rows.csv", index=False)
        return dd.read_csv(tmp_path / "rows.csv", blocksize="64kB")
    if request.param == "read_parquet":
        table().to_parquet(tmp_path / "rows.parquet")
        return dd.read_parquet(tmp_path / "rows.parquet")
    whole = dd.from_pandas(table(), npartitions=4)
    return whole.assign(b=whole["b"] * 2)


def taken(frame: Any, how: str) -> Any:
    return frame[COLUMNS] if how == "chosen" else frame.drop(columns="target")


@pytest.mark.parametrize("how", ["chosen", "dropped"])
@pytest.mark.parametrize("remember", [0, "1GiB"], ids=["forgets", "remembers"])
def test_a_pipeline_does_not_see_its_target(frame: Any, how: str, remember: Any) -> None:
    X, y = taken(frame, how), frame["target"]
    steps = StandardScaler(), LogisticRegression()
    with dask.config.set({"mlopt.reuse-models": remember}):
        found = mlopt.make_pipeline(*steps).fit(X, y)
    assert list(found[0].feature_names_in_) == COLUMNS
    expected = make_pipeline(*steps).fit(X.compute(), y.compute())
    np.testing.assert_allclose(found[1].coef_, expected[1].coef_, rtol=0.05)
    np.testing.assert_array_equal(found.predict(X).compute(), found.predict(X.compute()))


@pytest.mark.parametrize("how", ["chosen", "dropped"])
def test_an_estimator_does_not_see_its_target(frame: Any, how: str) -> None:
    found = mlopt.LogisticRegression().fit(taken(frame, how), frame["target"])
    assert list(found.feature_names_in_) == COLUMNS


def test_two_selections_of_one_frame_are_remembered_apart() -> None:
    frame = dd.from_pandas(table(), npartitions=4)
    with dask.config.set({"mlopt.reuse-models": "1GiB"}):
        one = mlopt.make_pipeline(StandardScaler()).fit(frame[["a", "b"]])
        other = mlopt.make_pipeline(StandardScaler()).fit(frame[["a", "c"]])
    assert (one[0].mean_ != other[0].mean_).any()
    assert list(other[0].feature_names_in_) == ["a", "c"]
