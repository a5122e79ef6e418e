"""Where time is short, defaults are trained first, and nobody waits in vain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

import mlopt
from mlopt import events
from mlopt.tuning.bandits import ActionElimination
from mlopt.tuning.crews.trials import Trial
from mlopt.tuning.prices import Prices

X = np.random.default_rng(0).normal(size=(120, 3))
Y = X[:, 0] > 0.5
FAMILIES = {
    "forest": (RandomForestClassifier(20, max_depth=2), {"max_depth": [2, 3, None]}),
    "boosting": (
        HistGradientBoostingClassifier(learning_rate=0.3, max_iter=20),
        {"learning_rate": [0.3, 0.1], "max_leaf_nodes": [3, 31]},
    ),
}
OWN, PLAIN = {0, 1}, {2, 3}
"""Numbers of the trials with the estimators' own parameters, and their classes'."""


def happened(**settings: Any) -> list[Any]:
    heard: list[Any] = []
    mlopt.ModelSearchCV(
        FAMILIES, cv=2, random_state=0, observer=heard.append,
        **{"n_trials": 6, "timeout": 100.0} | settings,
    ).fit(X, Y)  # fmt: skip
    return heard


def looks(heard: list[Any]) -> list[tuple[int, Any]]:
    return [(e.trial, e.passes) for e in heard if isinstance(e, events.TrialScored)]


def ended(heard: list[Any], kind: Any) -> set[int]:
    return {e.trial for e in heard if isinstance(e, kind)}


def test_every_default_is_looked_at_once_and_ended_before_any_other_begins() -> None:
    scored = looks(happened())
    assert sorted(scored[:4]) == [(0, 10), (1, 10), (2, 10), (3, 10)]
    assert sorted(scored[4:8]) == [(0, 100), (1, 100), (2, 100), (3, 100)]
    assert all(trial not in OWN | PLAIN for trial, _ in scored[8:])


@pytest.mark.slow
def test_with_as_much_time_as_it_takes_a_default_is_looked_at_as_seldom() -> None:
    scored = looks(happened(timeout=None))
    assert [passes for trial, passes in scored if trial == 2] == [10, 100]


class Unaffordable(Prices):
    """No fit of boosting would end in time."""

    def least(self, trial: Trial) -> float:
        return 1e6 if trial.family == "boosting" else 0.0

    final = least


def test_boosting_without_time_is_neither_given_up_nor_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has had less time than the forests: their scores say nothing of it."""
    monkeypatch.setattr("mlopt.tuning.scheduler.Prices", Unaffordable)
    heard = happened(bandit=ActionElimination(eps=0.0, against="best", first=10))
    boosting = {
        e.trial
        for e in heard
        if isinstance(e, events.TrialStarted) and e.family == "boosting"
    }
    assert {1, 3} <= boosting
    assert not boosting & ended(heard, events.TrialPruned)
    assert not boosting & ended(heard, events.TrialFinished)
    assert 4 in ended(heard, events.TrialStarted)  # others were not kept waiting
    assert {0, 2} <= ended(heard, events.TrialFinished)


def test_a_search_without_time_for_anything_ends_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mlopt.tuning.scheduler.Prices", Unaffordable)
    rungs = [e for e in happened() if isinstance(e, events.RungDone)]
    assert len(rungs) < 30
    assert rungs[-1].elapsed < 90
