"""Laws of every trainer: what a request for training gives, whoever answers it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import (
    Lasso,
    LogisticRegression,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import mlopt
from mlopt.cluster import Threads
from mlopt.tuning.crews import scan
from mlopt.tuning.crews.batching import BatchCrew
from mlopt.tuning.crews.black_box import BlackBoxCrew
from mlopt.tuning.crews.families import Views
from mlopt.tuning.crews.prefixes import Prefixes
from mlopt.tuning.crews.scans import DUAL, LOCKSTEP, NEWTON
from mlopt.tuning.crews.spaces import Space
from mlopt.tuning.crews.trainer import Clock, Trainer
from mlopt.tuning.crews.trials import TrainRequest, TrainResult, Trial
from mlopt.tuning.inputs import problem_of

FULL, FOLDS = 100, 3
X, y = make_classification(150, 5, flip_y=0.2, random_state=0)


@dataclass(frozen=True)
class Case:
    """A trainer, by an estimator that it takes, and values of a parameter, one bad."""

    estimator: Any
    name: str
    values: tuple[Any, Any]
    bad: Any


LINEAR = LogisticRegression(tol=1e-8)
CASES = {
    "columns of a scan": Case(LINEAR, "C", (0.01, 10.0), -1.0),
    "columns behind steps": Case(
        make_pipeline(StandardScaler(), LINEAR), "logisticregression__C", (0.01, 10.0), -1.0
    ),
    "epochs": Case(SGDClassifier(max_iter=5, tol=None), "alpha", (1e-3, 1.0), -1.0),
    "whole fits": Case(DecisionTreeClassifier(random_state=0), "max_depth", (1, 4), -1),
    "whole fits, linear": Case(RidgeClassifier(), "alpha", (0.1, 1e4), -1.0),
    "forests": Case(
        RandomForestClassifier(20, random_state=0), "max_depth", (1, 4), -1
    ),
    "boosting": Case(
        HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=4, random_state=0),
        "learning_rate", (0.05, 0.3), -1.0,
    ),
}  # fmt: skip
PATHS = {
    "paths": (Case(Lasso(), "alpha", (0.03, 0.001), -1.0), LOCKSTEP),
    "paths behind steps": (
        Case(make_pipeline(StandardScaler(), Lasso()), "lasso__alpha", (0.03, 0.001), -1.0),
        LOCKSTEP,
    ),
    "newton": (Case(LinearSVC(dual=False), "C", (0.01, 10.0), -1.0), NEWTON),
    "dual": (Case(LINEAR, "C", (0.01, 10.0), -1.0), DUAL),
}
"""Scans that take models to their ends, the strongest penalty first, and their way."""
EXACT = sorted(set(CASES) - {"epochs"})
"""Those that train what scikit-learn does: epochs have an order of rows of their own."""


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def trainers_of(case: Case, threads: Threads) -> tuple[Trainer, Trainer]:
    search = mlopt.ModelSearchCV(case.estimator, {}, cv=FOLDS)
    problem = problem_of(search, threads, X, y, None, None, {})
    views = Views({"": case.estimator}, problem, Prefixes(problem, 2**26), 0)
    return BatchCrew(problem, views, None, 8), BlackBoxCrew(problem, views, FULL, True)


def trials_of(case: Case, values: Sequence[Any]) -> list[Trial]:
    return [Trial(number, "", {case.name: value}) for number, value in enumerate(values)]


def answers(
    trainers: Sequence[Trainer],
    trials: Sequence[Trial],
    until: int,
    clock: Clock = Clock(),  # noqa: B008
) -> dict[int, TrainResult]:
    found: dict[int, TrainResult] = {}
    for trainer in trainers:
        going = [t for t in trials if not t.done and trainer.takes(t)]
        own = [TrainRequest(t, until) for t in going]
        for together in trainer.train(own, clock) if own else ():
            for result in together:
                assert result.trial not in found
                found[result.trial] = result
                trials[result.trial].record(result)
    return found


@pytest.fixture
def threads() -> Iterator[Threads]:
    pool = Threads(2)
    yield pool
    pool.close()


def scores(result: TrainResult) -> tuple[float, ...]:
    (only,) = result.scores.values()
    return only


def fitted(case: Case, params: Mapping[str, Any]) -> Any:
    model = clone(case.estimator).set_params(**params)
    return cross_val_score(model, X, y, cv=FOLDS)


def test_one_trainer_takes_a_trial_and_gives_one_result(case: Case, threads: Any) -> None:
    trainers, trials = trainers_of(case, threads), trials_of(case, case.values)
    for trial in trials:
        assert [trainer.takes(trial) for trainer in trainers].count(True) == 1
    found = answers(trainers, trials, 10)
    assert sorted(found) == [0, 1]
    for result in found.values():
        assert result.done or result.passes == 10
        assert len(scores(result)) == len(result.by_split) == FOLDS
        assert result.seconds > 0


@pytest.mark.parametrize("name", EXACT)
def test_the_end_scores_as_scikit_learns_fits(name: str, threads: Any) -> None:
    case = CASES[name]
    trainers, trials = trainers_of(case, threads), trials_of(case, case.values)
    found = answers(trainers, trials, FULL)
    for trial in trials:
        assert found[trial.number].done
        np.testing.assert_array_equal(
            scores(found[trial.number]), fitted(case, trial.params)
        )


def test_many_requests_lead_where_one_does(case: Case, threads: Any) -> None:
    once, often = (trials_of(case, case.values) for _ in range(2))
    last = answers(trainers_of(case, threads), once, FULL)
    trainers = trainers_of(case, threads)
    found: dict[int, TrainResult] = {}
    for until in (10, 40, FULL):
        found |= answers(trainers, often, until)
    for one, other in zip(once, often, strict=True):
        assert one.done
        assert other.done
        np.testing.assert_array_equal(scores(found[other.number]), scores(last[one.number]))


def test_company_changes_nothing(case: Case, threads: Any) -> None:
    together = answers(trainers_of(case, threads), trials_of(case, case.values), FULL)
    alone = answers(trainers_of(case, threads), trials_of(case, case.values[:1]), FULL)
    np.testing.assert_array_equal(scores(together[0]), scores(alone[0]))


def test_what_fails_takes_nobody_with_it(case: Case, threads: Any) -> None:
    trials = trials_of(case, (case.values[0], case.bad))
    found = answers(trainers_of(case, threads), trials, FULL)
    assert found[0].reason is None
    assert found[1].reason is not None
    assert case.name.rpartition("_")[2] in found[1].reason


def test_what_is_dropped_leaves_nothing(case: Case, threads: Any) -> None:
    trainers, trials = trainers_of(case, threads), trials_of(case, case.values)
    answers(trainers, trials, 10)
    for trainer in trainers:
        trainer.drop(set())
    batch, black_box = trainers
    assert isinstance(batch, BatchCrew)
    assert isinstance(black_box, BlackBoxCrew)
    assert not batch.scans
    assert not black_box.models
    assert not black_box.ended


@pytest.mark.parametrize("name", ["whole fits", "forests", "boosting"])
def test_no_fit_begins_that_there_is_no_time_for(name: str, threads: Any) -> None:
    case = CASES[name]
    late = Clock(lambda trial, seconds: trial.number == 0)
    found = answers(trainers_of(case, threads), trials_of(case, case.values), FULL, late)
    assert sorted(found) == [0]


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Case:
    case, way = PATHS[request.param]
    monkeypatch.setattr(scan, "space_of", lambda *given: Space(way=way))
    return case


def test_a_path_ends_where_time_does_on_all_splits(path: Case, threads: Any) -> None:
    """Trials that it came to on all of them are those of a search with time."""
    trainers, trials = trainers_of(path, threads), trials_of(path, path.values)
    short = Clock(lambda trial, seconds: trial.number == 0, lambda: 3600.0)
    found = answers(trainers, trials, FULL, short)
    whole = answers(trainers_of(path, threads), trials_of(path, path.values), FULL)
    assert sorted(found) == [0]
    assert sorted(whole) == [0, 1]
    np.testing.assert_array_equal(scores(found[0]), scores(whole[0]))
    assert 1 in answers(trainers, trials, FULL)


def test_models_of_a_path_are_given_up(path: Case, threads: Any) -> None:
    clock = Clock(waits=lambda: 1e-6)
    assert not answers(
        trainers_of(path, threads), trials_of(path, path.values), FULL, clock
    )
