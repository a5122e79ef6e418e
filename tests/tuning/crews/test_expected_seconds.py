"""What a fit is expected to take, by the steps of its family so far."""

from __future__ import annotations

from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import mlopt
from mlopt.cluster import Threads
from mlopt.tuning.crews.black_box import BlackBoxCrew
from mlopt.tuning.crews.families import Views
from mlopt.tuning.crews.prefixes import Prefixes
from mlopt.tuning.crews.trainer import Clock
from mlopt.tuning.crews.trials import TrainRequest, Trial
from mlopt.tuning.inputs import problem_of

X, Y = make_classification(200, 5, random_state=0)


def test_a_tenth_of_a_forest_is_not_expected_to_take_as_long_as_the_rest() -> None:
    asked: list[float] = []

    def may_start(trial: Trial, seconds: float) -> bool:
        del trial
        asked.append(seconds)
        return True

    estimator = RandomForestClassifier(100)
    search = mlopt.ModelSearchCV(estimator, {}, cv=2)
    problem = problem_of(search, Threads(2), X, Y, None, None, {})
    views = Views({"": estimator}, problem, Prefixes(problem, 0), 0)
    crew = BlackBoxCrew(problem, views, 100, True)
    first, second = Trial(0, "", {}), Trial(1, "", {})
    for trial, until in ((first, 10), (first, 100), (second, 10)):
        orders, begun = [TrainRequest(trial, until)], len(asked)
        for (outcome,) in crew.train(orders, Clock(may_start, lambda: 60.0)):
            trial.record(outcome)
        if trial is first:
            expected = crew.unit_seconds[""][10]
    assert asked[0] == 0.0
    assert asked[begun] == expected < crew.unit_seconds[""][90]
