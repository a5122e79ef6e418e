"""Steps that change the rows they are given: others see what they do with scikit-learn."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    PolynomialFeatures,
    StandardScaler,
)
from tests.pipeline.peers import Blanks

import mlopt
from mlopt.pipeline.steps.kinds import may_write


def doubled(X: Any) -> Any:
    X *= 2.0
    return X


CASES = {
    "in a chain": make_pipeline(StandardScaler(copy=False), Blanks(), Ridge()),
    "told so": make_pipeline(
        make_union(StandardScaler(copy=False), MinMaxScaler()), Ridge()
    ),
    "a function": make_pipeline(
        make_union(FunctionTransformer(doubled), PolynomialFeatures()), Ridge()
    ),
    "undeclared": make_pipeline(StandardScaler(), make_union(Blanks(), PCA(2)), Ridge()),
    "within a part": make_pipeline(
        make_union(make_pipeline(Blanks(2), StandardScaler()), "passthrough"), Ridge()
    ),
}


def numbers(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5)) + 3.0
    return X, X @ np.arange(1.0, 6.0) + rng.normal(size=n)


@pytest.mark.parametrize("n", [300, 5000, 60_000])
@pytest.mark.parametrize("case", CASES)
def test_what_other_steps_read_is_as_with_scikit_learn(case: str, n: int) -> None:
    X, y = numbers(n)
    theirs = clone(CASES[case]).fit(X.copy(), y)
    ours = mlopt.Pipeline(clone(CASES[case]).steps).fit(X.copy(), y)
    np.testing.assert_allclose(ours[-1].coef_, theirs[-1].coef_, atol=1e-6)
    for rows in (100, n):
        few = X[:rows]
        expected = theirs.predict(few.copy())
        np.testing.assert_allclose(ours.predict(few.copy()), expected, atol=1e-6)


def test_a_part_that_changes_no_rows_is_planned() -> None:
    X, y = numbers(20_000)
    kept = X.copy()
    same = FunctionTransformer(lambda rows: rows * 2.0)
    pipeline = mlopt.make_pipeline(make_union(same, PolynomialFeatures()), Ridge())
    told = str(pipeline.fit(X, y).plan_)
    assert "scikit-learn's own order" not in told
    changing = mlopt.Pipeline(clone(CASES["a function"]).steps)
    told = str(changing.fit(X.copy(), y).plan_)
    assert "`featureunion/functiontransformer` changes the rows" in told
    np.testing.assert_array_equal(X, kept)


def test_rows_on_dask_are_never_changed_without_a_word() -> None:
    X, y = numbers(6000)
    lazy, targets = da.from_array(X, chunks=(2000, 5)), da.from_array(y, chunks=2000)
    ours = mlopt.Pipeline(clone(CASES["undeclared"]).steps).fit(lazy, targets)
    theirs = clone(CASES["undeclared"]).fit(X.copy(), y)
    np.testing.assert_allclose(ours[-1].coef_, theirs[-1].coef_, atol=1e-6)


def test_what_may_write() -> None:
    assert may_write(Blanks())
    assert may_write(FunctionTransformer(doubled))
    assert may_write(StandardScaler(copy=False))
    assert not may_write(StandardScaler())
    assert not may_write(FunctionTransformer(np.log1p))
    assert not may_write(FunctionTransformer())
