"""An estimator's plan before the fit is the one of the fit, and leaves no trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import mlopt
from mlopt.errors import InputError

ESTIMATORS = [
    mlopt.LogisticRegression(),
    mlopt.LogisticRegression(solver="newton-cholesky"),
    mlopt.LinearSVC(),
    mlopt.LinearSVC(loss="hinge", tol=0.1, max_iter=10_000, random_state=0),
    mlopt.LinearRegression(),
    mlopt.Ridge(alpha=2.0, solver="svd"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_explain_says_what_fit_will_choose(estimator: Any) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 5))
    y = (X[:, 0] + random.normal(size=300) > 0).astype(int)
    model = clone(estimator)
    before = model.explain(X, y)
    assert vars(model) == vars(clone(estimator))
    (planned,), (done,) = before.choices, model.fit(X, y).plan_.choices
    assert before.title == model.plan_.title
    assert before.predicted == model.plan_.predicted
    assert before.measured is None
    assert (planned.chosen, planned.predicted) == (done.chosen, done.predicted)
    assert planned.rejected == done.rejected


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_explain_refuses_what_fit_refuses(estimator: Any) -> None:
    with pytest.raises(ValueError, match="NaN"):
        estimator.explain(np.full((4, 2), np.nan), [1, 2, 1, 2])
    with pytest.raises(InputError, match="'tol' parameter"):
        clone(estimator).set_params(tol=-1.0).explain(np.eye(4), [1, 2, 1, 2])
