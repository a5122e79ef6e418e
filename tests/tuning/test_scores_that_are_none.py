"""Scores that are no numbers, and rows that are unusual: as scikit-learn has them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import mlopt

N = 90
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
LABELS = np.repeat([0.0, 1.0], [60, 30])
REAL = RNG.normal(size=N)
KINDS = np.repeat(np.array([["a"], ["b"], ["c"]], dtype=object), 30, axis=0)
FEW = np.concatenate([KINDS[:29], KINDS[:1], KINDS[:60]])
ONE_CLASS = [
    (np.arange(50), np.arange(50, N)),
    (np.arange(30, N), np.arange(30)),
]
FOLDS = KFold(3)
C, ALPHA = {"C": [0.1, 1.0]}, {"alpha": [2.0, 0.1, 1.0]}
DEPTH = {"max_depth": [1, 2]}
RIDGE, LOGISTIC = {"ridge__alpha": [0.1, 1.0]}, {"logisticregression__C": [0.1, 1.0]}
TREE = DecisionTreeClassifier(random_state=0)


def one_hot(model: Any) -> Any:
    return make_pipeline(OneHotEncoder(), model)


def infinite(estimator: Any, X: Any, y: Any) -> float:
    return float("inf") if estimator.alpha < 1 else -1.0


def minus_infinite(estimator: Any, X: Any, y: Any) -> float:
    return -float("inf")


CASES: dict[str, tuple[Any, Any, Any, Any, Any, dict[str, Any]]] = {
    "a training split of one class": (LogisticRegression(), C, X, LABELS, ONE_CLASS, {}),
    "no final fit": (LogisticRegression(), C, X, LABELS, ONE_CLASS, {"refit": False}),
    "kernels": (SVC(), C, X, LABELS, ONE_CLASS, {}),
    "a test split of one class": (TREE, DEPTH, X, LABELS, FOLDS, {"scoring": "roc_auc"}),
    "both": (LogisticRegression(), C, X, LABELS, FOLDS, {"scoring": "roc_auc"}),
    "an unknown category in all": (one_hot(Ridge()), RIDGE, KINDS, REAL, FOLDS, {}),
    "an unknown category in one": (one_hot(Ridge()), RIDGE, FEW, REAL, FOLDS, {}),
    "what a failure counts": (
        one_hot(LogisticRegression()), LOGISTIC, KINDS, REAL > 0, FOLDS, {"error_score": 0}
    ),
    "several metrics": (
        one_hot(LogisticRegression()), LOGISTIC, KINDS, REAL > 0, FOLDS,
        {"scoring": ["accuracy", "f1"], "refit": "f1"},
    ),
    "an error that is wanted": (
        one_hot(LogisticRegression()), LOGISTIC, KINDS, REAL > 0, FOLDS,
        {"error_score": "raise"},
    ),
    "an infinite score": (Ridge(), ALPHA, X, REAL, FOLDS, {"scoring": infinite}),
    "infinite losses": (Ridge(), ALPHA, X, REAL, FOLDS, {"scoring": minus_infinite}),
    "numbers as text": (LogisticRegression(), C, X.astype(str), LABELS > 0, 3, {}),
    "numbers as bytes": (Ridge(), ALPHA, X.astype("S20"), REAL, 3, {}),
    "text that a step reads": (
        make_pipeline(StandardScaler(), Ridge()), RIDGE, X.astype(str), REAL, 3, {}
    ),
}  # fmt: skip


def outcome(search: Any, X: Any, y: Any) -> tuple[dict[str, Any], set[Any]]:
    """What a search found, and the kinds of what it warned of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            search.fit(X, y)
        except ValueError as error:
            return {"error": str(error)[:60]}, set()
    table = search.cv_results_
    found = {k: v for k, v in table.items() if "_test_" in k}
    found |= {"best": search.best_index_, "refitted": hasattr(search, "best_estimator_")}
    found |= {"score": getattr(search, "best_score_", None)}
    kinds = {(w.category, str(w.message)[:30]) for w in said}
    return found, {kind for kind in kinds if kind[0] is not RuntimeWarning}


PIPELINES = [name for name, (estimator, *_) in CASES.items() if hasattr(estimator, "steps")]


@pytest.mark.parametrize(
    ("case", "optimized"),
    [*((name, False) for name in CASES), *((name, True) for name in PIPELINES)],
)
def test_a_search_tells_the_same(case: str, optimized: bool) -> None:
    estimator, grid, rows, y, cv, settings = CASES[case]
    theirs, warned = outcome(GridSearchCV(estimator, grid, cv=cv, **settings), rows, y)
    own = mlopt.optimize(estimator) if optimized else estimator
    search = mlopt.ModelSearchCV(
        own, grid, cv=cv, sampler="grid", n_trials=None, bandit=None, **settings
    )
    ours, told = outcome(search, rows, y)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        if isinstance(value, str):
            assert "unknown categories" in ours[name]
        else:
            np.testing.assert_allclose(ours[name], value, atol=1e-6, err_msg=name)
    assert told == warned


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "Float32", "UInt8"])
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_classes_of_nullable_numbers_have_the_type_that_the_estimator_gives(
    dtype: str, kind: Any
) -> None:
    y = pd.Series((X[:, 0] > 0).astype(int)).astype(dtype)
    search = mlopt.ModelSearchCV(kind(), C, sampler="grid", n_trials=None, cv=3).fit(X, y)
    theirs = GridSearchCV(kind(), C, cv=3).fit(X, y)
    assert search.classes_.dtype == theirs.classes_.dtype
    assert search.predict(X).dtype == theirs.predict(X).dtype
    assert search.best_score_ == pytest.approx(theirs.best_score_)
