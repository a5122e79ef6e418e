"""Scans of small real tables, with columns of any scale, take no needless passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import datasets
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from mlopt import ModelSearchCV
from mlopt.gd.quasi_newton import QuasiNewton

GRID = {"C": np.logspace(-4, 4, 16).tolist()}


@pytest.mark.parametrize(("name", "most"), [("wine", 40), ("breast_cancer", 40)])
def test_classes_that_can_be_separated_are_not_descended_to_in_lockstep(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    advance = QuasiNewton.advance

    def counted(self: Any, passes: int) -> None:
        before = self.passes
        advance(self, passes)
        made.append(self.passes - before)

    monkeypatch.setattr(QuasiNewton, "advance", counted)
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    search = ModelSearchCV(
        LinearSVC(tol=1e-6, max_iter=20_000), GRID, sampler="grid", bandit=None
    )
    search.fit(X, y)
    assert sum(made) <= most
    if name == "wine":  # on the other table LIBLINEAR itself does not come to the end
        theirs = GridSearchCV(LinearSVC(tol=1e-6, max_iter=20_000), GRID).fit(X, y)
        order = np.argsort(search.cv_results_["param_C"].astype(float))
        scores = search.cv_results_["mean_test_score"][order]
        np.testing.assert_allclose(
            scores, theirs.cv_results_["mean_test_score"], atol=0.006
        )


@pytest.mark.parametrize("classes", [2, 3])
def test_least_squares_of_classes_are_scored_as_classes(classes: int) -> None:
    X, y = datasets.make_classification(
        400, 10, n_informative=6, n_classes=classes, random_state=0
    )
    given: Any = SGDClassifier(learning_rate="constant", eta0=0.001)
    grid = {"loss": ["hinge", "squared_error", "huber"]}
    ours = ModelSearchCV(given, grid, sampler="grid", n_trials=None, bandit=None, cv=3)
    theirs = GridSearchCV(given, grid, cv=3).fit(X, y)
    got = ours.fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(got, theirs.cv_results_["mean_test_score"], atol=0.05)


def test_steps_that_follow_no_penalty_leave_the_scan_to_others() -> None:
    X, y = datasets.make_classification(600, 10, random_state=0)
    grid = {"penalty": ["l2", None], "alpha": [1e-4, 1e-2]}
    search = ModelSearchCV(
        SGDClassifier(),
        grid,
        sampler="grid",
        n_trials=None,
        bandit=None,
        cv=3,
    )
    told = str(search.fit(X, y).plan_)
    assert "steps follow `alpha`" in told
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
