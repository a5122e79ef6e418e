"""What a search trains: the models that scikit-learn's own ``fit`` would, to their end."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingRegressor,
)
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.linear_model import (
    Lasso,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, NuSVR
from sklearn.tree import ExtraTreeRegressor

import mlopt
from mlopt.tuning.bandits import ActionElimination

X, y = make_classification(120, 6, flip_y=0.1, random_state=0)
CV = StratifiedKFold(3, shuffle=True, random_state=0)
BANDITS = [None, "action-elimination", "successive-halving"]


def grid(estimator: Any, space: Any, **settings: Any) -> mlopt.ModelSearchCV:
    given = {"sampler": "grid", "n_trials": None, "bandit": None, "cv": CV} | settings
    return mlopt.ModelSearchCV(estimator, space, **given)


def same_scores(ours: Any, theirs: Any, atol: float = 0.0) -> None:
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    for split in range(ours.n_splits_):
        name = f"split{split}_test_score"
        np.testing.assert_allclose(
            ours.cv_results_[name], theirs.cv_results_[name], rtol=0, atol=atol
        )


@pytest.mark.parametrize("model", [SVC(), NuSVC(), SVR(), NuSVR()])
@pytest.mark.parametrize("piped", [False, True])
def test_machines_without_a_limit_of_passes(model: Any, piped: bool) -> None:
    name = "nu" if isinstance(model, NuSVC | NuSVR) else "C"
    space = {f"m__{name}" if piped else name: [0.2, 0.5]}
    estimator = Pipeline([("s", StandardScaler()), ("m", model)]) if piped else model
    ours = grid(estimator, space, bandit="action-elimination", cv=3).fit(X, y)
    same_scores(ours, GridSearchCV(estimator, space, cv=3).fit(X, y))


def test_weights_reach_what_hands_them_on() -> None:
    members = [("a", LogisticRegression()), ("b", GaussianNB())]
    model = StackingClassifier(members, cv=2)
    space = {"passthrough": [False, True]}
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    theirs = GridSearchCV(model, space, cv=CV).fit(X, y, sample_weight=weight)
    ours = grid(model, space).fit(X, y, sample_weight=weight)
    same_scores(ours, theirs, atol=1e-12)


@pytest.mark.parametrize(
    "model", [LogisticRegression(tol=1e-8), RandomForestClassifier(5, random_state=0)]
)
@pytest.mark.parametrize("scorer", [None, lambda m, X, y, sample_weight: m.score(X, y)])
def test_weights_reach_the_last_step_of_pipelines_within(model: Any, scorer: Any) -> None:
    inner = Pipeline([("pca", PCA(3, svd_solver="full")), ("c", model)])
    whole = Pipeline([("scale", StandardScaler()), ("m", inner)])
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    space = {"m__c__warm_start": [False]}
    search = grid(whole, space, scoring=scorer, return_predictions=True, n_jobs=1)
    search.fit(X, y, sample_weight=weight)
    given = {"m__c__sample_weight": weight}
    theirs = clone(whole).fit(X, y, **given)
    np.testing.assert_allclose(search.predict_proba(X), theirs.predict_proba(X), atol=2e-3)
    expected = cross_val_predict(whole, X, y, cv=CV, params=given)
    np.testing.assert_array_equal(search.oof_predictions_, expected)


@pytest.mark.parametrize("bandit", BANDITS)
@pytest.mark.parametrize("count", [-2, 2.5, "many"])
def test_a_forest_of_no_number_of_trees_fails_alone(count: Any, bandit: Any) -> None:
    model, space = RandomForestClassifier(random_state=0), {"n_estimators": [3, count]}
    with pytest.warns(FitFailedWarning, match="3 fits failed out of a total of 6"):
        search = grid(model, space, bandit=bandit, n_jobs=1).fit(X, y)
    assert search.best_params_ == {"n_estimators": 3}


class Briefly(dict[int, float]):
    """Weights that all look alike."""

    def __repr__(self) -> str:
        return "weights"


def test_weights_of_classes_are_told_apart_by_what_they_are() -> None:
    space = {"class_weight": [Briefly({0: 1, 1: 1}), Briefly({0: 1, 1: 50})]}
    model = LogisticRegression()
    ours = grid(model, space, scoring="recall").fit(X, y)
    same_scores(ours, GridSearchCV(model, space, cv=CV, scoring="recall").fit(X, y))


@pytest.mark.slow
@pytest.mark.parametrize("bandit", BANDITS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_complete_was_trained_as_long_as_it_asks(bandit: str | None) -> None:
    model = MLPClassifier((3,), max_iter=150, random_state=0)
    ours = grid(model, {"alpha": [1e-4, 1e-2]}, bandit=bandit).fit(X, y)
    theirs = GridSearchCV(model, {"alpha": [1e-4, 1e-2]}, cv=CV).fit(X, y)
    assert ours.cv_results_["state"].tolist() == ["COMPLETE"] * 2
    same_scores(ours, theirs)
    assert ours.best_estimator_.n_iter_ == theirs.best_estimator_.n_iter_


@pytest.mark.parametrize("bandit", BANDITS)
def test_linear_models_have_all_the_passes_they_ask_for(bandit: str | None) -> None:
    scales = np.logspace(0, 3, 6)
    model = LogisticRegression(max_iter=2000, tol=1e-8)
    ours = grid(model, {"C": [1.0, 100.0]}, bandit=bandit).fit(X * scales, y)
    assert (ours.cv_results_["passes"] <= 2000).all()
    short = grid(model, {"C": [1.0, 100.0]}, bandit=bandit, max_passes=4).fit(X * scales, y)
    assert (short.cv_results_["passes"] <= 4).all()
    assert np.max(short.best_estimator_.n_iter_) <= 4
    own = mlopt.LogisticRegression(max_iter=2000, tol=1e-8)
    short = grid(own, {"C": [1.0, 100.0]}, bandit=bandit, max_passes=4).fit(X * scales, y)
    assert np.max(short.best_estimator_.n_iter_) <= 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        GradientBoostingClassifier(n_estimators=40, n_iter_no_change=3, random_state=0),
        HistGradientBoostingClassifier(max_iter=30, random_state=0),
        HistGradientBoostingClassifier(max_iter=30, early_stopping=True, random_state=0),
    ],
)
def test_boosting_in_rungs_is_boosting(model: Any) -> None:
    space = {"max_depth": [2, 3]}
    ours = grid(model, space, bandit=ActionElimination(eps=np.inf)).fit(X, y)
    theirs = GridSearchCV(model, space, cv=CV).fit(X, y)
    same_scores(ours, theirs)
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))


TWO, THREE = y, np.arange(len(y)) % 3
LINEAR: dict[str, tuple[Any, dict[str, Any], dict[str, Any], str]] = {
    "a scorer that is a function": (
        LogisticRegression(), {"scoring": make_scorer(accuracy_score)}, {}, "function",
    ),
    "scorers by name in a dict of functions": (
        LogisticRegression(),
        {"scoring": {"a": make_scorer(accuracy_score)}, "refit": "a"}, {}, "function",
    ),
    "no penalty": (LogisticRegression(C=np.inf), {}, {}, "no minimum"),
    "a subclass": (type("Own", (LogisticRegression,), {})(), {}, {}, "no batched form"),
    "an order that is fixed": (SGDClassifier(random_state=3), {}, {}, "`random_state`"),
    "classes told from the rest": (
        LinearSVC(class_weight={0: 1, 1: 2, 2: 0.5}), {}, {}, "the weight of a class",
    ),
    "a class of no weight": (
        LogisticRegression(class_weight={0: 0.0}), {}, {}, "no positive weight",
    ),
    "a class of negative weight": (
        LinearSVC(class_weight={0: -1.0}), {}, {}, "no positive weight",
    ),
    "rows of no weight": (
        LogisticRegression(), {}, {"sample_weight": np.where(y == 1, 0.0, 1.0)},
        "not every class",
    ),
    "weights and balanced classes": (
        LogisticRegression(class_weight="balanced"), {},
        {"sample_weight": np.linspace(0.5, 2, 120)}, "balanced",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LINEAR)
def test_the_plan_says_what_was_not_batched_and_the_run_agrees(case: str) -> None:
    model, settings, fit_params, reason = LINEAR[case]
    y = THREE if case == "classes told from the rest" else TWO
    name = "alpha" if isinstance(model, SGDClassifier) else "C"
    value = getattr(model, name)
    search = grid(model, {name: [value]}, **settings)
    plan = search.explain(X, y, **fit_params)
    assert reason in plan.choices[0].rejected[0].reason
    assert plan.choices[0].chosen == "one fit a split, in parallel"
    ours = search.fit(X, y, **fit_params)
    assert "batched: " not in ours.plan_.explain()
    theirs = GridSearchCV(model, {name: [value]}, cv=CV, **settings).fit(X, y, **fit_params)
    np.testing.assert_array_equal(ours.best_estimator_.coef_, theirs.best_estimator_.coef_)


@pytest.mark.parametrize(
    ("model", "labels", "settings", "fit_params"),
    [
        (SGDClassifier(class_weight={0: 9, 1: 1, 2: 1}), THREE, {}, {}),
        (SGDClassifier(class_weight="balanced"), THREE, {}, {}),
        (SGDRegressor(), TWO, {}, {"sample_weight": np.arange(len(y)) % 2.0}),
        (SGDRegressor(), TWO, {"cv": [(np.arange(80) // 2, np.arange(80, 120))]}, {}),
    ],
)  # fmt: skip
def test_steps_of_a_stochastic_model_are_those_of_scikit_learn(
    model: Any, labels: Any, settings: dict[str, Any], fit_params: dict[str, Any]
) -> None:
    ours = grid(model, {"alpha": [1.0]}, **{"random_state": 0} | settings)
    ours.fit(X, labels, **fit_params)
    seeded = clone(model).set_params(random_state=0)
    theirs = GridSearchCV(seeded, {"alpha": [1.0]}, **{"cv": CV} | settings)
    same_scores(ours, theirs.fit(X, labels, **fit_params))
    np.testing.assert_array_equal(ours.best_estimator_.coef_, theirs.best_estimator_.coef_)


@pytest.mark.parametrize("solver", ["svd", "lbfgs"])
def test_a_solver_that_refuses_the_rows_is_asked(solver: str) -> None:
    rows = X if solver == "lbfgs" else sparse.csr_matrix(X)
    for model in (
        Ridge(solver=solver),
        make_pipeline(MaxAbsScaler(), Ridge(solver=solver)),
    ):
        name = "alpha" if isinstance(model, Ridge) else "ridge__alpha"
        search = grid(model, {name: [0.1, 1.0]}, cv=3)
        with pytest.raises(ValueError, match="All the 6 fits failed"):
            search.fit(rows, y)
    dense = grid(Ridge(solver="svd"), {"alpha": [0.1, 1.0]}, cv=3).fit(X, y)
    assert "batched" in dense.plan_.choices[0].chosen


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (Ridge(), TWO), (SGDRegressor(), TWO), (SGDClassifier(), TWO),
        (LinearSVC(), TWO), (LinearSVC(), THREE), (LogisticRegression(), TWO),
        (LogisticRegression(), THREE), (SGDClassifier(), THREE), (Lasso(), TWO),
        (RidgeClassifier(), TWO), (RidgeClassifier(), THREE),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_batched_winner_has_the_attributes_of_its_class(
    model: Any, labels: Any, dtype: Any, fit_intercept: bool
) -> None:
    name = "C" if hasattr(model, "C") else "alpha"
    rows = X.astype(dtype)
    model = clone(model).set_params(fit_intercept=fit_intercept)
    search = grid(model, {name: [0.01]}).fit(rows, labels)
    assert "batched" in str(search.plan_)
    ours = search.best_estimator_
    theirs = clone(model).set_params(**{name: 0.01}).fit(rows, labels)
    for attribute in ("coef_", "intercept_"):
        one, other = getattr(ours, attribute), getattr(theirs, attribute)
        assert type(one) is type(other), attribute
        assert np.shape(one) == np.shape(other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
        if not isinstance(model, SGDRegressor | SGDClassifier):
            np.testing.assert_allclose(one, other, atol=2e-3)
        else:
            assert ours.t_ == ours.n_iter_ * len(rows) + 1  # where `partial_fit` goes on
            assert type(ours.t_) is type(theirs.t_)
    assert type(ours.n_iter_) is type(theirs.n_iter_)
    assert getattr(ours, "solver_", None) == getattr(theirs, "solver_", None)


@pytest.mark.parametrize("labels", [TWO, THREE])
def test_a_batched_linear_svc_of_float32_rows_is_that_of_doubles(labels: Any) -> None:
    model, rows = LinearSVC(C=0.1, tol=1e-10, max_iter=5000), X.astype(np.float32)
    search = grid(model, {"C": [0.1]})
    assert "batched" in str(search.explain(rows, labels).choices[0].chosen)
    ours, theirs = search.fit(rows, labels).best_estimator_, clone(model).fit(rows, labels)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=1e-6)


def test_a_winner_that_has_not_converged_is_fitted_by_its_own_solver() -> None:
    model = LogisticRegression(max_iter=2)
    with pytest.warns(ConvergenceWarning):
        ours = grid(model, {"C": [1.0]}).fit(X, y).best_estimator_
    with pytest.warns(ConvergenceWarning):
        theirs = clone(model).fit(X, y)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)


@pytest.mark.parametrize("steps", [(), (FunctionTransformer(),)])
def test_a_winner_is_not_one_that_scikit_learn_stopped_far_above_the_minimum(
    steps: Any,
) -> None:
    far = X + 1e9 * np.eye(6)[0]  # as a time in seconds: lbfgs ends in four iterations
    model = make_pipeline(*steps, LogisticRegression(max_iter=10))
    with pytest.warns(ConvergenceWarning, match="further from the minimum: .* is kept"):
        found = grid(model, {"logisticregression__C": [1.0]}).fit(far, y)
    assert found.score(far, y) > found.best_score_ - 0.05
    assert clone(model).fit(far, y).score(far, y) < found.best_score_ - 0.2


def test_targets_of_two_columns_are_not_batched() -> None:
    rows, targets = make_regression(80, 4, n_targets=2, random_state=0)
    search = grid(Ridge(), {"alpha": [0.1, 1.0]}, cv=3)
    assert "one fit a split" in search.explain(rows, targets).choices[0].chosen
    ours = search.fit(rows, targets)
    same_scores(ours, GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=3).fit(rows, targets))


def test_ridge_in_a_scan_is_ridge_to_rounding() -> None:
    rows, targets = make_regression(200, 12, effective_rank=4, noise=5.0, random_state=0)
    space = {"alpha": [1e-3, 1.0, 100.0]}
    ours = grid(Ridge(), space, cv=3).fit(rows, targets)
    theirs = GridSearchCV(Ridge(), space, cv=3).fit(rows, targets)
    same_scores(ours, theirs, atol=1e-9)
    assert "batched" in ours.plan_.choices[0].chosen
    np.testing.assert_allclose(
        ours.best_estimator_.coef_, theirs.best_estimator_.coef_, rtol=1e-6
    )


@pytest.mark.parametrize(
    ("model", "space"),
    [
        (LinearSVC(), {"C": [0, 1.0]}),
        (LogisticRegression(), {"C": [-1.0, 1.0]}),
        (Ridge(), {"alpha": [-1.0, 1.0]}),
        (LogisticRegression(), {"class_weight": [{7: 1.0}, None]}),
        (make_pipeline(PCA(), LogisticRegression()), {"pca__n_components": [99, 2]}),
        (make_pipeline(PCA(), SVC()), {"pca__n_components": [99, 2]}),
    ],
)
def test_a_bad_value_fails_its_trial_alone(model: Any, space: dict[str, Any]) -> None:
    with pytest.warns(FitFailedWarning, match="3 fits failed out of a total of 6"):
        found = grid(model, space).fit(X, y)
    assert found.cv_results_["state"].tolist() == ["FAIL", "COMPLETE"]
    assert found.best_index_ == 1


def test_a_split_without_a_class_trains_as_scikit_learn_does() -> None:
    labels = np.repeat([0, 1, 2], 40)
    splits = [(np.arange(0, 80), np.arange(80, 120)), (np.arange(120), np.arange(30, 60))]
    ours = grid(LogisticRegression(), {"C": [0.1, 1.0]}, cv=splits).fit(X, labels)
    theirs = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=splits).fit(X, labels)
    same_scores(ours, theirs)


class Client:
    """Stands for a client of a cluster: it is neither copied nor pickled."""

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("cannot copy a client")

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a client")


def test_a_clone_shares_the_client_and_a_pickle_leaves_it_out() -> None:
    client = Client()
    events: list[str] = []
    search = grid(LogisticRegression(), {"C": [1.0]}, client=client, observer=events.append)
    copy = clone(search)
    assert copy.client is client
    copy.observer("noted")
    assert events == ["noted"]
    restored = pickle.loads(pickle.dumps(search.set_params(observer=None)))
    assert restored.client is None
    assert search.client is client


def test_a_search_is_cross_validated() -> None:
    search = grid(LogisticRegression(), {"C": [0.1, 1.0]})
    theirs = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=CV)
    np.testing.assert_allclose(
        cross_val_score(search, X, y, cv=3), cross_val_score(theirs, X, y, cv=3), atol=0.03
    )


@pytest.mark.slow
@pytest.mark.parametrize("model", [LinearSVC(), LogisticRegression()])
def test_dense_and_sparse_rows_give_one_model(model: Any) -> None:
    rows, labels = make_classification(200, 100, random_state=0)
    space = {"C": [0.1, 1.0]}
    dense = grid(model, space, cv=5).fit(rows[:180], labels[:180])
    thin = grid(model, space, cv=5).fit(sparse.csr_array(rows[:180]), labels[:180])
    theirs = GridSearchCV(model, space).fit(rows[:180], labels[:180])
    for found in (dense, thin):
        np.testing.assert_allclose(
            found.best_estimator_.coef_, theirs.best_estimator_.coef_, atol=2e-3
        )
        np.testing.assert_array_equal(found.predict(rows[180:]), theirs.predict(rows[180:]))


def test_samples_take_nothing_from_the_generator_that_trials_draw_from() -> None:
    X, y = make_classification(1500, 12, n_informative=6, random_state=0)
    forest, space = RandomForestClassifier(5), {"max_depth": [2, 3]}
    np.random.seed(1)  # noqa: NPY002  (forests without a seed draw from it)
    theirs = GridSearchCV(forest, space, cv=3).fit(X, y)
    np.random.seed(1)  # noqa: NPY002
    ours = mlopt.ModelSearchCV(
        forest, space, cv=3, sampler="grid", bandit=None, random_state=None, n_jobs=1
    ).fit(X, y)
    for name in ("split0_test_score", "mean_test_score"):
        np.testing.assert_array_equal(ours.cv_results_[name], theirs.cv_results_[name])
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))


def test_estimator_and_splitter_may_share_a_generator() -> None:
    found = []
    for make in (grid, GridSearchCV):
        shared = np.random.RandomState(0)
        forest = RandomForestClassifier(5, random_state=shared)
        folds = StratifiedKFold(3, shuffle=True, random_state=shared)
        found.append(make(forest, {"max_depth": [2, 5]}, cv=folds).fit(X, y))
        found[-1].drawn_next = shared.randint(1 << 30)
    ours, theirs = found
    same_scores(ours, theirs)
    assert ours.drawn_next == theirs.drawn_next
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))


def test_members_without_a_seed_differ_and_a_step_is_the_same_beside_others() -> None:
    trees = [(f"tree{i}", ExtraTreeRegressor(max_features=1)) for i in range(5)]
    space = {"trees__tree0__max_depth": [5, None]}
    model = Pipeline([("reduce", PCA()), ("trees", VotingRegressor(trees))])
    found = grid(model, space, cv=3).fit(X, y).best_estimator_
    seeds = [tree.random_state for tree in found["trees"].estimators_]
    assert len(set(seeds)) == 5
    again = grid(model, {"trees__n_jobs": [1]}, cv=3).fit(X, y).best_estimator_
    assert [tree.random_state for tree in again["trees"].estimators_] == seeds
    other = Pipeline([("reduce", PCA()), ("trees", Ridge())])
    beside = grid(other, {"trees__alpha": [1.0]}, cv=3).fit(X, y).best_estimator_
    assert beside["reduce"].random_state == found["reduce"].random_state
    assert grid(PCA(), {"n_components": [2]}, cv=3).fit(X).best_estimator_.random_state == 0
