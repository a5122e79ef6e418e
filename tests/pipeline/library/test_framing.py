"""`set_output("pandas")` leaves Dask collections where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import mlopt

FRAME = pd.DataFrame(
    np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) + 7, list("abc")
)
MADE: list[Callable[[], Any]] = [
    lambda: mlopt.PCA(2),
    lambda: mlopt.RandomFeatures(4, gamma=1.0, random_state=0),
    lambda: mlopt.gather(StandardScaler(), mlopt.PCA(2)),
]


@pytest.mark.parametrize("make", MADE, ids=["pca", "features", "gather"])
def test_frames_are_those_of_rows_in_memory(make: Callable[[], Any]) -> None:
    fitted = make().set_output(transform="pandas").fit(FRAME)
    lazy = dd.from_pandas(FRAME, npartitions=3)
    found = fitted.transform(lazy)
    assert isinstance(found, dd.DataFrame)
    assert found.divisions == lazy.divisions
    pd.testing.assert_frame_equal(found.compute(), fitted.transform(FRAME))
    both = clone(fitted).fit_transform(FRAME)
    pd.testing.assert_frame_equal(both, fitted.transform(FRAME))


@pytest.mark.parametrize("make", MADE[:2], ids=["pca", "features"])
def test_frames_of_arrays_are_numbered(make: Callable[[], Any]) -> None:
    rows = FRAME.to_numpy()
    fitted = make().fit(rows)
    with sklearn.config_context(transform_output="pandas"):
        found, expected = (
            fitted.transform(da.from_array(rows, (20, 3))),
            fitted.transform(rows),
        )
    assert isinstance(found, dd.DataFrame)
    pd.testing.assert_frame_equal(found.compute(), expected)
