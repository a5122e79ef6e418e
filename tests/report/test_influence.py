"""The parameter that moves the score is the one that is said to matter."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import optuna
import pytest

from mlopt.report import influence
from mlopt.report.history import COMPLETE, Look, TrialRow
from mlopt.report.influence import MOST, importance, main_family, slices
from mlopt.report.tables import params_table


@pytest.fixture
def study() -> optuna.Study:
    """Thirty trials whose score follows from ``a:C`` and not from ``a:other``."""
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.RandomSampler(0)
    )
    for _ in range(30):
        trial = study.ask()
        trial.suggest_categorical("family", ["a"])
        score = trial.suggest_float("a:C", 0.0, 1.0)
        trial.suggest_float("a:other", 0.0, 1.0)
        study.tell(trial, score)
    return study


def rows_of(study: optuna.Study) -> list[TrialRow]:
    rows = []
    for trial in study.trials:
        params = {n.partition(":")[2]: v for n, v in trial.params.items() if ":" in n}
        look = Look(10, trial.value or 0.0, 1.0)
        rows.append(TrialRow(trial.number, "a", params, looks=(look,), state=COMPLETE))
    return rows


def test_what_matters_is_found(study: optuna.Study) -> None:
    shares = importance(study, rows_of(study), "a")
    assert set(shares) == {"C", "other"}
    assert shares["C"] > 0.9


@pytest.mark.parametrize("trials", [MOST, MOST + 1, 1000])
def test_of_many_trials_a_part_from_first_to_last_counts(
    trials: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all, 1000 took more than a minute, after the search had ended."""
    ranges = {"a:C": optuna.distributions.FloatDistribution(0.0, 1.0)}
    study = optuna.create_study()
    study.add_trials(
        optuna.trial.create_trial(
            params={"a:C": k / trials}, distributions=ranges, value=k / trials
        )
        for k in range(trials)
    )
    monkeypatch.setattr(influence, "_shares", lambda _, given: dict(enumerate(given)))
    seen: dict[Any, Any] = importance(study, rows_of(study), "a")
    values = [trial.params["a:C"] * trials for trial in seen.values()]
    assert len({*values}) == MOST
    assert (values[0], values[-1]) == (0.0, pytest.approx(trials - 1))


def test_few_trials_say_nothing(study: optuna.Study) -> None:
    assert importance(study, rows_of(study)[:5], "a") == {}


def test_equal_scores_say_nothing(study: optuna.Study) -> None:
    flat = [
        TrialRow(r.number, "a", r.params, looks=(Look(10, 0.5, 1.0),), state=COMPLETE)
        for r in rows_of(study)
    ]
    assert all(share == share for share in importance(study, flat, "a").values())


def test_the_main_parameter_is_shown_first(study: optuna.Study) -> None:
    rows = rows_of(study)
    assert main_family(rows, "a") == "a"
    assert [name for name, _ in slices(rows, "a", {"other": 0.1, "C": 0.9})] == [
        "C",
        "other",
    ]


def test_only_the_family_of_the_best_trial_is_looked_at(study: optuna.Study) -> None:
    rows = rows_of(study)
    look = Look(10, 2.0, 1.0)
    best = [TrialRow(k, "b", {}, looks=(look,), state=COMPLETE) for k in range(30, 35)]
    assert main_family([*rows, *best], "b") == "b"
    assert main_family([*rows, *best[:4]], "b") is None


@pytest.mark.parametrize("odd", [math.inf, math.nan, pytest.param(10**400, id="huge")])
def test_values_without_a_place_on_an_axis_stand_by_name(odd: float) -> None:
    looks = (Look(10, 0.5, 1.0),)
    rows = [
        TrialRow(k, "a", {"C": value}, looks=looks, state=COMPLETE)
        for k, value in enumerate([0.1, 1.0, odd])
    ]
    [(_, picture)] = slices(rows, "a", {})
    places = [float(x) for x in re.findall(r'cx="([^"]*)"', picture)]
    assert places == sorted(places)
    assert all(map(math.isfinite, places))
    assert f">{str(odd)[:16]}</text>" in picture


def test_parameters_of_two_steps_with_one_name_stay_apart() -> None:
    study = optuna.create_study(direction="maximize")
    depth = optuna.distributions.FloatDistribution(0, 1)
    random = np.random.default_rng(0)
    for first, second in random.random((20, 2)).tolist():
        given = {"a:one__alpha": first, "a:two__alpha": second, "a:two__C": 0.5 * second}
        study.add_trial(
            optuna.trial.create_trial(
                params=given, distributions=dict.fromkeys(given, depth), value=first
            )
        )
    shares = importance(study, rows_of(study), "a")
    assert set(shares) == {"one__alpha", "two__alpha", "C"}
    assert max(shares, key=shares.__getitem__) == "one__alpha"
    table = params_table({"one__alpha": 1, "two__alpha": 2, "two__C": 3})
    assert [name in table for name in ("one__alpha", "two__alpha", ">C<")] == [True] * 3
