"""How a search shares its time among families, by a clock that only training moves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from tests.clocks import Clock

import mlopt
from mlopt import events
from mlopt.training import Limits
from mlopt.tuning.bandits import ActionElimination

READERS = (
    "mlopt.training", "mlopt.tuning.scheduler", "mlopt.tuning.final_fit",
    "mlopt.tuning.crews.fitting", "mlopt.kernels.compiling",
    "mlopt.tuning.samples", "mlopt.tuning.forecast",
)  # fmt: skip
ROWS = 120
TREE = {RandomForestClassifier: 0.2, HistGradientBoostingClassifier: 0.5}
"""Seconds that a tree of all rows takes."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Moved by trees alone, as many as a fit adds."""
    clock = Clock(1)

    def timed(kind: Any) -> None:
        fit = kind.fit

        def slow(self: Any, X: Any, y: Any, **more: Any) -> Any:
            before = trees(self) if self.warm_start else 0
            fit(self, X, y, **more)
            clock.alone(TREE[kind] * (trees(self) - before) * len(y) / ROWS)
            return self

        monkeypatch.setattr(kind, "fit", slow)

    for kind in TREE:
        timed(kind)
    clock.install(monkeypatch, *READERS)
    monkeypatch.setattr(
        "mlopt.tuning.setup.Limits", lambda seconds: Limits(None, seconds, clock.now)
    )
    return clock


def trees(model: Any) -> int:
    """That it has grown so far."""
    forest = isinstance(model, RandomForestClassifier)
    return (
        len(getattr(model, "estimators_", ())) if forest else getattr(model, "n_iter_", 0)
    )


def searched(families: Any, **settings: Any) -> mlopt.ModelSearchCV:
    """Labels that boosting learns slowly, and a forest at once."""
    X = np.random.default_rng(0).normal(size=(ROWS, 3))
    search = mlopt.ModelSearchCV(
        families, cv=2, random_state=0, n_jobs=1, n_trials=40, **settings
    )  # fmt: skip
    return search.fit(X, X[:, 0] + X[:, 1] > 0.5)


FAMILIES = {
    "forest": (RandomForestClassifier(20), {"min_samples_leaf": [1, 2, 3, 5, 8]}),
    "boosting": (
        HistGradientBoostingClassifier(learning_rate=0.01, max_iter=20),
        {"learning_rate": [0.01, 0.02, 0.1], "min_samples_leaf": [20, 30, 40]},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [10.0, 25.0, 50.0, 100.0])
def test_boosting_is_not_given_up_before_it_has_had_as_much_time_as_the_forests(
    clock: Clock, seconds: float
) -> None:
    """At no moment are all of its trials given up that had less time than a forest's."""
    search = searched(FAMILIES, timeout=seconds, bandit=ActionElimination(eps=0.1))
    spent = {"forest": 0.0, "boosting": 0.0}
    family: dict[int, str] = {}
    going: set[int] = set()
    for event in search.events_:
        match event:
            case events.TrialStarted():
                family[event.trial] = event.family
                going |= {event.trial} if event.family == "boosting" else set()
            case events.TrialScored():
                spent[event.family] += event.seconds
            case events.TrialFinished():
                if family[event.trial] == "boosting":
                    return  # it had its full training
            case events.TrialPruned():
                going -= {event.trial}
                if family[event.trial] == "boosting" and not going:
                    assert spent["boosting"] >= spent["forest"]
    assert going


STOPPING = HistGradientBoostingClassifier(
    early_stopping=True, max_iter=100, n_iter_no_change=3, validation_fraction=0.3,
    random_state=0,
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [30.0, 60.0, 90.0, 120.0, 180.0])
def test_a_final_fit_that_may_stop_early_ends_in_time(clock: Clock, seconds: float) -> None:
    """Some stop at once, others go on: what is kept for the best is what it has taken."""
    begin = clock.now
    space = {"learning_rate": [1.0, 0.5, 0.3, 0.1, 0.05, 0.02], "max_leaf_nodes": [4, 8]}
    keep = ActionElimination(eps=math.inf)
    searched({"boosting": (STOPPING, space)}, timeout=seconds, bandit=keep)
    assert clock.now - begin <= seconds
