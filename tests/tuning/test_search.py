"""`ModelSearchCV` against scikit-learn's searches, and what it promises beyond them."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from optuna.distributions import IntDistribution
from scipy import sparse
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import mlopt
from mlopt import events
from mlopt.errors import InputError

Array = NDArray[np.float64]
C_VALUES = [0.01, 0.1, 1.0, 10.0]


@pytest.fixture(scope="module")
def cancer() -> tuple[Array, Array]:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def grid(estimator: Any, space: dict[str, Any], **settings: Any) -> mlopt.ModelSearchCV:
    return mlopt.ModelSearchCV(
        estimator, space, **{"sampler": "grid", "bandit": None, "n_trials": None} | settings
    )


def same_scores(ours: Any, theirs: Any, tolerance: float = 1e-9) -> None:
    """Equal up to one row of a fold where margins are within tolerance of zero."""
    by_params = {str(p): m for p, m in zip(
        theirs.cv_results_["params"], theirs.cv_results_["mean_test_score"], strict=True
    )}  # fmt: skip
    for p, m in zip(
        ours.cv_results_["params"], ours.cv_results_["mean_test_score"], strict=True
    ):
        assert m == pytest.approx(by_params[str(p)], abs=tolerance)


@pytest.mark.parametrize(
    ("estimator", "space"),
    [
        (LogisticRegression(tol=1e-8, max_iter=1000), {"C": C_VALUES}),
        (LinearSVC(tol=1e-8, max_iter=100_000, dual=False), {"C": [0.01, 0.1]}),
        (
            LogisticRegression(tol=1e-8, max_iter=999, class_weight="balanced"),
            {"C": [0.1, 1.0]},
        ),
        (DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 3]}),
        (make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8, max_iter=1000)),
         {"logisticregression__C": C_VALUES}),
    ],
)  # fmt: skip
def test_a_grid_without_a_bandit_scores_as_grid_search_does(
    estimator: Any, space: dict[str, Any], cancer: tuple[Array, Array]
) -> None:
    X, y = cancer
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    ours = grid(estimator, space, cv=cv).fit(X, y)
    theirs = GridSearchCV(estimator, space, cv=cv).fit(X, y)

    same_scores(ours, theirs, tolerance=2 / len(y))
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=2 / len(y))


@pytest.mark.slow
def test_several_classes_train_as_softmax_columns() -> None:
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(tol=1e-8, max_iter=2000)
    ours = grid(model, {"C": C_VALUES}).fit(X, y)
    theirs = GridSearchCV(model, {"C": C_VALUES}).fit(X, y)

    same_scores(ours, theirs, tolerance=1 / 30)
    np.testing.assert_allclose(
        ours.best_estimator_.predict_proba(X),
        theirs.best_estimator_.predict_proba(X),
        atol=0.02,
    )


@pytest.mark.parametrize(
    "scoring", [None, "neg_mean_squared_error", "neg_mean_absolute_error"]
)
def test_regression_scores_as_grid_search_does(scoring: str | None) -> None:
    X, y = load_diabetes(return_X_y=True)
    space = {"alpha": [0.01, 0.1, 1.0]}
    ours = grid(Ridge(tol=1e-8), space, scoring=scoring).fit(X, y)
    theirs = GridSearchCV(Ridge(), space, scoring=scoring).fit(X, y)

    scale = np.abs(theirs.cv_results_["mean_test_score"]).max()
    same_scores(ours, theirs, tolerance=1e-3 * scale)
    assert ours.best_params_ == theirs.best_params_


def test_sparse_and_dense_features_give_the_same_search(
    cancer: tuple[Array, Array],
) -> None:
    X, y = cancer
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    space = {"C": C_VALUES}
    dense = grid(LogisticRegression(), space).fit(X, y)
    csr = grid(LogisticRegression(), space).fit(sparse.csr_matrix(X), y)

    np.testing.assert_allclose(
        dense.cv_results_["mean_test_score"],
        csr.cv_results_["mean_test_score"],
        atol=2 / 500,
    )


def test_the_same_seed_gives_the_same_search_whatever_the_threads(
    cancer: tuple[Array, Array],
) -> None:
    X, y = cancer
    space = {"alpha": loguniform(1e-6, 1e-1), "loss": ["hinge", "log_loss"]}
    runs = [
        mlopt.ModelSearchCV(
            SGDClassifier(max_iter=20),
            space,
            n_trials=12,
            cv=3,
            n_jobs=threads,
            max_passes=20,
        ).fit(X, y)
        for threads in (1, 2)
    ]
    tables = [run.cv_results_ for run in runs]

    assert tables[0]["params"] == tables[1]["params"]
    np.testing.assert_array_equal(
        tables[0]["mean_test_score"], tables[1]["mean_test_score"]
    )
    assert tables[0]["state"].tolist() == tables[1]["state"].tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    "bandit", ["action-elimination", "successive-halving", "hyperband"]
)
def test_a_bandit_saves_passes_and_keeps_the_score(
    bandit: str, cancer: tuple[Array, Array]
) -> None:
    X, y = cancer
    space = {"alpha": loguniform(1e-6, 1e2), "eta0": loguniform(1e-4, 1)}
    model = SGDClassifier(learning_rate="constant", eta0=0.1, max_iter=60, tol=None)
    settings: dict[str, Any] = {"n_trials": 24, "sampler": "random", "cv": 3}
    everything = mlopt.ModelSearchCV(model, space, bandit=None, **settings).fit(X, y)
    pruned = mlopt.ModelSearchCV(model, space, bandit=bandit, **settings).fit(X, y)

    assert pruned.passes_ < 0.8 * everything.passes_
    assert pruned.best_score_ > everything.best_score_ - 0.02
    assert set(pruned.cv_results_["state"]) >= {"COMPLETE", "PRUNED"}


def test_several_families_compete_and_the_defaults_come_first(
    cancer: tuple[Array, Array],
) -> None:
    X, y = cancer
    search = mlopt.ModelSearchCV(
        {
            "linear": (LogisticRegression(), {"C": loguniform(1e-3, 1e3)}),
            "tree": (DecisionTreeClassifier(), {"max_depth": range(1, 8)}),
            "bayes": (GaussianNB(), {"var_smoothing": loguniform(1e-10, 1e-6)}),
        },
        n_trials=12, cv=3,
    ).fit(X, y)  # fmt: skip

    assert search.cv_results_["family"][:3].tolist() == ["linear", "tree", "bayes"]
    assert search.cv_results_["params"][0] == {"C": 1.0}
    assert search.best_params_["family"] == "linear"
    assert search.score(X, y) > 0.95


def test_several_metrics_are_kept_and_one_decides(cancer: tuple[Array, Array]) -> None:
    X, y = cancer
    settings: dict[str, Any] = {"scoring": ["accuracy", "roc_auc"], "refit": "roc_auc"}
    ours = grid(
        LogisticRegression(tol=1e-8, max_iter=1000), {"C": C_VALUES}, **settings
    ).fit(X, y)
    theirs = GridSearchCV(
        LogisticRegression(tol=1e-8, max_iter=1000), {"C": C_VALUES}, **settings
    ).fit(X, y)

    for metric in ("accuracy", "roc_auc"):
        np.testing.assert_allclose(
            np.sort(ours.cv_results_[f"mean_test_{metric}"]),
            np.sort(theirs.cv_results_[f"mean_test_{metric}"]),
            atol=0.004,
        )
    assert ours.multimetric_


def test_weights_of_zero_are_as_good_as_absent_rows(cancer: tuple[Array, Array]) -> None:
    X, y = cancer
    out = np.zeros(len(y), bool)
    out[::7] = True
    folds = np.arange(len(y)) % 3
    cv = [
        (np.flatnonzero(folds != k), np.flatnonzero((folds == k) & ~out)) for k in range(3)
    ]
    weighted = grid(LogisticRegression(tol=1e-9), {"C": C_VALUES}, cv=cv).fit(
        X, y, sample_weight=np.where(out, 0.0, 1.0)
    )
    cut = [(np.setdiff1d(a, np.flatnonzero(out)), b) for a, b in cv]
    absent = grid(LogisticRegression(tol=1e-9), {"C": C_VALUES}, cv=cut).fit(X, y)

    np.testing.assert_allclose(
        weighted.cv_results_["mean_test_score"],
        absent.cv_results_["mean_test_score"],
        atol=1e-9,
    )


def test_groups_stay_together(cancer: tuple[Array, Array]) -> None:
    X, y = cancer
    groups = np.arange(len(y)) // 10
    search = grid(LogisticRegression(), {"C": [1.0]}, cv=GroupKFold(4)).fit(
        X, y, groups=groups
    )

    assert search.n_splits_ == 4


class Moody(ClassifierMixin, BaseEstimator):
    """Raises for some of its parameters."""

    def __init__(self, mood: float = 0.0) -> None:
        self.mood = mood

    def fit(self, X: Array, y: Array) -> Moody:
        if self.mood > 0.5:
            raise RuntimeError(f"not today: {self.mood}")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Array) -> Array:
        return np.full(len(X), self.classes_[int(self.mood > 0.2)])


def test_a_trial_that_raises_fails_alone_and_says_why(cancer: tuple[Array, Array]) -> None:
    X, y = cancer
    search = grid(Moody(), {"mood": [0.1, 0.3, 0.9]})
    with pytest.warns(FitFailedWarning, match="5 fits failed out of a total of 15"):
        search.fit(X, y)

    assert search.cv_results_["state"].tolist().count("FAIL") == 1
    reason = next(r for r in search.cv_results_["reason"] if r)
    assert "not today: 0.9" in reason
    assert search.best_params_ == {"mood": 0.3}


def test_a_search_whose_trials_all_fail_says_so(cancer: tuple[Array, Array]) -> None:
    X, y = cancer
    with pytest.raises(ValueError, match=r"(?s)All the 50 fits failed.*not today"):
        grid(Moody(), {"mood": np.linspace(0.6, 1.0, 10).tolist()}).fit(X, y)


def test_many_bad_values_come_before_the_good_one(cancer: tuple[Array, Array]) -> None:
    X, y = cancer
    moods = [*np.linspace(0.6, 1.0, 12).tolist(), 0.1]
    with pytest.warns(FitFailedWarning):
        search = grid(Moody(), {"mood": moods}, cv=2).fit(X, y)
    assert search.best_params_ == {"mood": 0.1}


def test_a_search_without_an_end_stops_when_its_first_trials_all_fail(
    cancer: tuple[Array, Array],
) -> None:
    X, y = cancer
    search = mlopt.ModelSearchCV(
        Moody(), {"mood": loguniform(0.6, 1.0)}, n_trials=None, timeout=60, cv=2
    )
    with pytest.raises(InputError, match=r"trials all failed.*not today"):
        search.fit(X, y)


def test_out_of_fold_predictions_on_request(cancer: tuple[Array, Array]) -> None:
    X, y = cancer
    search = grid(LogisticRegression(), {"C": C_VALUES}, return_predictions=True).fit(X, y)

    assert search.oof_predictions_.shape == y.shape
    right = np.mean(search.oof_predictions_ == y)
    assert right == pytest.approx(search.best_score_, abs=0.01)


def test_out_of_fold_labels_are_whole_where_a_fold_predicts_short_ones_only() -> None:
    X = np.arange(60.0)[:, None] // 10 % 3
    y = [["a", "b", "longer"][int(x)] for x in X[:, 0]]
    cv = [(np.arange(30, 50), np.arange(20)), (np.arange(40), np.arange(40, 60))]
    search = grid(DecisionTreeClassifier(), {"max_depth": [2]}, cv=cv)
    search.set_params(return_predictions=True).fit(X, y)

    assert search.oof_predictions_[40:].tolist() == y[40:]


@pytest.mark.parametrize("names", [[0, 1], ["no", "yes"]])
def test_out_of_fold_predictions_are_masked_where_no_split_tests(names: list[Any]) -> None:
    X = np.arange(40.0)[:, None]
    y = np.array(names)[np.arange(40) % 2]
    cv = [(np.arange(20), np.arange(30, 40))]
    search = grid(DecisionTreeClassifier(), {"max_depth": [2]}, cv=cv)
    found = search.set_params(return_predictions=True).fit(X, y).oof_predictions_

    assert found.dtype == y.dtype
    assert np.ma.getmaskarray(found).tolist() == [True] * 30 + [False] * 10


def test_short_names_reach_into_a_pipeline(cancer: tuple[Array, Array]) -> None:
    X, y = cancer
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    search = grid(pipe, {"C": [0.1, 1.0]}).fit(X, y)

    assert set(search.best_params_) == {"logisticregression__C"}


def test_a_data_frame_keeps_its_names() -> None:
    data = load_breast_cancer(as_frame=True)
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    search = grid(pipe, {"C": [0.1, 1.0]}).fit(data.data, data.target)

    assert list(search.feature_names_in_) == list(data.data.columns)
    assert search.predict(data.data.iloc[:3]).shape == (3,)


def test_no_configuration_is_tried_twice_and_a_small_space_ends(
    cancer: tuple[Array, Array],
) -> None:
    X, y = cancer
    search = mlopt.ModelSearchCV(
        LogisticRegression(), {"C": C_VALUES}, n_trials=50, cv=2, sampler="tpe"
    ).fit(X, y)

    assert sorted(p["C"] for p in search.cv_results_["params"]) == C_VALUES


def test_the_plan_is_there_before_and_after(cancer: tuple[Array, Array]) -> None:
    X, y = cancer
    search = grid(LogisticRegression(), {"C": C_VALUES})
    before = search.explain(X, y)
    after = search.fit(X, y).plan_

    assert "LogisticRegression" in before.explain()
    assert before.measured is None
    assert after.measured is not None


@pytest.mark.slow
def test_time_limits_hold(cancer: tuple[Array, Array]) -> None:
    X, y = cancer
    space = {"C": loguniform(1e-4, 1e4)}
    search = mlopt.ModelSearchCV(LogisticRegression(), space, n_trials=None, timeout=1.5)
    search.fit(X, y)

    assert search.plan_.measured is not None
    assert search.plan_.measured < 6


def test_ctrl_c_keeps_what_was_found(cancer: tuple[Array, Array]) -> None:
    X, y = cancer

    def impatient(event: events.Event) -> None:
        if isinstance(event, events.RungDone) and event.rung == 2:
            raise KeyboardInterrupt

    search = mlopt.ModelSearchCV(
        DecisionTreeClassifier(), {"max_depth": loguniform_int(1, 500)}, n_trials=400,
        batch_size=4, cv=2, observer=impatient,
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)

    assert search.interrupted_
    assert 4 <= len(search.cv_results_["params"]) < 400
    assert search.score(X, y) > 0.9


def test_no_limit_of_trials_may_be_written_as_infinity(cancer: tuple[Array, Array]) -> None:
    X, y = cancer
    found = grid(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2, n_trials=math.inf)
    assert len(found.fit(X, y).cv_results_["params"]) == 2


def loguniform_int(low: int, high: int) -> Any:
    return IntDistribution(low, high, log=True)


def test_a_threaded_final_fit_leaves_n_jobs_as_it_was(cancer: tuple[Array, Array]) -> None:
    X, y = cancer
    search = grid(RandomForestClassifier(n_estimators=5), {"max_depth": [2, 4]}, cv=2)

    assert search.fit(X, y).best_estimator_.n_jobs is None
    members = [("a", RandomForestClassifier(n_estimators=5))]
    search = grid(VotingClassifier(members), {"voting": ["soft"]}, cv=2, n_jobs=2)
    assert search.fit(X, y).best_estimator_.estimators_[0].n_jobs is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.full((40, 2), np.nan)}, "NaN"),
        ({"y": np.zeros(40)}, "at least 2 classes"),
        ({"y": np.zeros(39)}, "X has 40, y has 39"),
        ({"space": {"K": [1]}}, "K"),
        ({"space": {}, "estimator": {"a": LogisticRegression()}}, "pair"),
        ({"n_trials": 0}, "`n_trials` must be a positive number"),
        ({"sampler": "psychic"}, "`sampler` must be one of"),
        ({"bandit": "one-armed"}, "`bandit` must be one of"),
        ({"space": {"C": loguniform(1, 2)}, "n_trials": None}, "needs an end"),
        ({"space": {"C": loguniform(1, 2)}, "n_trials": math.inf}, "needs an end"),
        ({"max_passes": math.inf}, "must be finite, or None"),
        ({"verbose": "loud"}, "`verbose` must be a number"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], message: str) -> None:
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {
        "estimator": LogisticRegression(), "space": {"C": [1.0]}, "n_trials": 4,
        "sampler": "grid", "bandit": None, "X": rng.normal(size=(40, 2)),
        "y": np.arange(40) % 2,
    } | change  # fmt: skip
    estimator, X, y = given.pop("estimator"), given.pop("X"), given.pop("y")
    space = given.pop("space") or None

    with pytest.raises(ValueError, match=message):
        mlopt.ModelSearchCV(estimator, space, **given).fit(X, y)


def test_a_frame_with_text_goes_through_its_pipeline() -> None:
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200), "b": rng.choice(["x", "y"], 200)})
    y = (frame["a"] + (frame["b"] == "x") > 0.5).astype(int)
    prepare = make_column_transformer((StandardScaler(), ["a"]), (OneHotEncoder(), ["b"]))
    pipe = make_pipeline(prepare, LogisticRegression())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = grid(pipe, {"C": [0.1, 1.0, 10.0]}, cv=3).fit(frame, y)

    assert search.best_score_ > 0.9


def test_places_that_hold_several_numbers_hold_their_sum() -> None:
    rng, y = np.random.default_rng(0), np.arange(60) % 2
    X = rng.normal(size=(60, 2)) + y[:, None]
    parts = np.column_stack((0.25 * X, 0.5 * X, 0.25 * X))
    places = np.tile([0, 1], 180), np.arange(0, 361, 6)
    twice = sparse.csr_array((parts.ravel(), *places), shape=X.shape)
    model = make_pipeline(MaxAbsScaler(), LogisticRegression())
    scores = [
        grid(one, {"C": [0.1, 10.0]}).fit(rows, y).cv_results_["mean_test_score"]
        for one in (LogisticRegression(), model)
        for rows in (X, twice)
    ]
    np.testing.assert_allclose(scores[::2], scores[1::2])
    assert mlopt.optimize(model).fit(twice, y).score(X, y) == model.fit(X, y).score(X, y)


def test_a_family_may_have_several_spaces() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    spaces = [{"C": [1.0, 2.0]}, {"C": [0.1], "fit_intercept": [True, False]}]
    families = {
        "logistic": (LogisticRegression(), spaces),
        "ridge": (RidgeClassifier(), [{"alpha": [1.0]}]),
    }
    found = mlopt.ModelSearchCV(families, cv=2, sampler="grid").fit(X, y).cv_results_
    assert sorted(found["family"]) == ["logistic-0"] * 2 + ["logistic-1"] * 2 + ["ridge"]
    with pytest.raises(InputError, match="at least one space"):
        mlopt.ModelSearchCV({"a": (LogisticRegression(), [])}).fit(X, y)
