"""Scans of small real tables, with columns of any scale, take no needless passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import datasets
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
