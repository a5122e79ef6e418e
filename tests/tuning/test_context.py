"""Fits run in the context of who asks for them: NumPy's handling of errors, variables."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import mlopt

Array = NDArray[Any]

_tenant: ContextVar[str] = ContextVar("tenant", default="nobody")
X = np.abs(np.random.default_rng(0).normal(size=(300, 3)))
X[7, 0] = 0.0
Y = (X[:, 1] > 0.6).astype(int)
GRID: dict[str, Any] = {"sampler": "grid", "n_trials": None, "bandit": None}


def inverse(X: Array) -> Array:
    return np.asarray(np.minimum(1.0 / X, 1e3))


class OfTenant(ClassifierMixin, BaseEstimator):
    """Predicts 1 for me, 0 for nobody."""

    def __init__(self, number: int = 0) -> None:
        self.number = number

    def fit(self, X: Array, y: Array) -> OfTenant:
        self.classes_, self.found_ = np.unique(y), int(_tenant.get() == "me")
        return self

    def predict(self, X: Array) -> Array:
        return np.full(len(X), self.found_)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("last", [LogisticRegression(), RandomForestClassifier(3)])
def test_what_numpy_does_about_errors_holds_in_fits(last: Any, n_jobs: int) -> None:
    space = {"C": [0.1, 1.0]} if hasattr(last, "C") else {"max_depth": [2, 3]}
    pipe = make_pipeline(FunctionTransformer(inverse), last)
    named = {f"{type(last).__name__.lower()}__{name}": v for name, v in space.items()}
    search = mlopt.ModelSearchCV(pipe, named, refit=False, n_jobs=n_jobs, **GRID)
    with np.errstate(divide="raise"), pytest.raises(Exception, match="divide by zero"):
        search.fit(X, Y)
    with np.errstate(divide="ignore"):
        assert np.isfinite(search.fit(X, Y).cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_variables_of_the_context_are_those_of_who_fits(n_jobs: int) -> None:
    mine = _tenant.set("me")
    try:
        theirs = GridSearchCV(OfTenant(), {"number": [0, 1]}).fit(X, Y)
        ours = mlopt.ModelSearchCV(OfTenant(), {"number": [0, 1]}, n_jobs=n_jobs, **GRID)
        assert ours.fit(X, Y).best_score_ == pytest.approx(theirs.best_score_)
        assert theirs.best_score_ == pytest.approx(Y.mean())
    finally:
        _tenant.reset(mine)


def test_a_pipeline_has_the_context_of_who_fits_it() -> None:
    pipe = mlopt.Pipeline([("inverse", FunctionTransformer(inverse)), ("own", OfTenant())])
    mine = _tenant.set("me")
    try:
        with np.errstate(divide="ignore"):
            assert (pipe.fit(X, Y).predict(X) == 1).all()
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            pipe.fit(X, Y)
    finally:
        _tenant.reset(mine)
