"""Rows that trials share are the same to each, whatever another does to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.pipeline.peers import Blanks

import mlopt


class Halving(Ridge):
    """Halves the rows that it is fitted to, where they stand."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Halving:
        X *= 0.5
        X += 1.0
        super().fit(X, y)
        return self


SEARCHES = {
    "a step": (
        make_pipeline(StandardScaler(), Blanks(), Ridge()),
        "blanks__column",
        range(5),
    ),
    "the last": (
        make_pipeline(StandardScaler(), Halving()),
        "halving__alpha",
        (1, 10, 100),
    ),
    "alone": (Halving(), "alpha", (1.0, 10.0, 100.0)),
}


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("case", SEARCHES)
def test_scores_are_those_of_a_grid_search(case: str, shuffle: bool) -> None:
    estimator, name, values = SEARCHES[case]
    X = np.random.default_rng(0).normal(size=(300, 5)) + 3.0
    y = X @ np.arange(1.0, 6.0)
    cv = KFold(3, shuffle=shuffle, random_state=0 if shuffle else None)
    theirs = GridSearchCV(estimator, {name: list(values)}, cv=cv).fit(X.copy(), y)
    ours = mlopt.ModelSearchCV(
        estimator, {name: list(values)}, sampler="grid", bandit=None, cv=cv
    ).fit(X.copy(), y)
    found, expected = (
        dict(
            zip(
                one.cv_results_[f"param_{name}"],
                one.cv_results_["mean_test_score"],
                strict=True,
            )
        )
        for one in (ours, theirs)
    )
    assert found == pytest.approx(expected, abs=1e-9)
