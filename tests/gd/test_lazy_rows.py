"""What models say of rows that Dask holds is what they say of the same rows in memory."""

from __future__ import annotations

import warnings
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import mlopt
from mlopt.errors import InputError
from mlopt.pipeline.library.learning import BlockLeastSquaresClassifier, KernelRidge

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
Y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
FRAME = pd.DataFrame(X, columns=list("abc"))
MODELS = [
    mlopt.LogisticRegression(), mlopt.LinearSVC(), mlopt.Ridge(), mlopt.Lasso(0.01),
    mlopt.PCA(2), mlopt.RandomFeatures(8, random_state=0), KernelRidge(),
    BlockLeastSquaresClassifier(),
]  # fmt: skip
METHODS = ("predict", "decision_function", "predict_proba", "transform")


def _methods(model: Any) -> list[str]:
    return [name for name in METHODS if hasattr(model, name)]


@pytest.fixture(params=MODELS, ids=lambda m: type(m).__name__)
def model(request: Any) -> Any:
    return request.param


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("framed", [False, True])
def test_values_that_are_not_finite_are_refused(
    model: Any, value: float, framed: bool
) -> None:
    bad = X.copy()
    bad[150, 1] = value
    rows: Any = da.from_array(bad, (50, 3))
    if framed:
        rows = dd.from_pandas(pd.DataFrame(bad, columns=list("abc")), npartitions=3)
    model.fit(FRAME if framed else X, Y)
    for method in _methods(model):
        lazy = getattr(model, method)(rows)
        with pytest.raises(ValueError, match="Input X contains"):
            lazy.compute()


@pytest.mark.parametrize("fitted", ["f4", "f8"])
@pytest.mark.parametrize("given", ["f2", "f4", "f8", "i8", "?"])
def test_results_are_of_the_type_that_is_promised(
    model: Any, fitted: str, given: str
) -> None:
    rows = X.astype(given)
    model.fit(X.astype(fitted), Y)
    for method in _methods(model):
        expected = getattr(model, method)(rows)
        lazy = getattr(model, method)(da.from_array(rows, (50, 3)))
        assert lazy.shape == expected.shape
        assert lazy.dtype == lazy.compute().dtype == expected.dtype
        np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-5, atol=1e-6)


def test_numbers_that_are_objects_are_numbers(model: Any) -> None:
    rows = X.astype(object)
    model.fit(X, Y)
    for method in _methods(model):
        found = getattr(model, method)(da.from_array(rows, (50, 3)))
        expected = getattr(model, method)(rows)
        np.testing.assert_allclose(found.compute(), expected, rtol=1e-6)


@pytest.mark.parametrize("named", [False, True])
def test_columns_with_and_without_names_are_warned_of(model: Any, named: bool) -> None:
    lazy, array = dd.from_pandas(FRAME, npartitions=2), da.from_array(X, (50, 3))
    model.fit(FRAME if named else X, Y)
    for method in _methods(model):
        with pytest.warns(UserWarning, match="feature names"):
            getattr(model, method)(array if named else lazy)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            getattr(model, method)(lazy if named else array)


def test_a_column_alone_is_no_matrix(model: Any) -> None:
    model.fit(X, Y)
    for method in _methods(model):
        for one in (da.from_array(X, (50, 3))[:, 0], dd.from_pandas(FRAME["a"])):
            with pytest.raises(ValueError, match="2-D"):
                getattr(model, method)(one)


def test_coordinates_that_are_not_finite_have_no_rows() -> None:
    pca = mlopt.PCA(2).fit(X)
    lazy = pca.inverse_transform(da.from_array(np.full((4, 2), np.nan), (2, 2)))
    with pytest.raises(ValueError, match="contains NaN"):
        lazy.compute()


@pytest.mark.parametrize(
    "names", [["c", "b", "a"], ["a", "b"], ["a", "b", "c", "d"], ["a", "b", "d"]]
)
def test_a_partition_of_other_columns_is_refused(model: Any, names: list[str]) -> None:
    def changed(part: Any) -> Any:
        return part if part.index[0] == 0 else part.assign(d=1.0)[names]

    lazy = dd.from_pandas(FRAME, npartitions=2)
    odd = lazy.map_partitions(changed, meta=FRAME[:0], enforce_metadata=False)
    model.fit(FRAME, Y)
    for method in _methods(model):
        with pytest.raises(InputError, match="same columns"):
            getattr(model, method)(odd).compute()
    if not isinstance(model, mlopt.RandomFeatures):
        with pytest.raises(InputError, match="same columns"):
            model.fit(odd, Y)
