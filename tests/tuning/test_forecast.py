"""Predictions before a search, and the parts that they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import mlopt
from mlopt.plan import Choice

X, y = make_classification(4000, 10, random_state=0)


def choice_of(estimator: Any, space: dict[str, Any], **settings: Any) -> Choice:
    search = mlopt.ModelSearchCV(estimator, space, **settings)
    return search.explain(X, y).choices[0]


def test_a_linear_family_is_batched_and_says_what_one_by_one_would_take() -> None:
    found = choice_of(LogisticRegression(), {"C": np.logspace(-3, 3, 32).tolist()})

    assert "share a scan" in found.chosen
    assert found.predicted is not None
    assert found.rejected[0].seconds is not None
    assert found.rejected[0].seconds > found.predicted
    assert found.children[0].step == "batch"


def test_a_family_without_a_batched_form_says_so() -> None:
    found = choice_of(RandomForestClassifier(n_estimators=5), {"max_depth": [2, 3, 4, 5]})

    assert found.chosen == "one fit a split, in parallel"
    assert "no batched form" in found.rejected[0].reason


def test_the_batch_is_planned_for_what_the_final_estimator_sees() -> None:
    space = {"C": np.logspace(-3, 3, 32).tolist()}
    plain = choice_of(make_pipeline(StandardScaler(), LogisticRegression()), space)
    wide = choice_of(
        make_pipeline(PolynomialFeatures(3), StandardScaler(), LogisticRegression()), space
    )

    assert plain.predicted is not None
    assert wide.predicted is not None
    assert wide.predicted > 2 * plain.predicted


@pytest.mark.parametrize("size", [1, 7])
def test_a_given_batch_size_is_kept(size: int) -> None:
    found = choice_of(LogisticRegression(), {"C": [0.1, 1.0, 2.0, 3.0]}, batch_size=size)

    assert found.children[0].chosen == f"{size}, as asked"
