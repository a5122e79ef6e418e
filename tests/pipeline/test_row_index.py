"""Frames that come out carry the row labels that scikit-learn gives them."""

from __future__ import annotations

from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler
from tests.pipeline.peers import SIZES, both

LABELLED = ["counted", "shuffled", "repeated"]
SCALERS = [("a", StandardScaler()), ("b", MaxAbsScaler())]


def with_frames(steps: Any) -> Any:
    return tuple(one.set_output(transform="pandas") for one in both(steps))


def labels(found: Any) -> Any:
    """What a step of the user's sees of the rows' labels."""
    return found.assign(label=np.asarray(found.index, float))


def labelled(kind: str, n: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    index = {"counted": np.arange(n), "shuffled": rng.permutation(n)}
    repeated = np.arange(n) % (n // 2)
    found = pd.DataFrame(rng.normal(size=(n, 2)), columns=["u", "v"])
    return found if kind == "counted" else found.set_axis(index.get(kind, repeated))


@SIZES
def test_rows_of_an_array_are_counted_through(n: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, 3))
    ours, theirs = with_frames(SCALERS)
    pd.testing.assert_index_equal(ours.fit_transform(X).index, pd.RangeIndex(n))
    assert theirs.fit_transform(X).index.equals(ours.transform(X).index)


@SIZES
@pytest.mark.parametrize("lazy", [False, True])
def test_a_step_sees_rows_of_an_array_counted_through(n: int, lazy: bool) -> None:
    X = np.random.default_rng(0).normal(size=(n, 3))
    ours, theirs = with_frames([SCALERS[0], ("f", FunctionTransformer(labels))])
    given = da.from_array(X, chunks=(n // 3, 3)) if lazy else X
    found, expected = ours.fit_transform(given), theirs.fit_transform(X)
    np.testing.assert_array_equal(found["label"], expected["label"])


@SIZES
@pytest.mark.parametrize("kind", LABELLED)
def test_rows_of_a_frame_keep_their_labels(n: int, kind: str) -> None:
    X = labelled(kind, n)
    ours, theirs = with_frames(SCALERS)
    expected = theirs.fit_transform(X).index
    assert ours.fit_transform(X).index.equals(expected)
    assert ours.transform(X).index.equals(expected)


def test_parts_of_a_dask_frame_that_count_from_0_each_keep_their_labels() -> None:
    parts = [labelled("counted", 2500), labelled("counted", 2500)]
    X = dd.from_map(lambda number: parts[number], [0, 1], meta=parts[0].iloc[:0])
    ours, theirs = with_frames([SCALERS[0], ("f", FunctionTransformer(labels))])
    found, expected = ours.fit_transform(X), theirs.fit_transform(X.compute())
    assert found.index.equals(expected.index)
    np.testing.assert_array_equal(found["label"], expected["label"])


def running_sum(data: Any) -> Any:
    """A table of numbers, and no frame, whatever is given."""
    return np.cumsum(np.asarray(data), axis=0)


@pytest.mark.parametrize("kind", LABELLED)
def test_behind_a_step_that_gives_an_array_of_all_rows_they_are_counted_through(
    kind: str,
) -> None:
    X = labelled(kind, 2000)
    given = dd.from_pandas(X, npartitions=4, sort=False)
    steps = [("f", FunctionTransformer(running_sum)), SCALERS[1]]
    ours, theirs = with_frames(steps)
    for step in (ours.steps[0][1], theirs.steps[0][1]):
        step.set_output(transform="default")
    expected = theirs.fit_transform(X).index
    assert ours.fit_transform(given).index.equals(expected)
    assert ours.transform(given).index.equals(expected)
