"""The study in memory is the one that Optuna's own storage keeps."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage, InMemoryStorage
from optuna.trial import TrialState

from mlopt.tuning.storage.memory import Memory


def use(storage: BaseStorage) -> list[dict[str, Any]]:
    """What a study holds after all that can happen to one."""
    sampler = optuna.samplers.TPESampler(seed=0, n_startup_trials=3)
    study = optuna.create_study(storage=storage, sampler=sampler, direction="maximize")
    study.enqueue_trial({"x": 0.5}, user_attrs={"given": True})

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        kind = trial.suggest_categorical("kind", ["a", "b"])
        trial.report(x, 0)
        trial.set_user_attr("kind", kind)
        if trial.number == 4:
            raise optuna.TrialPruned
        return x if trial.number != 5 else float("nan")

    study.optimize(objective, n_trials=12)
    study.add_trial(optuna.trial.create_trial(value=0.1))
    waiting = study.ask({"x": FloatDistribution(0, 1)})
    storage.set_trial_state_values(waiting.number, TrialState.WAITING)
    assert study.ask().number == waiting.number, "who waits goes first"
    best = storage.get_best_trial(storage.get_study_id_from_name(study.study_name))
    assert best.number == study.best_trial.number
    trials = [vars(copy.copy(trial)) for trial in study.trials]
    return [{k: v for k, v in t.items() if "datetime" not in k} for t in trials]


def test_a_study_in_memory_holds_what_it_holds_with_optuna() -> None:
    assert use(Memory()) == use(InMemoryStorage())


def test_what_has_ended_or_does_not_exist_or_does_not_fit_is_refused() -> None:
    storage = Memory()
    study = optuna.create_study(storage=storage)
    number = study.ask({"a": CategoricalDistribution(["x"])}).number
    other = CategoricalDistribution(["y"])
    with pytest.raises(ValueError, match="does not support dynamic value space"):
        storage.set_trial_param(number, "a", 0.0, other)
    study.tell(number, 1.0)
    with pytest.raises(UpdateFinishedTrialError):
        storage.set_trial_user_attr(number, "late", 1)
    with pytest.raises(KeyError):
        storage.get_trial(number + 1)


def test_a_pickled_study_goes_on() -> None:
    study = optuna.create_study(storage=Memory())
    study.tell(study.ask(), 1.0)
    again = pickle.loads(pickle.dumps(study))
    assert again.ask().number == 1
    assert len(study.trials) == 1
