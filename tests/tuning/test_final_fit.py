"""The final fit may begin before the search has ended; nothing else may differ."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier

import mlopt
from mlopt import events
from mlopt.tuning import final_fit, refit
from mlopt.tuning.bandits import SuccessiveHalving
from mlopt.tuning.crews.trials import Trial

X, y = make_classification(600, 8, flip_y=0.1, random_state=0)
SPACE = {"alpha": [1e-5, 1e-4, 1e-3, 1e-2], "eta0": [1e-3, 1e-2, 1e-1]}


def search(estimator: Any, space: Any = SPACE, **settings: Any) -> mlopt.ModelSearchCV:
    bandit = SuccessiveHalving(min_passes=1 / 3)
    given = {"n_jobs": 2, "n_trials": 9, "sampler": "random", "cv": 3, **settings}
    return mlopt.ModelSearchCV(estimator, space, bandit=bandit, max_passes=27, **given)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that made final fits."""
    names: list[str] = []
    plain = refit.refit

    def noted(*args: Any) -> Any:
        names.append(threading.current_thread().name)
        return plain(*args)

    monkeypatch.setattr(final_fit, "refit", noted)
    return names


def sgd(learning_rate: str = "invscaling") -> SGDClassifier:
    return SGDClassifier(learning_rate=learning_rate, tol=None, max_iter=27)


def test_an_early_fit_is_the_fit(fits: list[str]) -> None:
    early = search(sgd()).fit(X, y)
    assert [name.startswith("mlopt-final") for name in fits] == [True]
    late = search(sgd(), n_jobs=1).fit(X, y)
    assert fits[1:] == ["MainThread"]
    assert early.best_params_ == late.best_params_
    np.testing.assert_array_equal(early.best_estimator_.coef_, late.best_estimator_.coef_)
    assert early.refit_time_ > 0


def test_what_uses_all_cores_waits(fits: list[str]) -> None:
    search(LogisticRegression(), {"C": np.logspace(-2, 2, 9).tolist()}).fit(X, y)
    assert fits == ["MainThread"]


@pytest.mark.parametrize("which", [False, lambda table: 0])
def test_nothing_begins_early_that_may_not_be_wanted(fits: list[str], which: Any) -> None:
    search(sgd(), refit=which).fit(X, y)
    assert fits == ["MainThread"] * callable(which)


def test_a_fit_that_was_in_vain_is_made_again(
    fits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that was left fails in its last passes, so another is the best."""
    plain = Trial.record

    def record(trial: Any, outcome: Any) -> None:
        plain(trial, outcome)
        if outcome.passes == 27:
            trial.reason = "made to fail"

    monkeypatch.setattr(Trial, "record", record)
    with pytest.warns(FitFailedWarning, match="made to fail"):
        found = search(sgd()).fit(X, y)
    assert [name.startswith("mlopt-final") for name in fits] == [True, False]
    states = found.cv_results_["state"]
    assert (states == "FAIL").sum() == 1
    assert states[found.best_index_] == "PRUNED"
    assert found.best_estimator_.alpha == found.best_params_["alpha"]


def test_an_interrupted_search_keeps_its_fit(fits: list[str]) -> None:
    def observe(event: events.Event) -> None:
        if isinstance(event, events.TrialScored) and event.passes == 27:
            raise KeyboardInterrupt

    found = search(sgd(), observer=observe)
    with pytest.raises(KeyboardInterrupt):
        found.fit(X, y)
    assert found.interrupted_
    assert len(fits) == 1
    assert found.best_estimator_.score(X, y) > 0.7
