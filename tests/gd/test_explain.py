"""An estimator's plan before the fit is the one of the fit, and leaves no trace."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
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


def test_explain_refuses_parameters_that_do_not_go_together() -> None:
    model = mlopt.LogisticRegression(solver="lbfgs", l1_ratio=1.0)
    X, y = np.eye(4), [1, 2, 1, 2]
    for ask in (model.fit, model.explain):
        with pytest.raises(InputError, match="l2"):
            ask(X, y)


def test_explain_refuses_dask_where_scikit_learn_would_fit() -> None:
    model = mlopt.Ridge(solver="lsqr")
    X, y = da.ones((4, 2)), np.arange(4.0)
    for ask in (model.fit, model.explain):
        with pytest.raises(InputError, match="X must be in memory"):
            ask(X, y)


def test_explain_starts_where_the_fit_would() -> None:
    random = np.random.default_rng(0)
    X = sp.random_array((300, 3000), density=0.01, rng=random, format="csr")
    y = random.integers(0, 2, 300)
    model = mlopt.LogisticRegression(warm_start=True).fit(X, y)
    before = model.explain(X, y)
    (planned,), (done,) = before.choices, model.fit(X, y).plan_.choices
    assert (planned.chosen, planned.rejected) == (done.chosen, done.rejected)


def test_explain_draws_from_nobody() -> None:
    X, y = np.eye(8), np.arange(8) % 2
    np.random.seed(0)  # noqa: NPY002
    mlopt.LinearSVC().explain(X, y)
    assert np.random.rand() == pytest.approx(0.5488135)  # noqa: NPY002
