"""scikit-learn's own loop is given rows of Dask frames as pandas has them."""

from __future__ import annotations

import logging
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

import mlopt
from mlopt.errors import InputError

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
X["k"] = rng.choice(["p", "q"], 120)
Y = (X["a"] > 0).astype(int)
LAZY, TARGETS = dd.from_pandas(X, npartitions=3), dd.from_pandas(Y, npartitions=2)


def _steps(last: Any) -> Any:
    columns = make_column_transformer(
        (StandardScaler(), ["a", "b"]), (OneHotEncoder(), ["k"])
    )
    return make_pipeline(columns, last)


def test_labels_of_a_fit_are_those_of_all_rows(caplog: Any) -> None:
    plain = _steps(KMeans(2, n_init=1, random_state=0))
    expected = plain.fit_predict(X)
    with caplog.at_level(logging.WARNING, "mlopt"):
        found = mlopt.optimize(plain).fit_predict(LAZY)
    np.testing.assert_array_equal(found, expected)
    assert "gathered for `fit_predict`" in caplog.text


def test_predictions_with_parameters_are_those_of_all_rows(caplog: Any) -> None:
    plain = _steps(BayesianRidge())
    expected = plain.fit(X, Y).predict(X, return_std=True)
    model = mlopt.optimize(plain).fit(LAZY, TARGETS)
    with caplog.at_level(logging.WARNING, "mlopt"):
        found = model.predict(LAZY, return_std=True)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert "gathered for `predict`" in caplog.text


@pytest.mark.parametrize("sparse", [False, True])
def test_codes_are_turned_back(sparse: bool, caplog: Any) -> None:
    model = mlopt.make_pipeline(OneHotEncoder(sparse_output=sparse)).fit(LAZY[["k"]])
    codes = model.transform(LAZY[["k"]])
    with caplog.at_level(logging.WARNING, "mlopt"):
        assert model.inverse_transform(codes).ravel().tolist() == X["k"].tolist()
    assert "gathered for `inverse_transform`" in caplog.text


def test_scaled_rows_are_turned_back_without_a_warning_of_dask() -> None:
    rows = X[["a", "b"]].to_numpy()
    model = mlopt.make_pipeline(StandardScaler(), MinMaxScaler()).fit(rows)
    found = model.inverse_transform(da.from_array(model.transform(rows), (50, 2)))
    np.testing.assert_allclose(found, rows)


def test_a_frame_is_one_with_a_memory(tmp_path: Any, caplog: Any) -> None:
    plain = _steps(LogisticRegression())
    model = mlopt.optimize(plain).set_params(memory=str(tmp_path))
    with caplog.at_level(logging.WARNING, "mlopt"):
        model.fit(LAZY, TARGETS)
    assert "gathered for `fit`" in caplog.text
    expected = plain.fit(X, Y).predict(X)
    np.testing.assert_array_equal(model.predict(LAZY), expected)
    assert model.score(LAZY, TARGETS) == plain.score(X, Y)


def test_a_frame_is_one_where_metadata_are_routed() -> None:
    plain = _steps(LogisticRegression())
    model = mlopt.optimize(plain)
    with config_context(enable_metadata_routing=True):
        model.fit(LAZY, TARGETS)
        plain.fit(X, Y)
        np.testing.assert_allclose(model.predict_proba(LAZY), plain.predict_proba(X))
        assert model.score(LAZY, TARGETS) == plain.score(X, Y)


def test_rows_of_a_plan_that_gives_way_must_fit_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever all workers have together: this process gets them."""
    own = StandardScaler()
    own.transform = own.transform  # the plan's copies would not have it
    model = mlopt.make_pipeline(own, LogisticRegression())
    rows = da.from_array(X[["a", "b"]].to_numpy(), (50, 2))
    assert "methods in the place of" in str(model.fit(rows, Y).plan_.explain())
    monkeypatch.setattr("mlopt.pipeline.estimator.memory_limit", lambda: 1000)
    said = r"takes 1\.9 KiB, more than the 1\.0 KiB .*\. Give more memory, or fewer rows\."
    with pytest.raises(InputError, match=said):
        model.fit(rows, Y)


def test_a_pipeline_that_does_nothing_gathers_nothing(caplog: Any) -> None:
    model = mlopt.make_pipeline("passthrough").fit(LAZY)
    with caplog.at_level(logging.WARNING, "mlopt"):
        assert model.transform(LAZY) is LAZY
    assert not caplog.text
