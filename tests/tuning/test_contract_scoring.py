"""How a search scores: every form of ``scoring``, ``refit`` and ``error_score``."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder
from sklearn.tree import DecisionTreeRegressor

import mlopt

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
y = (X[:, 0] + 0.5 * RNG.normal(size=80) > 0).astype(int)
C = {"C": [0.01, 1.0]}


def grid(estimator: Any, space: Any, **settings: Any) -> mlopt.ModelSearchCV:
    given = {"sampler": "grid", "n_trials": None, "bandit": None, "cv": 3} | settings
    return mlopt.ModelSearchCV(estimator, space, **given)


def same_tables(ours: Any, theirs: Any) -> None:
    for name, column in theirs.cv_results_.items():
        if not name.endswith("_time"):
            np.testing.assert_array_equal(ours.cv_results_[name], column)


def test_a_scorer_of_rows_alone() -> None:
    def inertia(estimator: Any, X: Any, y: Any = None) -> float:
        return float(-np.abs(estimator.transform(X)).min(axis=1).sum())

    model, space = KMeans(random_state=0, n_init=1), {"n_clusters": [2, 3]}
    ours = grid(model, space, scoring=inertia, random_state=None).fit(X)
    same_tables(ours, GridSearchCV(model, space, cv=3, scoring=inertia).fit(X))
    two = grid(model, space, scoring=lambda est, X: inertia(est, X)).fit(X)
    assert two.best_params_ == ours.best_params_


def both(estimator: Any, X: Any, y: Any) -> dict[str, float]:
    predicted = estimator.predict(X)
    return {"acc": accuracy_score(y, predicted), "f1": f1_score(y, predicted)}


def test_a_scorer_may_give_several_metrics() -> None:
    model = make_pipeline(StandardScaler(), LogisticRegression())
    space = {"logisticregression__C": [0.01, 1.0]}
    settings: dict[str, Any] = {"scoring": both, "refit": "f1"}
    ours = grid(model, space, **settings).fit(X, y)
    theirs = GridSearchCV(model, space, cv=3, **settings).fit(X, y)
    same_tables(ours, theirs)
    assert ours.multimetric_
    assert ours.score(X, y) == theirs.score(X, y)
    with pytest.raises(ValueError, match="refit must be set to a scorer key"):
        grid(model, space, scoring=both).fit(X, y)


def test_a_function_may_choose_among_several_metrics() -> None:
    def second(table: dict[str, Any]) -> int:
        assert "mean_test_f1" in table
        return 1

    search = grid(LogisticRegression(), C, scoring=["accuracy", "f1"], refit=second)
    assert search.fit(X, y).best_index_ == 1
    with pytest.raises(IndexError, match="out of range"):
        search.set_params(refit=lambda table: 2).fit(X, y)


def test_a_scorer_sees_the_whole_pipeline_and_the_rows_as_given() -> None:
    seen = []

    def scorer(estimator: Any, X: Any, y: Any) -> float:
        seen.append((list(estimator.named_steps), float(np.mean(X))))
        return float(estimator.score(X, y))

    model = make_pipeline(StandardScaler(), LogisticRegression())
    grid(model, {"logisticregression__C": [1.0]}, scoring=scorer).fit(X + 100, y)
    assert all(names == ["standardscaler", "logisticregression"] for names, _ in seen)
    assert all(mean > 99 for _, mean in seen)


class Picky(ClassifierMixin, BaseEstimator):
    """Raises in the folds without its row, when it is told to."""

    def __init__(self, row: float | None = None) -> None:
        self.row = row

    def fit(self, X: Any, y: Any) -> Picky:
        if self.row is not None and self.row not in X[:, 0]:
            raise RuntimeError("the row is not here")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.classes_[0])


@pytest.mark.parametrize("error_score", [0.0, 1.0, np.nan])
def test_the_error_score_stands_for_each_fit_that_fails(error_score: float) -> None:
    space: dict[str, Any] = {"row": [None, X[0, 0]]}
    with pytest.warns(FitFailedWarning, match="1 fits failed out of a total of 6"):
        ours = grid(Picky(), space, error_score=error_score).fit(X, y)
    theirs = GridSearchCV(Picky(), space, cv=3, error_score=error_score)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(X, y)
    same_tables(ours, theirs)
    assert ours.best_params_ == theirs.best_params_
    assert ours.cv_results_["state"].tolist() == ["COMPLETE", "FAIL"]


def test_raise_raises_what_the_fit_raised() -> None:
    with pytest.raises(RuntimeError, match="the row is not here"):
        grid(Picky(), {"row": [None, X[0, 0]]}, error_score="raise").fit(X, y)


class Stops(Picky):
    """Its fits end with a StopIteration; ``row`` names those that do."""

    def fit(self, X: Any, y: Any) -> Stops:
        if self.row is not None and len(X) >= self.row:
            raise StopIteration("no more")
        super().fit(X, y)
        return self


def ends() -> Any:
    yield np.arange(40), np.arange(40, 80)
    next(iter(()))


def scores_nothing(*_: Any) -> float:
    raise StopIteration("no score")


@pytest.mark.parametrize(
    "settings",
    [
        {"rows": 50},
        {"rows": 50, "error_score": "raise"},
        {"rows": 80},
        {"rows": 81, "cv": ends},
        {"rows": 81, "scoring": scores_nothing},
        {"rows": 81, "scoring": scores_nothing, "error_score": "raise"},
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_stop_iteration_ends_what_it_ends_in_scikit_learn(
    settings: dict[str, Any],
) -> None:
    def outcome(make: Any) -> str:
        given = {"cv": 3, **settings}
        space = {"row": [None, given.pop("rows")]}
        given["cv"] = given["cv"]() if callable(given["cv"]) else given["cv"]
        try:
            return str(
                make(Stops(), space, **given).fit(X, y).cv_results_["mean_test_score"]
            )
        except Exception as error:
            return repr(error)

    assert outcome(grid) == outcome(GridSearchCV)


@pytest.mark.parametrize("model", [Picky(), LogisticRegression()])
def test_times_are_measured(model: Any) -> None:
    space = C if isinstance(model, LogisticRegression) else {"row": [None]}
    table = grid(model, space).fit(X, y).cv_results_
    for name in ("fit", "score"):
        assert (table[f"mean_{name}_time"] > 0).all()
    if isinstance(model, Picky):
        assert (table["std_fit_time"] > 0).all()


class Ungraded(LogisticRegression):
    """Its predictions raise for some parameters, or for some rows."""

    def __init__(self, C: float = 1.0, fails: str = "") -> None:
        super().__init__(C=C)
        self.fails = fails

    def predict(self, X: Any) -> Any:
        if self.fails == "always" or (self.fails == "first row" and X[0, 0] == self.first):
            raise RuntimeError("no answer")
        return super().predict(X)

    first = X[np.flatnonzero(y == y[0])[0], 0]


def test_a_scorer_of_several_metrics_that_always_fails_has_one_score() -> None:
    settings: dict[str, Any] = {"scoring": both, "refit": "f1", "error_score": 0.25}
    model, space = Ungraded(fails="always"), {"C": [0.1, 1.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = grid(model, space, return_train_score=True, **settings).fit(X, y)
        theirs = GridSearchCV(model, space, cv=3, return_train_score=True, **settings)
        same_tables(ours, theirs.fit(X, y))
    assert not ours.multimetric_
    assert set(ours.cv_results_) >= {"split0_test_score", "mean_train_score"}
    assert ours.best_score_ == theirs.best_score_ == 0.25


@pytest.mark.parametrize("fails", ["first row", "always"])
def test_the_error_score_stands_for_all_metrics_where_a_scorer_fails(fails: str) -> None:
    settings: dict[str, Any] = {"scoring": both, "refit": "f1", "error_score": -1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = grid(Ungraded(), {"fails": [fails, ""]}, **settings).fit(X, y)
    plain = grid(Ungraded(), {"fails": [""]}, **settings).fit(X, y)
    for name in ("acc", "f1"):
        scores = np.array([ours.cv_results_[f"split{i}_test_{name}"] for i in range(3)])
        well = np.array([plain.cv_results_[f"split{i}_test_{name}"][0] for i in range(3)])
        np.testing.assert_array_equal(scores[:, 1], well)
        failed = [0] if fails == "first row" else [0, 1, 2]
        wanted = np.where(np.isin(range(3), failed), -1.0, well)
        np.testing.assert_array_equal(scores[:, 0], wanted)
    assert ours.best_params_ == {"fails": ""}


def test_what_failed_fits_leave_is_said_in_scikit_learns_words() -> None:
    space: dict[str, Any] = {"row": [None, X[0, 0]]}
    said = []
    for search in (GridSearchCV(Picky(), space, cv=3), grid(Picky(), space)):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            search.fit(X, y)
        said.append([(w.category, str(w.message)[:40]) for w in found])
    assert said[0] == said[1]


@pytest.mark.parametrize("model", [Ridge(), DecisionTreeRegressor(random_state=0)])
def test_rows_trained_on_are_scored_as_transform_gives_them(model: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, (120, 1)).astype(str).astype(object)
    steps = Pipeline([("code", TargetEncoder(cv=KFold(3))), ("model", model)])
    name = "alpha" if isinstance(model, Ridge) else "max_depth"
    space = {f"model__{name}": [1, 3]}
    given: dict[str, Any] = {"cv": 3, "return_train_score": True}
    y = rng.normal(size=120)
    ours = mlopt.ModelSearchCV(steps, space, sampler="grid", bandit=None, **given).fit(X, y)
    theirs = GridSearchCV(steps, space, **given).fit(X, y)
    for column in ("mean_test_score", "mean_train_score"):
        np.testing.assert_allclose(ours.cv_results_[column], theirs.cv_results_[column])


@pytest.mark.parametrize("refit", [False, lambda table: 0])
def test_the_plan_says_by_which_metric_it_prunes_where_none_was_named(refit: Any) -> None:
    scoring = ["f1", "accuracy"]
    search = grid(LogisticRegression(), C, scoring=scoring, refit=refit)
    said = "sampler and bandit go by the first, `f1`"
    assert said not in str(search.explain(X, y))
    search.set_params(bandit="action-elimination")
    assert said in str(search.explain(X, y))
    assert said not in str(search.set_params(refit="accuracy").explain(X, y))
