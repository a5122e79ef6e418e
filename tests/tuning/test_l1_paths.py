"""L1 penalties in searches: paths of a fold, with the scores of separate fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import linear_model, svm
from sklearn.datasets import make_classification, make_regression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._testing import ignore_warnings

import mlopt
from mlopt.tuning.crews.linear_task import linear_form

Array = NDArray[Any]
TIGHT: dict[str, Any] = {"tol": 1e-8, "max_iter": 20_000}
ALPHAS = {"alpha": np.geomspace(10.0, 0.01, 7).tolist()}
STRENGTHS = {"C": np.geomspace(0.01, 10.0, 6).tolist()}
CV = KFold(3, shuffle=True, random_state=0)


def regression() -> tuple[Array, Array]:
    X, y = make_regression(150, 20, n_informative=5, noise=20.0, random_state=0)
    return X + 3.0, y


def classes() -> tuple[Array, Array]:
    X, y = make_classification(200, 15, flip_y=0.1, random_state=0)
    return X, y


def grid(estimator: Any, space: Any, **settings: Any) -> mlopt.ModelSearchCV:
    given = {"sampler": "grid", "n_trials": None, "bandit": None, "cv": CV} | settings
    return mlopt.ModelSearchCV(estimator, space, **given)


def batched(search: Any) -> bool:
    return "batched:" in str(search.plan_)


MODELS = [
    mlopt.Lasso(**TIGHT),
    linear_model.Lasso(**TIGHT),
    mlopt.ElasticNet(l1_ratio=0.4, **TIGHT),
    linear_model.ElasticNet(l1_ratio=0.4, positive=True, **TIGHT),
    linear_model.Lasso(fit_intercept=False, **TIGHT),
    mlopt.ElasticNet(l1_ratio=0.0, **TIGHT),
    linear_model.ElasticNet(l1_ratio=0.0, **TIGHT),
    mlopt.ElasticNet(l1_ratio=0.0, positive=True, **TIGHT),
]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_scores_are_those_of_a_fit_each(model: Any, sparse: bool) -> None:
    X, y = regression()
    rows = sp.csr_array(np.where(X > 4.0, X, 0.0)) if sparse else X
    ours, theirs = grid(model, ALPHAS), GridSearchCV(model, ALPHAS, cv=CV)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    ours.fit(rows, y, sample_weight=weights)
    theirs.fit(rows, y, sample_weight=weights)
    assert batched(ours)
    for split in range(3):
        name = f"split{split}_test_score"
        found, wanted = ours.cv_results_[name], theirs.cv_results_[name]
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    best, same = ours.best_estimator_, theirs.best_estimator_
    assert type(best) is type(model)
    np.testing.assert_allclose(best.coef_, same.coef_, atol=1e-3)
    np.testing.assert_allclose(best.intercept_, same.intercept_, atol=1e-2)
    for name in ("coef_", "intercept_", "dual_gap_", "n_iter_", "sparse_coef_"):
        assert np.shape(getattr(best, name)) == np.shape(getattr(same, name)), name


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        mlopt.Ridge(positive=True, tol=1e-8),
        mlopt.Ridge(positive=True, fit_intercept=False, tol=1e-8),
        linear_model.Ridge(positive=True, tol=1e-8),
        linear_model.Ridge(positive=True, solver="lbfgs", tol=1e-8),
    ],
    ids=str,
)
def test_positive_ridge_scores_as_with_a_fit_each(model: Any, sparse: bool) -> None:
    X, y = regression()
    rows = sp.csr_array(np.where(X > 4.0, X, 0.0)) if sparse else X
    space = {"alpha": [1e4, 100.0, 10.0, 1.0, 0.01]}
    ours, theirs = grid(model, space), GridSearchCV(model, space, cv=CV)
    # scikit-learn's steps end at some 1e-11 above the minimum.
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    ours.fit(rows, y, sample_weight=weights)
    theirs.fit(rows, y, sample_weight=weights)
    assert batched(ours)
    for split in range(3):
        name = f"split{split}_test_score"
        found, wanted = ours.cv_results_[name], theirs.cv_results_[name]
        np.testing.assert_allclose(found, wanted, atol=1e-4)
    best, same = ours.best_estimator_, theirs.best_estimator_
    assert type(best) is type(model)
    assert (best.coef_ >= 0).all()
    np.testing.assert_allclose(best.coef_, same.coef_, atol=5e-3)
    np.testing.assert_allclose(best.intercept_, same.intercept_, atol=1e-2)
    assert hasattr(best, "solver_")
    assert hasattr(best, "n_iter_")


def test_ridge_with_and_without_positive_weights_is_one_search() -> None:
    X, y = regression()
    space = {"alpha": [100.0, 1.0], "positive": [False, True]}
    model = mlopt.Ridge(tol=1e-8)
    ours, theirs = grid(model, space).fit(X, y), GridSearchCV(model, space, cv=CV).fit(X, y)
    found, wanted = (s.cv_results_["mean_test_score"] for s in (ours, theirs))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@ignore_warnings
@pytest.mark.parametrize("scoring", [None, "roc_auc"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        mlopt.LinearSVC("l1", tol=1e-8),
        mlopt.LinearSVC("l1", tol=1e-8, intercept_scaling=3.0, class_weight="balanced"),
        mlopt.LinearSVC("l1", tol=1e-8, fit_intercept=False),
        svm.LinearSVC("l1", dual=False, tol=1e-8, max_iter=100_000, random_state=0),
        svm.LinearSVC("l1", dual="auto", tol=1e-8, max_iter=100_000, random_state=0),
    ],
    ids=str,
)
def test_support_vectors_score_as_with_a_fit_each(
    model: Any, sparse: bool, scoring: Any
) -> None:
    X, y = classes()
    rows = sp.csr_array(np.where(np.abs(X) > 0.7, X, 0.0)) if sparse else X
    ours = grid(model, STRENGTHS, scoring=scoring).fit(rows, y)
    theirs = GridSearchCV(model, STRENGTHS, cv=CV, scoring=scoring).fit(rows, y)
    assert batched(ours)
    for split in range(3):
        name = f"split{split}_test_score"
        found, wanted = ours.cv_results_[name], theirs.cv_results_[name]
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    best, same = ours.best_estimator_, theirs.best_estimator_
    assert ((best.coef_ == 0) == (same.coef_ == 0)).all()
    np.testing.assert_allclose(best.coef_, same.coef_, atol=1e-4)
    np.testing.assert_allclose(best.intercept_, same.intercept_, atol=1e-4)
    for name in ("coef_", "intercept_", "n_iter_"):
        assert np.shape(getattr(best, name)) == np.shape(getattr(same, name)), name


def test_support_vectors_of_more_classes_are_fitted_alone() -> None:
    X, y = make_classification(150, 10, n_informative=4, n_classes=3, random_state=0)
    model = mlopt.LinearSVC("l1", tol=1e-6)
    ours = grid(model, STRENGTHS).fit(X, y)
    theirs = GridSearchCV(model, STRENGTHS, cv=CV).fit(X, y)
    assert not batched(ours)
    assert "each class has a path of its own" in str(ours.plan_)
    found, wanted = (s.cv_results_["mean_test_score"] for s in (ours, theirs))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.slow
@ignore_warnings
@pytest.mark.parametrize("scoring", [None, "roc_auc"])
@pytest.mark.parametrize(
    "model",
    [
        mlopt.LogisticRegression(l1_ratio=1.0, **TIGHT),
        linear_model.LogisticRegression(
            l1_ratio=0.7, solver="saga", tol=1e-7, max_iter=20_000, random_state=0
        ),
    ],
    ids=str,
)
def test_two_classes_score_as_with_a_fit_each(model: Any, scoring: Any) -> None:
    X, y = classes()
    ours = grid(model, STRENGTHS, scoring=scoring).fit(X, y)
    theirs = GridSearchCV(model, STRENGTHS, cv=CV, scoring=scoring).fit(X, y)
    assert batched(ours)
    for split in range(3):
        name = f"split{split}_test_score"
        found, wanted = ours.cv_results_[name], theirs.cv_results_[name]
        np.testing.assert_allclose(found, wanted, atol=2e-3)
    assert ours.best_estimator_.coef_.shape == (1, X.shape[1])
    assert np.shape(ours.best_estimator_.n_iter_) == (1,)


@pytest.mark.parametrize("bandit", ["action-elimination", "successive-halving"])
@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_bandits_and_samplers_train_them(bandit: str, sampler: str) -> None:
    X, y = regression()
    search = mlopt.ModelSearchCV(
        mlopt.Lasso(**TIGHT), {"alpha": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]}, cv=CV,
        n_trials=6, bandit=bandit, sampler=sampler, random_state=0,
    ).fit(X, y)  # fmt: skip
    tried = search.cv_results_
    for alpha, score in zip(tried["param_alpha"], tried["mean_test_score"], strict=True):
        alone = GridSearchCV(mlopt.Lasso(**TIGHT), {"alpha": [alpha]}, cv=CV).fit(X, y)
        assert score == pytest.approx(alone.best_score_, abs=1e-5)


def test_behind_preprocessing_each_fold_has_its_path() -> None:
    X, y = regression()
    model = make_pipeline(StandardScaler(), mlopt.Lasso(**TIGHT))
    space = {"lasso__alpha": ALPHAS["alpha"]}
    ours, theirs = grid(model, space), GridSearchCV(model, space, cv=CV)
    ours.fit(X, y)
    theirs.fit(X, y)
    assert batched(ours)
    found, wanted = (s.cv_results_["mean_test_score"] for s in (ours, theirs))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_shares_of_the_penalty_may_vary_too() -> None:
    X, y = regression()
    space = {"alpha": [0.1, 1.0], "l1_ratio": [0.2, 0.6, 1.0]}
    model = linear_model.ElasticNet(**TIGHT)
    ours, theirs = grid(model, space).fit(X, y), GridSearchCV(model, space, cv=CV).fit(X, y)
    found, wanted = (s.cv_results_["mean_test_score"] for s in (ours, theirs))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (linear_model.Lasso(0.0), "without a penalty"),
        (linear_model.ElasticNet(alpha=0.0), "without a penalty"),
        (linear_model.Ridge(positive=True, solver="svd"), "no positive coefficients"),
        (mlopt.Ridge(0.0, positive=True), "without a penalty"),
        (mlopt.Ridge(positive=True, max_iter=5), "`max_iter` may end it"),
        (mlopt.LinearSVC("l1", dual=True), "no dual"),
        (mlopt.LinearSVC("l1", loss="hinge"), "squared hinge"),
        (linear_model.Lasso(precompute=np.eye(3)), "is a matrix"),
        (linear_model.Lasso(warm_start=True), "starts where it was"),
        (linear_model.LogisticRegression(l1_ratio=1.0, solver="liblinear"), "another L1"),
        (linear_model.LogisticRegression(l1_ratio=1.0), "or none"),
        (mlopt.LogisticRegression(l1_ratio=1.0, C=np.inf), "no minimum"),
    ],
    ids=str,
)
def test_what_is_another_problem_is_fitted_alone(model: Any, why: str) -> None:
    form = linear_form(model)
    assert isinstance(form, str)
    assert why in form


@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_more_classes_score_as_with_a_fit_each(ratio: float, scoring: Any) -> None:
    X, y = make_classification(
        150, 10, n_informative=4, n_classes=3, flip_y=0.1, random_state=0
    )
    model = mlopt.LogisticRegression(l1_ratio=ratio, class_weight="balanced", **TIGHT)
    ours = grid(model, STRENGTHS, scoring=scoring).fit(X, y)
    theirs = GridSearchCV(model, STRENGTHS, cv=CV, scoring=scoring).fit(X, y)
    assert batched(ours)
    for split in range(3):
        name = f"split{split}_test_score"
        found, wanted = ours.cv_results_[name], theirs.cv_results_[name]
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    best, same = ours.best_estimator_, theirs.best_estimator_
    assert best.coef_.shape == (3, X.shape[1])
    assert ((best.coef_ == 0) == (same.coef_ == 0)).all()
    np.testing.assert_allclose(best.coef_, same.coef_, atol=1e-4)
    np.testing.assert_allclose(best.intercept_, same.intercept_, atol=1e-4)
