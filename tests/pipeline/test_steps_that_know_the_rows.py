"""Steps that know how many rows there are, which a sample has fewer of."""

from __future__ import annotations

from typing import Any

import dask
import dask.array
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.feature_selection import RFECV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, PredefinedSplit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from tests.pipeline.peers import numbers

import mlopt
from mlopt.errors import InputError

ROWS = 9000
"""More than the largest sample has."""
X, y = numbers(ROWS)
WEIGHTS = np.linspace(0.5, 1.5, ROWS)
BOTH = pytest.mark.parametrize("plan", ["where it pays", "always"])


class Centers(TransformerMixin, BaseEstimator):
    """Of which nobody knows anything."""

    def fit(self, X: Any, y: Any = None) -> Centers:
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X: Any) -> Any:
        return X - self.mean_


class Priced(ClassifierMixin, BaseEstimator):
    """Cannot do without a value for each row."""

    def fit(self, X: Any, y: Any, price: Any) -> Priced:
        self.classes_, self.seen_ = np.unique(y), np.array(price)
        self.model_ = LogisticRegression().fit(X, y, sample_weight=self.seen_)
        return self

    def predict(self, X: Any) -> Any:
        return self.model_.predict(X)


def search(cv: Any) -> GridSearchCV:
    return GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=cv)


@BOTH
@pytest.mark.parametrize(
    "step",
    [
        search(list(KFold(2).split(X))),
        search(PredefinedSplit(np.arange(ROWS) % 2)),
    ],
)
def test_splits_by_number_of_row_are_those_of_all_rows(step: Any, plan: str) -> None:
    with dask.config.set({"mlopt.plan": plan}):
        ours = mlopt.Pipeline([("own", Centers()), ("c", step)]).fit(X, y)
    theirs = Pipeline([("own", Centers()), ("c", step)]).fit(X, y)
    assert ours["c"].cv_results_["params"] == theirs["c"].cv_results_["params"]
    np.testing.assert_allclose(ours["c"].best_score_, theirs["c"].best_score_, atol=2e-3)


@BOTH
def test_a_function_may_have_a_value_for_each_row(plan: str) -> None:
    weigh = FunctionTransformer(lambda A, w: A * w[:, None], kw_args={"w": WEIGHTS})
    with dask.config.set({"mlopt.plan": plan}):
        pipe = mlopt.Pipeline([("own", Centers()), ("w", weigh), ("s", StandardScaler())])
        ours = pipe.fit_transform(X)
    weighed = (X - X.mean(axis=0)) * WEIGHTS[:, None]
    np.testing.assert_allclose(ours, StandardScaler().fit_transform(weighed))
    assert "on a sample" in str(pipe.plan_.explain())


@BOTH
@pytest.mark.parametrize("n", [2000, ROWS])
def test_arguments_of_fit_are_cut_with_the_rows(n: int, plan: str) -> None:
    groups = np.arange(n) % 5
    select = RFECV(LogisticRegression(), step=3, cv=GroupKFold(3))
    steps = [("s", StandardScaler()), ("f", select), ("c", Priced())]
    given = {"f__groups": groups, "c__price": list(WEIGHTS[:n])}
    with dask.config.set({"mlopt.plan": plan}):
        ours = mlopt.Pipeline(steps).fit(X[:n], y[:n], **given)
    np.testing.assert_array_equal(ours["c"].seen_, WEIGHTS[:n])
    found = ours["f"].support_, ours.predict(X)
    theirs = Pipeline(steps).fit(X[:n], y[:n], **given)
    np.testing.assert_array_equal(found[0], theirs["f"].support_)
    np.testing.assert_array_equal(found[1], theirs.predict(X))


class Crowd(TransformerMixin, BaseEstimator):
    """Wants more rows than any sample has."""

    def fit(self, X: Any, y: Any = None) -> Crowd:
        if len(X) < ROWS:
            raise ValueError("too few")
        self.fitted_ = True
        return self

    def transform(self, X: Any) -> Any:
        return X


@pytest.mark.parametrize("frame", [False, True])
def test_a_step_that_fails_on_samples_is_given_all_rows_of_a_collection(
    frame: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = dask.array.from_array(X, chunks=(3000, -1))
    rows = rows.to_dask_dataframe() if frame else rows
    labels = dask.array.from_array(y, chunks=3000)
    labels = labels.to_dask_dataframe() if frame else labels
    pipe = mlopt.Pipeline([("crowd", Crowd()), ("c", LogisticRegression())])
    theirs = LogisticRegression().fit(X, y)
    np.testing.assert_allclose(pipe.fit(rows, labels)["c"].coef_, theirs.coef_, rtol=1e-2)
    monkeypatch.setattr("mlopt.pipeline.estimator.memory_limit", lambda: 1000)
    with pytest.raises(InputError, match=r"gathered in one place.*too few"):
        pipe.fit(rows, labels)


def test_arguments_of_fit_hinder_no_plan_of_a_collection() -> None:
    rows = dask.array.from_array(X, chunks=(3000, -1))
    pipe = mlopt.Pipeline([("s", StandardScaler()), ("c", Priced())])
    pipe.fit(rows, dask.array.from_array(y, chunks=3000), c__price=WEIGHTS)
    np.testing.assert_array_equal(pipe["c"].seen_, WEIGHTS)
