"""Learning curves of two families say nothing of each other: forests begin well."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

import mlopt
from mlopt import events
from mlopt.tuning.bandits import ActionElimination, Bandit, Progress, SuccessiveHalving


def curve(trial: int, family: str, *scores: float, done: bool = False) -> list[Progress]:
    """Looks after 10, 20, ... passes; ``done``: the last one is at a full training."""
    looks = [
        Progress(trial, 10 * age, score, False, family=family)
        for age, score in enumerate(scores, start=1)
    ]
    return [*looks[:-1], replace(looks[-1], passes=100, done=True)] if done else looks


FOREST = curve(0, "forest", 0.90, done=False)
BOOSTING = curve(1, "boosting", 0.60)
GROWN_FOREST = curve(0, "forest", 0.90, 0.91, done=True)
GROWN_BOOSTING = curve(1, "boosting", 0.60, 0.95, done=True)


@pytest.mark.parametrize(
    "bandit",
    [ActionElimination(), ActionElimination(form="quality", eps=0.1), SuccessiveHalving()],
)
def test_a_family_is_not_given_up_for_beginning_slowly(bandit: Bandit) -> None:
    verdicts = bandit.allocate([*FOREST, *BOOSTING], [])
    assert verdicts.active == (0, 1)


def test_a_family_of_which_none_is_trained_is_not_given_up_for_another() -> None:
    verdicts = ActionElimination().allocate(BOOSTING, GROWN_FOREST)
    assert verdicts.active == (1,)


def test_within_a_family_equal_ages_are_compared() -> None:
    second = curve(2, "boosting", 0.39)
    verdicts = ActionElimination().allocate([*BOOSTING, *second], [])
    assert verdicts.pruned == (2,)
    assert "trial 1" in verdicts.reasons[2]


def test_who_ends_below_another_family_as_its_own_went_is_given_up() -> None:
    """A forest's error falls by a tenth from here: .09 of .10, above 1.5 times .05."""
    history = [*GROWN_FOREST, *GROWN_BOOSTING]
    late = curve(7, "forest", 0.90)
    verdicts = ActionElimination().allocate(late, history)
    assert verdicts.pruned == (7,)
    assert "as others of its family did" in verdicts.reasons[7]
    assert "trial 1" in verdicts.reasons[7]


def test_who_may_still_reach_another_family_goes_on() -> None:
    """A boosted model's error falls to a sixth: .4 will be .067, below 1.5 times .05."""
    late = curve(7, "boosting", 0.60)
    verdicts = ActionElimination().allocate(late, [*GROWN_FOREST, *GROWN_BOOSTING])
    assert verdicts.active == (7,)


def test_who_has_no_elder_of_its_age_is_judged_from_the_look_before() -> None:
    """A default is looked at after 10 passes and at its end; its family after 20, too."""
    late = curve(7, "boosting", 0.30, 0.60)[1:]
    verdicts = ActionElimination().allocate(late, [*GROWN_FOREST, *GROWN_BOOSTING])
    assert verdicts.active == (7,)


def test_the_papers_own_rule_compares_with_the_best_of_all() -> None:
    verdicts = ActionElimination(against="best").allocate([*FOREST, *BOOSTING], [])
    assert verdicts.pruned == (1,)


def test_halving_keeps_the_best_of_each_family() -> None:
    forests = [Progress(t, 3, 0.9 + t / 100, False, family="forest") for t in range(6)]
    boosted = [Progress(t, 3, 0.5 + t / 100, False, family="boosting") for t in range(6, 9)]
    verdicts = SuccessiveHalving(size=9).allocate([*forests, *boosted], [])
    assert verdicts.active == (4, 5, 8)


def test_what_a_bandit_would_give_up_is_trained_to_its_end_if_it_is_a_default() -> None:
    """Boosting that begins at chance level is not judged by a forest's first trees."""
    happened: list[Any] = []
    X = np.random.default_rng(0).normal(size=(120, 3))
    slow = HistGradientBoostingClassifier(learning_rate=1e-3, max_iter=30)
    families = {
        "forest": (RandomForestClassifier(20), {"max_depth": [3, 4]}),
        "boosting": (slow, {"learning_rate": [1e-3, 2e-3, 0.1], "max_leaf_nodes": [3, 31]}),
    }
    mlopt.ModelSearchCV(
        families, n_trials=6, cv=2, random_state=0, observer=happened.append,
        bandit=ActionElimination(eps=0.0, against="best", first=10),
    ).fit(X, X[:, 0] > 1.5)  # fmt: skip
    started = [e.family for e in happened if isinstance(e, events.TrialStarted)]
    finished = {e.trial for e in happened if isinstance(e, events.TrialFinished)}
    assert started[:3] == ["forest", "boosting", "boosting"]
    assert {0, 1, 2} <= finished
    assert any(isinstance(e, events.TrialPruned) for e in happened)
