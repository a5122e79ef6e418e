"""What the final fit is expected to take, and what a starved run leaves to the next."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import mlopt
from mlopt import events
from mlopt.cluster import Threads
from mlopt.tuning.crews.families import Views
from mlopt.tuning.crews.prefixes import Prefixes
from mlopt.tuning.crews.trials import TrainResult, Trial
from mlopt.tuning.inputs import problem_of
from mlopt.tuning.prices import Prices

X, Y = make_classification(300, 5, random_state=0)


def prices(estimator: Any, threads: int = 2) -> tuple[Prices, Trial]:
    search = mlopt.ModelSearchCV(estimator, {}, cv=3)
    problem = problem_of(search, Threads(threads), X, Y, None, None, {})
    views = Views({"": estimator}, problem, Prefixes(problem, 0), 0)
    return Prices(problem, views, 100), Trial(0, "", {})


def look(passes: int, seconds: float, work: float, **more: Any) -> TrainResult:
    return TrainResult(0, passes, {"score": (0.5,) * 3}, False, seconds, work=work, **more)


def hear(found: Prices, trial: Trial, *looks: TrainResult) -> float:
    for outcome in looks:
        found.hear(trial, outcome)
        trial.record(outcome)
    return found.final(trial)


def test_a_tenth_tells_what_the_whole_takes() -> None:
    """3 s of a core for a tenth, on three splits of two thirds: 10 fits of 1.5 s."""
    found, trial = prices(HistGradientBoostingClassifier())
    assert hear(found, trial, look(10, 3.0, 3.0)) == pytest.approx(15.0)


def test_growing_again_and_again_costs_more_than_growing_at_once() -> None:
    found, trial = prices(HistGradientBoostingClassifier())
    looks = [look(10, 3.0, 3.0), look(20, 9.0, 9.0), look(30, 15.0, 15.0)]
    assert hear(found, trial, *looks) == pytest.approx(15.0)


def test_trees_of_a_forest_grow_on_all_threads() -> None:
    found, trial = prices(RandomForestClassifier(), threads=2)
    assert hear(found, trial, look(10, 3.0, 3.0)) == pytest.approx(7.5)


def test_a_machine_that_is_busy_now_makes_a_fit_take_longer() -> None:
    found, trial = prices(HistGradientBoostingClassifier())
    assert hear(found, trial, look(10, 12.0, 3.0)) == pytest.approx(60.0)


def test_a_machine_that_was_busy_then_does_not() -> None:
    found, trial = prices(HistGradientBoostingClassifier())
    replay = look(10, 1200.0, 3.0, replayed=True)
    assert hear(found, trial, replay) == pytest.approx(15.0)


STOPPING = HistGradientBoostingClassifier(early_stopping=True)


def end(found: Prices, trial: Trial, outcome: TrainResult) -> float:
    hear(found, trial, replace(outcome, done=True))
    trial.state = "COMPLETE"
    return found.final(trial)


def test_boosting_that_stopped_early_costs_what_it_took() -> None:
    found, trial = prices(STOPPING)
    assert hear(found, trial, look(10, 3.0, 3.0)) == pytest.approx(15.0)
    assert end(found, trial, look(100, 3.0, 3.0)) == pytest.approx(3.0)


def test_boosting_that_may_stop_early_costs_what_others_of_its_family_took() -> None:
    """The first took 6 s where 30 were feared: a fifth of the rounds."""
    found, trial = prices(STOPPING)
    hear(found, trial, look(10, 3.0, 3.0))
    end(found, trial, look(100, 3.0, 3.0))
    other = Trial(1, "", {})
    assert hear(found, other, replace(look(10, 3.0, 3.0), trial=1)) == pytest.approx(3.0)


def test_boosting_that_went_on_longer_than_others_costs_as_much_at_least() -> None:
    """One stopped after a fifth of its rounds; another is at six tenths and goes on."""
    found, trial = prices(STOPPING)
    hear(found, trial, look(10, 3.0, 3.0))
    end(found, trial, look(100, 3.0, 3.0))
    other, third = Trial(1, "", {}), Trial(2, "", {})
    hear(found, other, replace(look(10, 3.0, 3.0), trial=1))
    assert hear(found, other, replace(look(60, 15.0, 15.0), trial=1)) == pytest.approx(9.0)
    assert found.least(other) == pytest.approx(9.0)
    assert hear(found, third, replace(look(10, 3.0, 3.0), trial=2)) == pytest.approx(9.0)
    assert found.least(third) == pytest.approx(1.5)


def test_boosting_of_which_some_splits_have_stopped_costs_what_all_of_them_would() -> None:
    """On all rows it may go on, as on the one split that is left."""
    found, trial = prices(STOPPING)
    looks = [look(10, 3.0, 3.0), look(20, 1.0, 1.0)]
    assert hear(found, trial, *looks) == pytest.approx(15.0)


def test_boosting_that_may_stop_early_may_cost_no_more_than_so_far() -> None:
    found, trial = prices(STOPPING)
    assert hear(found, trial, look(10, 3.0, 3.0)) == pytest.approx(15.0)
    assert found.least(trial) == pytest.approx(1.5)


def test_boosting_that_does_not_stop_costs_all_its_rounds_at_least() -> None:
    found, trial = prices(HistGradientBoostingClassifier())  # "auto", and few rows
    assert found.least(trial) == 0.0
    assert hear(found, trial, look(10, 3.0, 3.0)) == pytest.approx(found.least(trial))


def test_a_forest_of_more_trees_is_known_to_take_longer_before_it_is_begun() -> None:
    found, small = prices(RandomForestClassifier(10), threads=2)
    assert found.final(Trial(1, "", {"n_estimators": 100})) == 0.0
    assert hear(found, small, look(10, 3.0, 3.0)) == pytest.approx(7.5)
    assert found.final(Trial(1, "", {"n_estimators": 100})) == pytest.approx(75.0)


@pytest.mark.slow
@pytest.mark.parametrize("batched", [False, True])
def test_a_search_that_was_starved_once_does_not_stay_starved(
    tmp_path: Path, batched: bool
) -> None:
    def trained(n_trials: int, timeout: float | None) -> set[int]:
        numbers = set()

        def observe(event: Any) -> None:
            if isinstance(event, events.TrialScored) and not event.replayed:
                numbers.add(event.trial)

        estimator, name = (
            (LogisticRegression(), "C") if batched else (GaussianNB(), "var_smoothing")
        )
        space = {name: np.geomspace(1e-6, 1.0, 40).tolist()}
        mlopt.ModelSearchCV(
            estimator, space, n_trials=n_trials, timeout=timeout, cv=2, sampler="random",
            storage=tmp_path / "study.db", observer=observe, batch_size=4,
        ).fit(X, Y)  # fmt: skip
        return numbers

    assert trained(4, None) == {0, 1, 2, 3}
    with sqlite3.connect(tmp_path / "study.db") as database:
        changed = database.execute(
            "update trial_user_attributes set value_json = ? where key = 'seconds'",
            [json.dumps(1e5)],
        )
        assert changed.rowcount == 4
    database.close()
    assert trained(12, 60.0) == set(range(4, 12))
