"""Rows that trials share are the same to each, whatever another does to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge
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


def scaled_in_place(model: Any) -> Any:
    return make_pipeline(StandardScaler(copy=False), model)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_winner_that_is_fitted_twice_sees_the_rows_as_they_were() -> None:
    X, y = make_classification(200, 5, random_state=0)
    X = 10.0 + 3.0 * X
    search = mlopt.ModelSearchCV(
        scaled_in_place(LogisticRegression(max_iter=2)),
        {"C": [1.0, 10.0]},
        sampler="grid",
        bandit=None,
    ).fit(X.copy(), y)
    np.testing.assert_allclose(search.best_estimator_[0].mean_, X.mean(axis=0))


def test_predictions_out_of_fold_do_not_know_the_other_rows() -> None:
    X = np.random.default_rng(0).normal(size=(300, 5)) + 3.0
    y = X @ np.arange(1.0, 6.0) + np.random.default_rng(1).normal(size=300)
    found, expected = (
        mlopt.ModelSearchCV(
            make_pipeline(StandardScaler(copy=copy), Ridge(100.0)),
            {"alpha": [100.0]},
            sampler="grid",
            bandit=None,
            cv=KFold(3),
            return_predictions=True,
        )
        .fit(X.copy(), y)
        .oof_predictions_
        for copy in (False, True)
    )
    np.testing.assert_allclose(found, expected)
