"""A study in memory whose trials are changed in place: to remember one takes microseconds.

Optuna's own storage in memory copies a trial at every change, and compares the choices of
a parameter with those of the trial before, one by one. It keeps the study here; trials are
kept by this one.
"""

from __future__ import annotations

import copy
from collections.abc import Container, Sequence
from datetime import datetime
from threading import Lock
from typing import Any

from optuna.distributions import BaseDistribution, check_distribution_compatibility
from optuna.storages import BaseStorage, InMemoryStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from mlopt.locking import open_in_forks

_adding = open_in_forks(Lock())
_WAITING = (TrialState.WAITING,)


class Memory(InMemoryStorage):
    """The storage of one study. A trial's number is its id, and it is one object.

    What `optuna.storages.BaseStorage` asks of every storage holds.
    """

    def __init__(self) -> None:
        super().__init__()
        self._trials: list[FrozenTrial] = []
        self._waiting: set[int] = set()
        self._last: dict[str, BaseDistribution] = {}
        """Of each parameter, the distribution that it had last."""

    def create_new_trial(
        self, study_id: int, template_trial: FrozenTrial | None = None
    ) -> int:
        """A trial in training, or a copy of the one given; its id."""
        self.get_study_name_from_id(study_id)  # raises where there is none
        given = copy.deepcopy(template_trial) or create_trial(state=TrialState.RUNNING)
        with _adding:
            number = len(self._trials)
            self._trials.append(_numbered(number, given))
        if given.state == TrialState.WAITING:
            self._waiting.add(number)
        return number

    def set_trial_param(
        self,
        trial_id: int,
        param_name: str,
        param_value_internal: float,
        distribution: BaseDistribution,
    ) -> None:
        """Note a value and where it is from: what it was from last, or a like of it."""
        trial = self._open(trial_id)
        last = self._last.setdefault(param_name, distribution)
        if last is not distribution:
            check_distribution_compatibility(last, distribution)
            self._last[param_name] = distribution
        trial.params[param_name] = distribution.to_external_repr(param_value_internal)
        trial.distributions[param_name] = distribution

    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        """Note what became of a trial; False where one that runs is to run again."""
        trial = self._open(trial_id)
        if state == TrialState.RUNNING and trial.state != TrialState.WAITING:
            return False
        trial.state = state
        if values is not None:
            trial.values = values
        if state == TrialState.RUNNING:
            trial.datetime_start = datetime.now()
        elif state.is_finished():
            trial.datetime_complete = datetime.now()
        change = self._waiting.add if state == TrialState.WAITING else self._waiting.discard
        change(trial_id)
        return True

    def set_trial_intermediate_value(
        self, trial_id: int, step: int, intermediate_value: float
    ) -> None:
        self._open(trial_id).intermediate_values[step] = intermediate_value

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        self._open(trial_id).user_attrs[key] = value

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        self._open(trial_id).system_attrs[key] = value

    def _open(self, trial_id: int) -> FrozenTrial:
        """A trial that may still change."""
        trial = self.get_trial(trial_id)
        self.check_trial_is_updatable(trial_id, trial.state)
        return trial

    def get_trial(self, trial_id: int) -> FrozenTrial:
        if not 0 <= trial_id < len(self._trials):
            raise KeyError(f"No trial with trial_id {trial_id} exists.")
        return self._trials[trial_id]

    def get_all_trials(
        self,
        study_id: int,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
    ) -> list[FrozenTrial]:
        """The trials of some states, by number."""
        self.get_study_name_from_id(study_id)
        if states == _WAITING:  # asked before every new trial
            found = [self._trials[number] for number in sorted(self._waiting)]
        else:
            found = [t for t in self._trials if states is None or t.state in states]
        return copy.deepcopy(found) if deepcopy else found

    # Of trials, what follows from the methods above.
    get_best_trial = BaseStorage.get_best_trial
    get_trial_param = BaseStorage.get_trial_param
    get_trial_number_from_id = BaseStorage.get_trial_number_from_id
    get_trial_id_from_study_id_trial_number = (
        BaseStorage.get_trial_id_from_study_id_trial_number
    )


def _numbered(number: int, given: FrozenTrial) -> FrozenTrial:
    return FrozenTrial(
        number=number, state=given.state, value=None, values=given.values,
        params=given.params, distributions=given.distributions,
        datetime_start=given.datetime_start, datetime_complete=given.datetime_complete,
        user_attrs=given.user_attrs, system_attrs=given.system_attrs,
        intermediate_values=given.intermediate_values, trial_id=number,
    )  # fmt: skip
