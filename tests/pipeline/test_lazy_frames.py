"""A frame that a pipeline gives lazily is one of Dask's, with scikit-learn's values."""

from __future__ import annotations

from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mlopt

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc"))
Y = (X["a"] > 0).astype(int)


@pytest.fixture
def scaled() -> Any:
    lazy = dd.from_pandas(X, npartitions=3)
    pipe = mlopt.make_pipeline(StandardScaler()).set_output(transform="pandas")
    return pipe.fit(lazy).transform(lazy)


def _plain() -> pd.DataFrame:
    return StandardScaler().set_output(transform="pandas").fit_transform(X)


def test_it_can_be_made_an_array(scaled: Any) -> None:
    np.testing.assert_allclose(scaled.to_dask_array().compute(), _plain())
    found = scaled.map_partitions(np.asarray, meta=np.empty((0, 3))) + 1
    np.testing.assert_allclose(found.compute(), _plain() + 1)


def test_its_columns_can_be_computed_with(scaled: Any) -> None:
    pd.testing.assert_series_equal(scaled["a"].compute(), _plain()["a"])
    pd.testing.assert_frame_equal(
        scaled.assign(d=scaled.a * 2).compute()[["a", "b", "c"]], _plain()
    )
    assert scaled.persist().b.mean().compute() == pytest.approx(0)


def test_models_are_fitted_to_it_and_predict(scaled: Any) -> None:
    model = mlopt.LogisticRegression().fit(scaled, Y)
    found = model.predict(scaled).compute()
    np.testing.assert_array_equal(found, model.predict(_plain()))


def test_equal_models_of_unlike_rows_do_not_meet() -> None:
    pipe = mlopt.make_pipeline(StandardScaler()).set_output(transform="pandas").fit(X)
    one, other = (pipe.transform(dd.from_pandas(rows, npartitions=2)) for rows in (X, -X))
    found = dd.concat([one, other], axis=1, ignore_unknown_divisions=True).compute()
    pd.testing.assert_frame_equal(found.iloc[:, :3], pipe.transform(X))
    pd.testing.assert_frame_equal(found.iloc[:, 3:], pipe.transform(-X))


def test_objects_stay_what_they_are() -> None:
    mixed = pd.DataFrame({"n": rng.integers(0, 3, 120), "k": rng.choice(["p", "q"], 120)})
    plain = make_pipeline(SimpleImputer(strategy="most_frequent")).set_output(
        transform="pandas"
    )
    expected = plain.fit(mixed).transform(mixed)
    lazy = dd.from_pandas(mixed, npartitions=3)
    found = mlopt.optimize(plain).fit(lazy).transform(lazy)
    assert found.dtypes.tolist() == expected.dtypes.tolist()
    pd.testing.assert_frame_equal(found.compute(), expected)


def test_categories_that_dask_does_not_know_stay_unknown() -> None:
    frame = pd.DataFrame({"a": X["a"], "kind": np.repeat(list("wxyz"), 30)})
    lazy = dd.from_pandas(frame, npartitions=4).astype({"kind": "category"})
    scale = make_column_transformer(
        (StandardScaler(), ["a"]), remainder="passthrough", verbose_feature_names_out=False
    )
    pipe = mlopt.make_pipeline(scale).set_output(transform="pandas").fit(lazy)
    kinds = pipe.transform(lazy)["kind"]
    assert not kinds.cat.known
    assert kinds.compute().tolist() == frame["kind"].tolist()


def test_divisions_are_those_of_the_rows(scaled: Any) -> None:
    lazy = dd.from_pandas(X, npartitions=3)
    assert scaled.divisions == lazy.divisions
    assert lazy.assign(d=scaled["a"]).compute().index.equals(X.index)


def test_divisions_are_none_where_a_step_gives_rows_another_index() -> None:
    lazy = dd.from_pandas(X, npartitions=3)
    mlopt.register(renumbered, row_wise=True)
    pipe = mlopt.make_pipeline(FunctionTransformer(renumbered)).fit(lazy)
    assert not pipe.transform(lazy).known_divisions


def renumbered(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.set_axis(rows.index + 1000)
