"""A search with too little time still gives a model, and leaves its storage in order."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt import events
from mlopt.report.history import trial_rows

X = np.arange(60.0).reshape(-1, 1)
Y = np.arange(60) % 3 % 2


class Slow(ClassifierMixin, BaseEstimator):
    """Answers one class, after a while."""

    def __init__(self, level: int = 0, seconds: float = 0.0, fails: int = 0) -> None:
        self.level, self.seconds, self.fails = level, seconds, fails

    def fit(self, X: Any, y: Any) -> Slow:
        if self.level < self.fails:
            raise ValueError("cannot be fitted")
        self.classes_ = np.unique(y)
        time.sleep(self.seconds)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.classes_[self.level % 2])


def search(
    storage: Path | None = None, seconds: float = 0.0, fails: int = 0, **settings: Any
) -> tuple[mlopt.ModelSearchCV, set[int]]:
    """The search, and the trials that had to be trained."""
    trained = set()

    def observe(event: Any) -> None:
        if isinstance(event, events.TrialScored) and not event.replayed:
            trained.add(event.trial)

    model = mlopt.ModelSearchCV(
        Slow(fails=fails), {"level": list(range(12)), "seconds": [seconds]}, sampler="grid",
        cv=2, n_jobs=2, batch_size=3, observer=observe, storage=storage, **settings,
    )  # fmt: skip
    return model.fit(X, Y), trained


def states(storage: Path) -> list[str]:
    study = optuna.load_study(study_name=None, storage=f"sqlite:///{storage}")
    return [trial.state.name for trial in study.trials]


def test_a_budget_of_a_moment_gives_a_model() -> None:
    model, trained = search(seconds=0.05, n_trials=12, timeout=1e-6)
    assert trained == {0}
    assert model.best_estimator_.predict(X).shape == Y.shape
    assert np.isfinite(model.best_score_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_where_the_first_fails_the_next_gives_the_model() -> None:
    model, trained = search(seconds=0.05, fails=2, n_trials=12, timeout=1e-6)
    assert trained == {2}
    assert model.best_params_["level"] == 2


def test_a_resume_without_time_ends_with_the_stored_best(tmp_path: Path) -> None:
    first, _ = search(tmp_path / "study.db", n_trials=6)
    again, trained = search(tmp_path / "study.db", n_trials=8, timeout=1e-6)
    assert not trained
    assert again.best_score_ == first.best_score_
    assert again.best_params_ == first.best_params_
    assert len(again.cv_results_["params"]) == 6
    assert again.best_estimator_.level == first.best_estimator_.level


@pytest.mark.slow
def test_what_time_ran_out_for_waits_in_the_storage(tmp_path: Path) -> None:
    storage = tmp_path / "study.db"
    first, trained = search(storage, seconds=0.1, n_trials=12, timeout=0.5)
    assert set(states(storage)) == {"COMPLETE", "WAITING"}
    assert {t.state.name for t in first.study_.trials} == {"COMPLETE", "WAITING"}
    again, trained_again = search(storage, seconds=0.1, n_trials=12)
    assert states(storage) == ["COMPLETE"] * 12
    assert trained | trained_again == set(range(12))
    assert not trained & trained_again
    assert again.best_score_ == first.best_score_


def test_where_time_is_short_every_familys_default_comes_first() -> None:
    """Each has had its full training before the first of the others begins."""
    happened: list[Any] = []
    families = {
        "slow": (Slow(), {"level": [0, 1, 2, 3]}),
        "forest": (RandomForestClassifier(10), {"max_depth": [1, 2, 3]}),
    }
    mlopt.ModelSearchCV(
        families, n_trials=5, timeout=100, cv=2, observer=happened.append
    ).fit(X, Y)
    ended = (events.TrialFinished, events.TrialPruned)
    first = next(
        i
        for i, event in enumerate(happened)
        if isinstance(event, events.TrialStarted) and event.trial == 2
    )
    assert {e.trial for e in happened[:first] if isinstance(e, ended)} == {0, 1}


@pytest.mark.slow
def test_after_the_end_no_trial_is_told_as_if_it_went_on(tmp_path: Path) -> None:
    """What waits in the storage is told as waiting, and why."""
    told = search(tmp_path / "study.db", seconds=0.05, n_trials=12, timeout=1e-6)[0]
    rows = trial_rows(told.events_)
    assert [row.state for row in rows] == states(tmp_path / "study.db")
    assert {row.state for row in rows} == {"COMPLETE", "WAITING"}
    left = {row.reason for row in rows if row.state == "WAITING"}
    assert left == {"unfinished: no time was left"}


@pytest.mark.slow
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("bandit", [None, "action-elimination"])
def test_a_scan_ends_with_a_pass_when_time_is_up(bandit: Any, scaled: bool) -> None:
    X, y = make_classification(20_000, 20, random_state=0)
    model = SGDClassifier(tol=None, max_iter=100_000)  # hours
    search = mlopt.ModelSearchCV(
        make_pipeline(StandardScaler(), model) if scaled else model,
        {f"{'sgdclassifier__' * scaled}alpha": [1e-4, 1e-3]},
        sampler="grid", bandit=bandit, timeout=1.0, refit=False,
    )  # fmt: skip
    began = time.monotonic()
    search.fit(X, y)
    assert time.monotonic() - began < 20.0
    results = search.cv_results_
    assert set(results["state"]) == {"PRUNED"}
    assert len(set(results["passes"])) == 1  # all folds, and trials, as far
    assert (results["mean_test_score"] > 0.7).all()
    assert "no time was left" in results["reason"][0]


@pytest.mark.slow
def test_folds_of_different_sizes_are_cut_at_the_same_pass() -> None:
    X, y = make_classification(100_000, 20, flip_y=0.3, random_state=0)
    rows = np.arange(100_000)
    cv = [(rows[:200], rows[200:300]), (rows[300:80_000], rows[80_000:])]

    def found(**given: Any) -> dict[str, Any]:
        model = make_pipeline(StandardScaler(), SGDClassifier(tol=None, max_iter=1000))
        return mlopt.ModelSearchCV(
            model, {"sgdclassifier__alpha": [1e-4]}, sampler="grid", bandit=None, cv=cv,
            scoring="roc_auc", refit=False, **given,
        ).fit(X, y).cv_results_  # fmt: skip

    cut = found(timeout=1.0)
    assert cut["passes"][0] < 1000
    whole = found(max_passes=int(cut["passes"][0]))
    for fold in (0, 1):
        assert cut[f"split{fold}_test_score"] == whole[f"split{fold}_test_score"]


@pytest.mark.slow
def test_a_look_that_time_cut_short_gives_up_nobody() -> None:
    X, y = make_classification(100_000, 30, random_state=0)
    search = mlopt.ModelSearchCV(
        SGDClassifier(tol=None, max_iter=50_000), {"alpha": [1e-4, 1e-3, 100.0]},
        sampler="grid", timeout=1.5, refit=False,
    ).fit(X, y)  # fmt: skip
    assert {*search.cv_results_["reason"]} == {"unfinished: no time was left"}
