"""The final fit of a search where rows or targets are not those of an array."""

from __future__ import annotations

from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_array, csr_array, csr_matrix
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.metrics import fbeta_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC

import mlopt

X, Y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
NAMES = [f"c{number}" for number in range(X.shape[1])]
F2 = make_scorer(fbeta_score, beta=2)
C, ALPHA = {"C": [0.1, 1.0]}, {"alpha": [1.0, 10.0]}
CASES: dict[str, tuple[Any, dict[str, list[float]], Any]] = {
    "function": (LogisticRegression(), C, F2),
    "liblinear": (LogisticRegression(solver="liblinear"), C, None),
    "hinge": (LinearSVC(loss="hinge", random_state=0, max_iter=10**5), C, None),
    "seeded": (SGDClassifier(random_state=0), {"alpha": [1e-3, 1e-2]}, None),
    "limited": (Ridge(max_iter=100), ALPHA, None),
    "ours": (mlopt.LogisticRegression(tol=1e-6), C, F2),
    "ours, liblinear": (mlopt.LogisticRegression(solver="liblinear"), C, None),
    "ours, limited": (mlopt.Ridge(max_iter=100), ALPHA, None),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["array", "frame"])
def test_rows_are_gathered_for_it_and_the_plan_says_so(case: str, kind: str) -> None:
    estimator, space, scoring = CASES[case]
    lazy: Any = da.from_array(X, chunks=(100, X.shape[1]))
    here: Any = X
    if kind == "frame":
        lazy = dd.from_dask_array(lazy, columns=NAMES)
        here = pd.DataFrame(X, columns=NAMES)
    settings: dict[str, Any] = {"cv": 3, "scoring": scoring}
    expected = GridSearchCV(estimator, space, **settings).fit(here, Y)
    found = mlopt.ModelSearchCV(
        estimator, space, sampler="grid", bandit=None, **settings
    ).fit(lazy, da.from_array(Y, chunks=100))
    for side in ("mean_test_score", "rank_test_score"):
        np.testing.assert_allclose(found.cv_results_[side], expected.cv_results_[side])
    np.testing.assert_allclose(found.predict(here), expected.predict(here), atol=1e-6)
    assert "is gathered in this process" in str(found.plan_)
    if kind == "frame":
        assert list(found.feature_names_in_) == NAMES


@pytest.mark.parametrize("form", [csr_matrix, csr_array, csc_array])
def test_sparse_targets_of_many_labels(form: Any) -> None:
    rows, labels = make_multilabel_classification(90, 6, n_classes=3, random_state=0)
    model, space = OneVsRestClassifier(LogisticRegression()), {"estimator__C": [0.1, 1.0]}
    expected = GridSearchCV(model, space, cv=KFold(3)).fit(rows, form(labels))
    found = mlopt.ModelSearchCV(model, space, cv=KFold(3), sampler="grid", bandit=None)
    found.fit(rows, form(labels))
    assert found.best_score_ == expected.best_score_
    assert type(found.best_score_) is type(expected.best_score_)
    assert type(found.best_index_) is type(expected.best_index_)
    predicted, wanted = found.predict(rows), expected.predict(rows)
    np.testing.assert_array_equal(predicted.toarray(), wanted.toarray())


@pytest.mark.parametrize("scoring", [None, "roc_auc", "neg_log_loss", F2])
@pytest.mark.parametrize("kind", ["scikit-learn", "mlopt", "forest"])
def test_what_was_found_reads_a_collection_block_by_block(scoring: Any, kind: str) -> None:
    rng = np.random.default_rng(0)
    here = pd.DataFrame({"a": rng.normal(size=90), "c": rng.choice(list("xy"), 90)})
    y = pd.Series((here["a"] > 0).astype(int))
    lazy, targets = (dd.from_pandas(one, npartitions=3) for one in (here, y))
    last = LogisticRegression()
    if kind == "forest":
        last = RandomForestClassifier(5, random_state=0)
    model: Any = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough"), last
    )
    model = mlopt.optimize(model) if kind == "mlopt" else model
    space = {"max_depth": [1, 3]} if kind == "forest" else C
    search = mlopt.ModelSearchCV(
        model, space, cv=2, sampler="grid", bandit=None, scoring=scoring
    ).fit(lazy, targets)
    for method in ("predict", "predict_proba"):
        found, expected = getattr(search, method)(lazy), getattr(search, method)(here)
        assert isinstance(found, da.Array)
        np.testing.assert_allclose(found.compute(), expected)
    expected = search.score(here, y)
    assert search.score(lazy, targets) == search.score(lazy, y) == pytest.approx(expected)
    assert not hasattr(search, "transform")


def size(model: Any, X: Any, y: Any) -> float:
    del X, y
    return float(np.abs(model.coef_).sum())


def test_a_scorer_of_ones_own_is_given_the_model() -> None:
    lazy = da.from_array(X, chunks=(100, X.shape[1]))
    search = mlopt.ModelSearchCV(
        LogisticRegression(), C, cv=2, scoring=size, sampler="grid"
    )
    search.fit(X, Y)
    assert search.score(lazy, Y) == search.score(X, Y) == size(search.best_estimator_, 0, 0)


def test_why_a_method_is_not_there_is_told() -> None:
    search = mlopt.ModelSearchCV(LogisticRegression(), C, cv=2, sampler="grid", refit=False)
    with pytest.raises(AttributeError, match="has no attribute") as told:
        search.fit(X, Y).predict(X)
    assert "refit=False" in str(told.value.__cause__)


def test_predictions_of_a_split_whose_fit_fails_are_missing_and_the_search_is_not() -> None:
    one_class = np.flatnonzero(Y == 0)[:50]
    splits = [(np.arange(300), np.arange(300, 400)), (one_class, np.arange(400, 450))]
    search = mlopt.ModelSearchCV(
        LinearSVC(), C, cv=splits,
        sampler="grid", n_trials=None, bandit=None, error_score=0.0,
        return_predictions=True,
    )  # fmt: skip
    with pytest.warns(FitFailedWarning) as told:
        search.fit(X, Y)
    assert any("out-of-fold" in str(one.message) for one in told)
    missing = np.ma.getmaskarray(search.oof_predictions_)
    assert np.flatnonzero(~missing).tolist() == list(range(300, 400))
    assert search.plan_ is not None
    with pytest.raises(ValueError, match="class"):
        search.set_params(error_score="raise").fit(X, Y)
