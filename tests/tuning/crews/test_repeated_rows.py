"""Rows that a split has several times, or on both sides, behind preprocessing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mlopt

ROWS = np.arange(300)
SPLITS = {
    "on both sides": [(ROWS, ROWS)],
    "some twice": [(np.r_[ROWS[:200], ROWS[:100]], ROWS[200:])],
    "judged twice": [(ROWS[:200], np.r_[ROWS[200:], ROWS[250:]])],
}


@pytest.mark.parametrize("scoring", ["neg_log_loss", "accuracy"])
@pytest.mark.parametrize("cv", SPLITS.values(), ids=SPLITS)
def test_a_row_counts_as_often_as_a_split_has_it(cv: Any, scoring: str) -> None:
    X, y = make_classification(300, 5, flip_y=0.3, random_state=0)
    estimator = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-9, max_iter=999))
    values = [0.001, 0.01, 1.0]
    plain = GridSearchCV(
        estimator, {"logisticregression__C": values}, cv=cv, scoring=scoring
    )
    ours = mlopt.ModelSearchCV(
        estimator, {"C": values}, n_trials=3, sampler="grid", bandit=None, cv=cv,
        scoring=scoring,
    )  # fmt: skip
    expected = plain.fit(X, y).cv_results_["mean_test_score"]
    assert ours.fit(X, y).cv_results_["mean_test_score"] == pytest.approx(
        expected, abs=1e-6
    )
