"""Tables become matrices the same way in training and afterwards."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mlopt.errors import InputError
from mlopt.sweep.loading import as_features
from mlopt.sweep.roles import roles_of
from mlopt.sweep.tabular import ReadColumns, ToFloat32, for_linear, for_trees, read_columns

N = 300
RANDOM = np.random.default_rng(2)


@pytest.fixture
def table() -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "x": RANDOM.normal(size=N),
            "month": RANDOM.integers(1, 6, N),
            "city": RANDOM.choice(["rome", "oslo", "bern"], N),
            "tail": [f"t{i % 260}" for i in range(N)],
            "when": pd.date_range("2021-01-01", periods=N, freq="37h").astype(str),
        }
    )
    frame.loc[::9, "x"] = np.nan
    frame.loc[::11, "city"] = None
    return frame


def labels(table: pd.DataFrame) -> np.ndarray:
    return np.where(table["month"] > 3, "late", "early")


def test_linear_models_get_finite_scaled_float32(table: pd.DataFrame) -> None:
    steps = Pipeline(for_linear(roles_of(table), "binary", N, 0))
    X = steps.fit_transform(table, labels(table))
    assert X.dtype == np.float32
    assert np.isfinite(X).all()
    assert np.abs(X).max() < 50


def test_trees_get_codes_first_and_missing_values_as_they_are(table: pd.DataFrame) -> None:
    steps, coded = for_trees(roles_of(table), "binary", 0, spelled_out=200)
    X = Pipeline(steps).fit_transform(table, labels(table))
    assert coded == [0]
    assert set(X[:, 0][~np.isnan(X[:, 0])]) == {0.0, 1.0, 2.0}
    assert np.isnan(X[::11, 0]).all()


def test_a_file_that_reads_its_columns_otherwise_gives_the_same(
    table: pd.DataFrame,
) -> None:
    steps = Pipeline(for_linear(roles_of(table), "binary", N, 0))
    steps.fit(table, labels(table))
    other = table.assign(
        x=table["x"].astype(str),
        month=table["month"].astype(float),
        when=pd.to_datetime(table["when"]),
        more="unknown to the model",
    )[["more", "when", "tail", "city", "month", "x"]]
    roles = roles_of(table)
    read = read_columns(roles).fit(table)
    left, right = read.transform(table), read.transform(other)
    pd.testing.assert_frame_equal(left, right)


def test_values_never_seen_are_no_error(table: pd.DataFrame) -> None:
    for steps in (
        for_linear(roles_of(table), "binary", N, 0),
        for_trees(roles_of(table), "binary", 0, spelled_out=200)[0],
    ):
        pipe = Pipeline(steps).fit(table, labels(table))
        new = table.head(3).assign(city="atlantis", tail="none", month=99)
        assert len(pipe.transform(new)) == 3


def test_one_row_is_enough_to_predict_on(table: pd.DataFrame) -> None:
    pipe = Pipeline(for_linear(roles_of(table), "binary", N, 0))
    pipe.fit(table, labels(table))
    assert np.allclose(pipe.transform(table.head(1)), pipe.transform(table)[:1])


def test_a_missing_column_is_named_with_a_hint(table: pd.DataFrame) -> None:
    read = read_columns(roles_of(table)).fit(table)
    with pytest.raises(InputError, match=r"'city' is missing.*Did you mean `City`"):
        read.transform(table.rename(columns={"city": "City"}))


def test_whole_numbers_as_categories_read_the_same_with_gaps() -> None:
    read = ReadColumns(categories=["code"])
    whole = read.fit_transform(pd.DataFrame({"code": [1, 2, 3]}))
    gaps = read.fit_transform(pd.DataFrame({"code": [1.0, np.nan, 3.0]}))
    assert whole["code"].tolist() == ["1", "2", "3"]
    assert gaps["code"].tolist()[::2] == ["1", "3"]
    assert pd.isna(gaps["code"][1])


def test_wide_one_hot_columns_stay_sparse() -> None:
    from scipy import sparse

    frame = pd.DataFrame(
        {f"c{i}": RANDOM.choice([f"v{k}" for k in range(190)], 4000) for i in range(4)}
    )
    steps = Pipeline(for_linear(roles_of(frame), "binary", 4000, 0))
    X = steps.fit_transform(frame, RANDOM.integers(0, 2, 4000))
    assert sparse.issparse(X)
    assert X.dtype == np.float32


def test_the_steps_can_be_cloned(table: pd.DataFrame) -> None:
    steps = Pipeline(for_linear(roles_of(table), "binary", N, 0))
    assert np.array_equal(
        clone(steps).fit_transform(table, labels(table)),
        clone(steps).fit_transform(table, labels(table)),
    )
    assert ToFloat32().fit(np.eye(2)).transform(np.eye(2)).dtype == np.float32


def test_entries_that_are_stored_twice_are_added_up() -> None:
    twice = sparse.csc_array(([1.0, 2.0, 3.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    for rows in (as_features(twice), ToFloat32().fit(twice).transform(twice)):
        assert rows.nnz == 2
        np.testing.assert_array_equal(rows.toarray(), [[3.0, 0.0], [0.0, 3.0]])
    assert twice.nnz == 3
