"""Unions and `ColumnTransformer` that are told to give frames, with arrays among parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from tests.pipeline.peers import SIZES, both, numbers

pytestmark = pytest.mark.filterwarnings("ignore:When `set_output` is configured")


def thrice(X: Any) -> Any:
    return np.asarray(X) * 3.0


class Bare(BaseEstimator):
    """It has no `set_output`, and so keeps it from the steps around it."""

    def fit(self, X: Any, y: Any = None) -> Bare:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: Any) -> Any:
        return np.asarray(X)


def union(*parts: Any) -> FeatureUnion:
    return FeatureUnion([(f"p{i}", part) for i, part in enumerate(parts)])


MIXED = {
    "function": lambda: union(StandardScaler(), FunctionTransformer(thrice)),
    "nested": lambda: union(
        union(MinMaxScaler(), FunctionTransformer(thrice)),
        make_pipeline(MinMaxScaler(), StandardScaler()),
    ),
    "passing": lambda: union("passthrough", StandardScaler()),
    "passing within": lambda: union(
        MinMaxScaler(), union("passthrough", FunctionTransformer(thrice))
    ),
    "columns": lambda: ColumnTransformer(
        [
            ("a", StandardScaler(), [0, 1]),
            ("b", FunctionTransformer(thrice), [2]),
        ]
    ),
    "columns passing": lambda: ColumnTransformer(
        [("a", StandardScaler(), [0, 1]), ("b", "passthrough", [2])]
    ),
}


@SIZES
@pytest.mark.parametrize("table", [np.asarray, pd.DataFrame], ids=["array", "frame"])
@pytest.mark.parametrize("kind", MIXED)
def test_behind_frames_and_arrays_the_names_are_scikit_learn_s(
    n: int, kind: str, table: Any
) -> None:
    X, _ = numbers(n, 3)
    rows = X if table is np.asarray else pd.DataFrame(X, columns=["a", "b", "c"])
    ours, theirs = both([("mixed", MIXED[kind]()), ("last", StandardScaler())])
    for pipeline in (ours, theirs):
        pipeline.set_output(transform="pandas").fit(rows)
    mine, others = (
        list(getattr(one[-1], "feature_names_in_", ())) for one in (ours, theirs)
    )
    assert mine == others
    pd.testing.assert_frame_equal(ours.transform(rows), theirs.transform(rows))


def test_what_passes_in_a_mixed_union_is_a_transformer_once_fitted() -> None:
    X, _ = numbers(60)
    ours, theirs = both([("mixed", MIXED["passing within"]()), ("last", MinMaxScaler())])
    for pipeline in (ours, theirs):
        pipeline.set_output(transform="pandas").fit(X)
    for one in (ours, theirs):
        inner = one[0].transformer_list[1][1]
        assert isinstance(inner.transformer_list[0][1], FunctionTransformer)


@SIZES
def test_steps_that_set_output_does_not_reach_give_arrays(n: int) -> None:
    X, _ = numbers(n, 3)
    untold = union(make_pipeline(Bare(), StandardScaler()), MinMaxScaler())
    with pytest.raises(ValueError, match="is not available"):
        untold.set_output(transform="pandas")
    told = union(FunctionTransformer(np.abs), MinMaxScaler()).set_output(transform="pandas")
    ours, theirs = both([("untold", untold), ("told", told), ("last", StandardScaler())])
    for pipeline in (ours, theirs):
        pipeline.fit(X)
    np.testing.assert_array_equal(ours[-1].feature_names_in_, theirs[-1].feature_names_in_)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X))
