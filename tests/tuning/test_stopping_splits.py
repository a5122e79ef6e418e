"""Boosting that stops early on one split and goes on with another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import PredefinedSplit, cross_val_score

import mlopt
from mlopt.tuning.bandits import ActionElimination

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(120, 3))
Y = np.where(np.arange(120) < 60, X[:, 0] > 0, RANDOM.random(120) > 0.5)
"""What is learnt of one half stops soon: the other half has nothing to learn."""
SPLITS = PredefinedSplit(np.arange(120) // 60)
BOOSTING = HistGradientBoostingClassifier(
    learning_rate=0.05, max_leaf_nodes=4, early_stopping=True, n_iter_no_change=5,
    validation_fraction=0.3, random_state=0,
)  # fmt: skip


def test_a_split_that_has_stopped_keeps_its_model_while_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fitted: list[int] = []
    fit: Any = HistGradientBoostingClassifier.fit

    def counted(self: Any, X: Any, y: Any) -> Any:
        fit(self, X, y)
        if len(X) == len(Y) // 2:  # samples have fewer rows
            fitted.append(self.n_iter_)
        return self

    alone = cross_val_score(BOOSTING, X, Y, cv=SPLITS, error_score="raise")
    monkeypatch.setattr(HistGradientBoostingClassifier, "fit", counted)
    search = mlopt.ModelSearchCV(
        BOOSTING, {"max_iter": [100]}, n_trials=1, cv=SPLITS, refit=False, n_jobs=1,
        bandit=ActionElimination(first=10), random_state=0,
    ).fit(X, Y)  # fmt: skip
    assert search.cv_results_["state"].tolist() == ["COMPLETE"]
    found = [search.cv_results_[f"split{k}_test_score"][0] for k in range(2)]
    np.testing.assert_array_equal(found, alone)
    assert sorted(fitted)[1:] == list(range(10, 101, 10))  # one stopped before
