"""What a search that is killed in the middle of a rung has kept, and what it repeats."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from tests import forks

import mlopt
from mlopt import events

ROOT = Path(__file__).parents[2]
N_TRIALS, FINISHED = 16, 14
HANG = "MLOPT_TEST_HANG"
PROCESS = """
import sys
from tests.tuning.test_killed_search import search
search(sys.argv[1], print_scored=True)
"""


class Guess(ClassifierMixin, BaseEstimator):
    """Answers one class; from some ``level`` on it never gets ready, if told so."""

    def __init__(self, level: int = 0) -> None:
        self.level = level

    def fit(self, X: Any, y: Any) -> Guess:
        self.classes_ = np.unique(y)
        if os.environ.get(HANG) and self.level >= FINISHED:
            time.sleep(600)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.classes_[self.level % 2])


def search(storage: str, print_scored: bool = False) -> set[int]:
    """The trials that had to be trained."""
    trained = set()

    def observe(event: Any) -> None:
        if isinstance(event, events.TrialScored) and not event.replayed:
            trained.add(event.trial)
            if print_scored:
                os.write(1, b"scored\n")

    X = np.arange(60.0).reshape(-1, 1)
    mlopt.ModelSearchCV(
        Guess(), {"level": list(range(N_TRIALS))}, sampler="grid", n_trials=N_TRIALS, cv=2,
        n_jobs=2, observer=observe, storage=storage,
    ).fit(X, np.arange(60) % 3 % 2)  # fmt: skip
    return trained


@pytest.mark.cluster
def test_a_kill_in_the_middle_of_a_rung_loses_only_trials_in_training(
    tmp_path: Path,
) -> None:
    storage = tmp_path / "study.db"
    with forks.Popen(
        [sys.executable, "-c", PROCESS, str(storage)],
        stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ | {HANG: "yes"},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for _ in range(FINISHED):
            assert process.stdout.readline() == "scored\n"
        time.sleep(1.0)  # what has ended is written behind
        process.kill()

    study = optuna.load_study(study_name=None, storage=f"sqlite:///{storage}")
    states = [trial.state.name for trial in study.trials]
    assert states.count("COMPLETE") == FINISHED
    assert len(search(str(storage))) == N_TRIALS - FINISHED
