"""Frames that are joined from columns without names, or of frames of another kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from tests.pipeline.peers import SIZES, both, numbers

MADE = StandardScaler
PART = {
    "passing": lambda: "passthrough",
    "scaled": MADE,
    "function": lambda: FunctionTransformer(np.abs, feature_names_out="one-to-one"),
    "union": lambda: FeatureUnion([("p", "passthrough")]),
}
TABLES = {
    "array": lambda X: X,
    "numbered": pd.DataFrame,
    "named": lambda X: pd.DataFrame(X, columns=["a", "b", "c"]),
}


def join(kind: str, part: str, **settings: Any) -> Any:
    if kind == "union":
        return FeatureUnion([("first", MADE()), ("second", PART[part]())], **settings)
    parts = [("first", MADE(), [0]), ("second", PART[part](), [1, 2])]
    return ColumnTransformer(parts, **settings)


@SIZES
@pytest.mark.parametrize("frames", ["pandas", "polars"])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("part", PART)
@pytest.mark.parametrize("kind", ["union", "columns"])
def test_columns_that_are_joined_are_named_as_by_scikit_learn(
    n: int, kind: str, part: str, table: str, frames: str
) -> None:
    X, y = numbers(n, 3)
    rows = TABLES[table](X)
    ours, theirs = both(
        [("join", join(kind, part).set_output(transform=frames)), ("last", MADE())]
    )
    for pipeline in (ours, theirs):
        pipeline.fit(rows, y)
    mine, others = (list(one[-1].feature_names_in_) for one in (ours, theirs))
    assert mine == others
    assert list(ours[0].transform(rows).columns) == others


@SIZES
@pytest.mark.parametrize("table", ["numbered", "named"])
def test_a_join_of_two_columns_of_one_name_is_refused(n: int, table: str) -> None:
    X, y = numbers(n, 3)
    whole = join("union", "passing", verbose_feature_names_out=False)
    ours, theirs = both([("join", whole.set_output(transform="pandas")), ("last", MADE())])
    for pipeline in (theirs, ours):
        with pytest.raises(ValueError, match=r"Output feature names: .* are not unique"):
            pipeline.fit(TABLES[table](X), y)


@SIZES
@pytest.mark.parametrize("table", ["array", "numbered"])
def test_names_that_scikit_learn_s_pipelines_do_not_agree_on_are_refused(
    n: int, table: str
) -> None:
    X, y = numbers(n, 3)
    parts = [("first", MADE(), [0]), ("second", make_pipeline(MADE(), MADE()), [1, 2])]
    whole = ColumnTransformer(parts).set_output(transform="pandas")
    for pipeline in both([("join", whole), ("last", MADE())]):
        with pytest.raises(ValueError, match="is not equal to feature_names_in_"):
            pipeline.fit(TABLES[table](X), y)
