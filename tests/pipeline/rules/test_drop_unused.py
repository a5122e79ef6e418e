"""What changes nothing is left out, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from tests.pipeline.graphs import DATA, ranged, scaled, text, union
from tests.pipeline.rules.test_share_work import graphs

import mlopt
from mlopt.pipeline.graph.operators import Convert, Learn
from mlopt.pipeline.graph.walking import show
from mlopt.pipeline.planning.optimizer import is_same
from mlopt.pipeline.rules.base import Context, Draft
from mlopt.pipeline.rules.drop_unused import drop_unused

CONTEXT = Context(None, 0)


def dropped(*sinks: Any) -> Draft:
    return drop_unused(Draft(sinks), CONTEXT)


def test_a_union_of_one_part_is_that_part() -> None:
    last = Learn("r", Ridge(), union(scaled("scale", DATA)))
    draft = dropped(last)
    assert show(draft.sinks) == text(
        """
        #0 Source X
        #1 Learn scale StandardScaler() #0
        #2 Apply scale #1 #0
        #3 Learn r Ridge() #2
        """
    )
    assert is_same(Draft((last,)), draft)


def test_a_conversion_of_a_conversion_is_one() -> None:
    draft = dropped(Convert("s", Convert("s", DATA, "sparse"), "dense"))
    assert show(draft.sinks).count("Convert") == 1


@pytest.mark.parametrize(
    "root",
    [
        union(scaled("a", DATA), prefix=True),
        union(scaled("a", DATA), ranged("b", DATA)),
        union(DATA),  # a frame would come out as an array
        union(scaled("a", DATA, StandardScaler().set_output(transform="pandas"))),
    ],
    ids=["prefix", "two", "source", "frames"],
)
def test_a_union_that_does_something_stays(root: Any) -> None:
    draft = Draft((root,))
    assert drop_unused(draft, CONTEXT) is draft


@given(graphs())
def test_the_meaning_stays_and_a_second_time_changes_nothing(root: Any) -> None:
    draft = dropped(root)
    assert is_same(Draft((root,)), draft)
    assert drop_unused(draft, CONTEXT) is draft


@pytest.mark.parametrize("n", [200, 6000])
def test_a_pipeline_with_a_union_of_one_part_is_scikit_learns(n: int) -> None:
    X, y = np.random.default_rng(0).normal(size=(n, 4)), np.arange(float(n))
    one = FeatureUnion([("a", StandardScaler())], verbose_feature_names_out=False)
    found = mlopt.make_pipeline(one, Ridge()).fit(X, y)
    expected = make_pipeline(one, Ridge()).fit(X, y)
    np.testing.assert_allclose(found[-1].coef_, expected[-1].coef_, rtol=1e-4)


def test_a_union_of_one_frame_takes_its_names_away() -> None:
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)), columns=list("abc"))
    one = FeatureUnion([("a", FunctionTransformer())], verbose_feature_names_out=False)
    found = mlopt.make_pipeline(one, StandardScaler()).fit(X)
    assert not hasattr(found[-1], "feature_names_in_")
