"""A search that was killed goes on as if nothing had happened."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from tests import forks

import mlopt
from mlopt import events
from mlopt.errors import InputError, StudyError
from mlopt.tuning import setup
from mlopt.tuning.storage.store import open_store

ROOT = Path(__file__).parents[2]
X, Y = make_classification(400, 6, random_state=0)
SPACE = {
    "line": (LogisticRegression(), {"C": [0.01, 0.1, 1.0, 10.0]}),
    "tree": (DecisionTreeClassifier(), {"max_depth": list(range(1, 9))}),
}
PROCESS = """
import sys, time
from mlopt import events
from tests.tuning.test_resume import search

def observe(event):
    if isinstance(event, events.RungDone):
        print("rung", flush=True)
        time.sleep(1.0)

search(sys.argv[1], sys.argv[2], observe)
"""


def search(storage: str | None, sampler: str, observe: Any) -> mlopt.ModelSearchCV:
    return mlopt.ModelSearchCV(
        SPACE, n_trials=12, cv=3, sampler=sampler, batch_size=3, observer=observe,
        storage=storage, random_state=0,
    ).fit(X, Y)  # fmt: skip


def finish(storage: str | None, sampler: str) -> tuple[dict[str, list[Any]], set[int]]:
    """What every trial came to, and which trials were trained for that."""
    trained = set()

    def observe(event: Any) -> None:
        if isinstance(event, events.TrialScored) and not event.replayed:
            trained.add(event.trial)

    table = search(storage, sampler, observe).cv_results_
    wanted = "params", "mean_test_score", "state"
    return {name: list(map(str, table[name])) for name in wanted}, trained


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["random", "grid"])
def test_a_killed_search_resumes_to_the_same_result(tmp_path: Path, sampler: str) -> None:
    storage = str(tmp_path / "study.db")
    whole, trained = finish(None, sampler)
    with forks.Popen(
        [sys.executable, "-c", PROCESS, storage, sampler],
        stdout=subprocess.PIPE, text=True, cwd=ROOT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for _ in range(3):
            assert process.stdout.readline().strip() == "rung"
        time.sleep(0.5)  # the rung is written behind
        process.kill()
    resumed, trained_again = finish(storage, sampler)

    assert resumed == whole
    assert 0 < len(trained_again) < len(trained)


@pytest.mark.slow
def test_a_finished_search_again_trains_nothing(tmp_path: Path) -> None:
    storage = str(tmp_path / "study.db")
    first, trained = finish(storage, "random")
    again, trained_again = finish(storage, "random")

    assert again == first
    assert trained
    assert not trained_again


def below(estimator: Any, X: Any, y: Any) -> float:
    """A score that is none for the least depth."""
    return float("-inf" if estimator.max_depth == 1 else estimator.score(X, y))


@pytest.mark.parametrize(
    "scoring", [None, ["accuracy", "roc_auc"], below], ids=["own", "two", "none"]
)
def test_all_columns_are_those_of_before(tmp_path: Path, scoring: Any) -> None:
    def found(n_trials: int, storage: str | None) -> dict[str, Any]:
        search = mlopt.ModelSearchCV(
            DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 3, 4]}, cv=3,
            sampler="grid", bandit=None, n_trials=n_trials, storage=storage, refit=False,
            scoring=scoring, return_train_score=True,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return search.fit(X, Y).cv_results_

    def rows(table: dict[str, Any]) -> dict[str, Any]:
        order = np.argsort(np.asarray(table["param_max_depth"], int))
        return {k: np.asarray(v)[order] for k, v in table.items() if "time" not in k}

    whole, storage = rows(found(4, None)), str(tmp_path / "study.db")
    found(2, storage)
    for again in (rows(found(4, storage)), rows(found(4, storage))):
        assert again.keys() == whole.keys()
        for column, values in whole.items():
            np.testing.assert_array_equal(again[column], values, err_msg=column)


def test_trials_that_failed_on_one_split_fail_there_again(tmp_path: Path) -> None:
    one = np.flatnonzero(Y[0] == Y)  # a split that trains on one class
    rows = np.arange(len(Y))
    search = mlopt.ModelSearchCV(
        SVC(), {"C": [0.1, 1.0]}, sampler="grid", bandit=None, n_trials=None,
        cv=[(one[:20], rows), (rows, rows)], error_score=0.0, storage=tmp_path / "a.db",
    )  # fmt: skip
    scores = []
    for _ in range(2):
        with pytest.warns(FitFailedWarning, match="2 fits failed out of a total of 4"):
            scores.append(search.fit(X, Y).best_score_)
    assert scores[0] == scores[1]


def test_scores_that_were_not_stored_are_no_numbers(tmp_path: Path) -> None:
    def found(n_trials: int, train: bool) -> dict[str, Any]:
        return mlopt.ModelSearchCV(
            DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 3, 4]}, cv=3,
            sampler="grid", bandit=None, n_trials=n_trials, storage=tmp_path / "a.db",
            error_score=0.0, return_train_score=train,
        ).fit(X, Y).cv_results_  # fmt: skip

    found(2, train=False)
    with pytest.warns(UserWarning, match="train scores are non-finite"):
        scores = found(4, train=True)["mean_train_score"]
    assert np.isnan(scores).tolist() == [True, True, False, False]


def test_a_trial_that_was_pruned_and_went_on_is_stored(tmp_path: Path) -> None:
    """A larger budget keeps more trials at each rung: none is trained anew each time."""
    X, y = make_classification(600, 20, flip_y=0.1, random_state=0)

    def run(file: Path, trials: int, seed: int) -> mlopt.ModelSearchCV:
        return mlopt.ModelSearchCV(
            SGDClassifier(max_iter=30, tol=None), {"alpha": loguniform(1e-6, 10)},
            n_trials=trials, sampler="random", bandit="successive-halving",
            storage=str(file), random_state=seed, cv=3,
        ).fit(X, y)  # fmt: skip

    went_on = 0
    for seed in range(3):
        file = tmp_path / f"{seed}.db"
        first, more, again = (run(file, n, seed).cv_results_ for n in (20, 60, 60))
        study = optuna.load_study(study_name="mlopt", storage=f"sqlite:///{file}")
        for number in np.flatnonzero(more["passes"][:20] > first["passes"]):
            stored = study.trials[number]
            assert stored.state.name == more["state"][number]
            assert max(stored.intermediate_values) == more["passes"][number]
            assert stored.value == pytest.approx(more["mean_test_score"][number])
            went_on += 1
        np.testing.assert_array_equal(again["passes"], more["passes"])
    assert went_on > 0


def test_a_search_waits_for_a_study_in_use_no_longer_than_it_may_take(
    tmp_path: Path,
) -> None:
    file = str(tmp_path / "used.db")
    X, y = make_classification(200, random_state=0)
    search = mlopt.ModelSearchCV(
        LogisticRegression(), {"C": [1.0]}, storage=file, timeout=1.5
    )
    began = time.monotonic()
    with open_store(file), pytest.raises(StudyError, match="must not be in use"):
        search.fit(X, y)
    assert time.monotonic() - began < 30.0


def test_a_study_is_free_again_when_its_plan_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_many(*_: Any, **__: Any) -> Any:
        raise InputError("too many rows")

    monkeypatch.setattr(setup, "search_plan", too_many)
    file = str(tmp_path / "lock.db")
    X, y = make_classification(200, random_state=0)
    search = mlopt.ModelSearchCV(LogisticRegression(), {"C": [1.0]}, storage=file)
    with pytest.raises(InputError, match="too many rows") as kept:
        search.fit(X, y)
    assert kept.value.__traceback__ is not None  # as a notebook keeps it
    with pytest.raises(StudyError, match="is of another search"):
        open_store(file, wait=1)
