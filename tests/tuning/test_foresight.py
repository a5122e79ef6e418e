"""What a search says of its time before it begins, and after its first trials."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numba import config
from scipy.stats import uniform
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from tests.plans import plan_of

import mlopt
from mlopt.cluster import Threads
from mlopt.costs import Cost
from mlopt.gd.pricing import Shape
from mlopt.kernels import compiled, compiling
from mlopt.plan import Choice, Estimate, Plan
from mlopt.resources import Resources
from mlopt.resources.experience import SECONDS, Seen
from mlopt.stats import Stats
from mlopt.tuning import foresight, samples
from mlopt.tuning.bandits import ActionElimination, NoPruning, SuccessiveHalving
from mlopt.tuning.crews.families import Views
from mlopt.tuning.crews.prefixes import Prefixes
from mlopt.tuning.crews.scans import Scans
from mlopt.tuning.crews.trials import TrainResult, Trial
from mlopt.tuning.forecast import Forecast
from mlopt.tuning.foresight import Foresight
from mlopt.tuning.inputs import problem_of
from mlopt.tuning.rungs import Rungs
from mlopt.tuning.setup import prepare
from mlopt.tuning.typical import spread

X, y = make_classification(300, 5, random_state=0)


@pytest.mark.parametrize("model", [DecisionTreeClassifier(), LogisticRegression()])
@pytest.mark.parametrize("folds", [2, 3])
def test_the_shortest_search_is_foreseen(model: Any, folds: int) -> None:
    plan = mlopt.ModelSearchCV(model, {}, n_trials=1, cv=folds).explain(X, y)
    (estimate,) = plan.estimates
    assert 0 < estimate.low < estimate.seconds < estimate.high
    assert plan.predicted == estimate.seconds
    assert f"foreseen: {estimate}" in plan.explain().splitlines()
    assert plan_of(plan.to_dict()) == plan


class Demanding(DecisionTreeClassifier):
    """Is fitted to so many rows at least."""

    def __init__(self, rows: int = 70, max_depth: int | None = None) -> None:
        super().__init__(max_depth=max_depth)
        self.rows = rows

    def fit(self, X: Any, y: Any) -> Any:
        if len(X) < self.rows:
            raise ValueError(f"fewer than {self.rows} rows")
        return super().fit(X, y)


def test_what_a_sample_is_too_small_for_is_foreseen_by_a_larger_one() -> None:
    search = mlopt.ModelSearchCV(Demanding(), {"max_depth": [1, 2]}, cv=2)
    (estimate,) = search.explain(X, y).estimates
    assert "75 and 150 rows" in estimate.source


def test_what_cannot_be_fitted_has_no_prediction_and_fails_as_ever() -> None:
    search = mlopt.ModelSearchCV(Demanding(200), {"max_depth": [1, 2]}, cv=2)
    assert search.explain(X, y).estimates == ()
    with pytest.raises(ValueError, match="fewer than 200 rows"):
        search.fit(X, y)


def test_a_time_limit_is_the_most_that_is_foreseen() -> None:
    space = {"min_impurity_decrease": uniform(0, 1)}
    search = mlopt.ModelSearchCV(
        DecisionTreeClassifier(), space, n_trials=10**6, cv=2, timeout=9.0
    )
    (estimate,) = search.explain(X, y).estimates
    assert estimate.seconds == estimate.high == 9.0
    assert "which end it" in estimate.source


def watched(took: float, trials: int = 16) -> tuple[Foresight, Plan, Trial]:
    """A search whose trials are foreseen to take 2 s each, after one of them."""
    model = DecisionTreeClassifier()
    search = mlopt.ModelSearchCV(model, {}, cv=2)
    problem = problem_of(search, Threads(2), X, y, None, None, {})
    views = Views({"": model}, problem, Prefixes(problem, 0), 0)
    known = Forecast(Cost(fixed=2.0), source="sampled", method="search, Tree")
    rungs = Rungs(ActionElimination(), 100, 0.5)
    found = Foresight({"": known}, views, rungs, trials)
    trial = Trial(0, "", {})
    found.hear(trial, TrainResult(0, 100, {"score": (0.5,) * 2}, True, took, work=took))
    found.end(trial)
    choices = (Choice("tree", "", "", 20.0), Choice("final fit", "", "", 1.0))
    estimate = Estimate.about(21.0, 2.0, "sampled")
    return found, Plan("search", choices, 21.0, estimates=(estimate,)), trial


def test_trials_that_take_longer_correct_the_prediction() -> None:
    found, plan, trial = watched(6.0)
    assert found.corrected(plan) is plan  # one trial in sixteen tells too little
    other = replace(trial, number=1)
    found.hear(other, TrainResult(1, 100, {"score": (0.5,) * 2}, True, 6.0, work=6.0))
    found.end(other)
    first, again = found.corrected(plan).estimates
    assert first.seconds == 21.0
    assert again.seconds == pytest.approx(61.0)  # thrice the trials, and the final fit
    assert again.high / again.seconds < first.high / first.seconds


def test_trials_in_training_correct_the_prediction_too() -> None:
    found, plan, _ = watched(1.0)
    for number in range(1, 16):
        slow = Trial(number, "", {})
        look = TrainResult(number, 100, {"score": (0.5,) * 2}, False, 6.0, work=6.0)
        found.hear(slow, look)
    assert found.corrected(plan) is plan
    found.end(slow)
    _, again = found.corrected(plan).estimates
    # 15 took thrice as long, and the quickest ended first.
    assert again.seconds == pytest.approx(1 + 20 * (15 * 6 + 1) / (16 * 2))
    assert again.source == "16 of 16 trials"


def test_searches_are_remembered_by_family(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Seen] = []
    monkeypatch.setattr(foresight, "remember", seen.extend)
    watched(6.0)[0].remember()
    (one,) = seen
    assert (one.method, one.what, one.kind) == ("search, Tree", SECONDS, "sampled")
    assert one.ratio == pytest.approx(3.0, rel=0.01)


def test_trials_that_others_kept_from_the_cores_are_not_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Seen] = []
    monkeypatch.setattr(foresight, "remember", seen.extend)
    found, _, trial = watched(6.0)
    found.hear(trial, TrainResult(0, 100, {"score": (0.5,) * 2}, True, 60.0, work=6.0))
    found.end(trial)
    found.remember()
    assert not seen


@pytest.mark.parametrize(
    ("bandit", "part"),
    [
        (NoPruning(), 1.0),
        # A third after 3 passes, a ninth after 9, ...: and next to nothing for looks.
        (SuccessiveHalving(n_trials=9), 0.03 + 0.06 / 3 + 0.18 / 9 + 0.54 / 27 + 0.19 / 81),
        (ActionElimination(first=40, every=30), 0.4 + 0.6 / 2),
    ],
)
def test_what_is_given_up_is_not_foreseen_to_the_end(bandit: Any, part: float) -> None:
    found = Rungs(bandit, 100, 0.5).part(RandomForestClassifier(1000))
    assert found == pytest.approx(part, abs=0.05)


def test_half_of_what_pioneers_lead_is_foreseen_to_be_given_up() -> None:
    rungs, model = Rungs(ActionElimination(), 100, 0.5), HistGradientBoostingClassifier()
    few, many = rungs.part(model, rungs.pioneers(model)), rungs.part(model, 10**6)
    assert few == 1.0
    assert many == pytest.approx(0.55, abs=0.2)


def test_samples_are_of_configurations_all_over_the_space() -> None:
    search = mlopt.ModelSearchCV(
        DecisionTreeClassifier(), {"max_depth": [1, 2, 3, 4]}, cv=2
    )
    problem = problem_of(search, Threads(1), X, y, None, None, {})
    scheduler = prepare(search, problem)
    family, views = scheduler.proposer.space.families[0], scheduler.batch.views
    found = spread(views, family)(4)
    assert sorted(parts.final.max_depth for parts in found) == [1, 2, 3, 4]


def test_more_models_never_take_a_scan_less_time() -> None:
    stats = Stats(1000, 20)
    costs = [Scans(follows=True).cost(stats, n, 1).python for n in range(1, 200)]
    assert np.all(np.diff(costs) > -1e-12)


def test_both_ways_of_a_scan_are_counted_as_work_for_all_threads() -> None:
    shape = Shape(20_000, 200, 1, 4_000_000, 8, False, 8)
    scans = Scans(newton=10.0, loss="logistic")
    one, two = (scans.ways(shape, 48, Resources(threads=n)) for n in (1, 2))
    assert one == two


def test_kernels_that_no_disk_has_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    @compiled.kernel
    def never_called(x: Any) -> Any:
        return x

    monkeypatch.setattr(compiled, "_kernels", [never_called])
    here = __name__.rpartition(".")[2]
    assert compiled.missing(here, "few") == (not config.DISABLE_JIT)
    assert compiled.missing("few") == 0


class Hanging(DecisionTreeClassifier):
    """Never ends where it is deep."""

    def fit(self, X: Any, y: Any) -> Any:
        while self.max_depth > 2:
            time.sleep(0.01)
        return super().fit(X, y)


def test_a_sample_that_hangs_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "GRACE", 0.2)
    search = mlopt.ModelSearchCV(Hanging(), {"max_depth": [1, 2, 3]}, cv=40)
    (estimate,) = search.explain(X, y).estimates
    assert 2 <= int(estimate.source.split()[0]) < 2 * samples.MOST


def test_samples_beside_kernels_that_compile_are_forecast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(samples, "worked", lambda since: 0.0)
    search = mlopt.ModelSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2)
    (estimate,) = search.explain(X, y).estimates
    assert estimate.seconds >= 0


class Compiling(DecisionTreeClassifier):
    """Kernels of its own compile at the first fit of a process."""

    def fit(self, X: Any, y: Any) -> Any:
        compiling.begin()
        time.sleep(0.2)
        compiling.end()
        return super().fit(X, y)


def test_samples_are_waited_for_while_kernels_compile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiling.silence()
    monkeypatch.setattr(samples, "WAITS", 1e-3)
    search = mlopt.ModelSearchCV(Compiling(), {"max_depth": [1, 2]}, cv=2, timeout=60.0)
    (estimate,) = search.explain(X, y).estimates
    assert "fit" in estimate.source


def test_where_time_is_short_one_sample_must_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "SHARE", 1e-9)
    search = mlopt.ModelSearchCV(
        DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2, timeout=60.0
    )
    (estimate,) = search.explain(X, y).estimates
    assert estimate.source == "a fit to 37 rows"
