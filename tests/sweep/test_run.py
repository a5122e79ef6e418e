"""A sweep finds a model, tests it on rows it never saw, and can be taken up again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score

from mlopt import events
from mlopt.errors import ConfigError, InputError
from mlopt.report.history import PRUNED
from mlopt.sweep.run import explain, sweep

FEW: dict[str, Any] = {"n_trials": 4, "timeout": 60.0, "families": ["linear"]}


def test_the_model_beats_the_majority_and_its_test_score_is_true(swept: Any) -> None:
    result = swept.result
    prepared = result.prepared
    predicted = result.model.predict(prepared.X_test)
    assert result.test_score == pytest.approx(accuracy_score(prepared.y_test, predicted))
    majority = max(np.mean(prepared.y_test == label) for label in prepared.target.classes)
    assert result.test_score > majority + 0.1


def test_test_rows_are_not_among_those_searched_on(swept: Any) -> None:
    prepared = swept.result.prepared
    assert len(prepared.X) + len(prepared.X_test) == 400
    both = pd.concat([prepared.X, prepared.X_test])
    assert not both.duplicated().any()


def test_the_best_trial_is_the_best_of_those_not_pruned(swept: Any) -> None:
    kept = [row.score for row in swept.result.trials if row.state != PRUNED]
    assert swept.result.best_score == max(kept)


def test_the_default_of_every_family_is_tried(swept: Any) -> None:
    first = [row for row in swept.result.trials if row.number < 2]
    assert {row.family for row in first} == {"linear", "extra_trees"}
    assert next(r.params for r in first if r.family == "linear") == {"model__C": 1.0}


def test_what_is_done_is_told(swept: Any) -> None:
    texts = [event.text for event in swept.told if isinstance(event, events.Message)]
    assert any("classification of 'buys'" in text for text in texts)
    assert any("3 categories" in text or "1 categories" in text for text in texts)
    assert any(isinstance(event, events.TrialScored) for event in swept.told)
    times = [event.elapsed for event in swept.told]
    assert times == sorted(times)


@pytest.mark.slow
def test_the_same_sweep_again_goes_on_where_it_was(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    first = sweep(table, "buys", output=tmp_path, **FEW)
    more = sweep(table, "buys", output=tmp_path, **FEW | {"n_trials": 7})
    assert len(more.trials) == 7
    assert [(r.family, r.params, r.score) for r in more.trials[:4]] == [
        (r.family, r.params, r.score) for r in first.trials
    ]


@pytest.mark.slow
def test_other_data_in_the_same_folder_are_another_study(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    sweep(table, "buys", output=tmp_path, **FEW)
    other = sweep(table.drop(columns="wage"), "buys", output=tmp_path, **FEW)
    assert len(other.trials) == 4


@pytest.mark.slow
def test_the_same_seed_gives_the_same_sweep(table: pd.DataFrame) -> None:
    one, two = (sweep(table, "buys", sampler="random", **FEW) for _ in range(2))
    assert [r.score for r in one.trials] == [r.score for r in two.trials]
    assert one.test_score == two.test_score


def test_a_regression_is_scored_by_r2(table: pd.DataFrame) -> None:
    result = sweep(table, "age", **FEW)
    assert result.prepared.scoring == "r2"
    assert result.model.predict(result.prepared.X_test).dtype.kind == "f"


def test_a_test_file_is_used_as_it_is(table: pd.DataFrame) -> None:
    result = sweep(table.iloc[:300], "buys", test=table.iloc[300:], **FEW)
    assert len(result.prepared.y_test) == 100
    assert len(result.prepared.y) == 300


def test_a_test_file_of_one_class_loses_no_result(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    test = table[table["buys"] == "yes"]
    result = sweep(table, "buys", test=test, scoring="roc_auc", output=tmp_path, **FEW)
    assert "test roc_auc: none, " in result.describe()
    found = json.loads((tmp_path / "result.json").read_text("utf-8"))
    assert found["test_score"] is found["baseline"] is None
    assert found["test_scores"]["accuracy"] == result.model.score(
        test.drop(columns="buys"), test["buys"]
    )


def test_rows_without_a_target_are_left_out_and_that_is_said(table: pd.DataFrame) -> None:
    told: list[events.Event] = []
    table.loc[:9, "buys"] = None
    result = sweep(table, "buys", observer=told.append, **FEW)
    assert len(result.prepared.y) + len(result.prepared.y_test) == 390
    assert any("10 of 400 rows have no target" in str(event) for event in told)


@pytest.mark.slow
def test_a_plan_can_be_had_before_anything_runs(table: pd.DataFrame) -> None:
    plan = explain(table, "buys")
    steps = [choice.step for choice in plan.choices]
    assert steps == [
        "read",
        "columns",
        "test part",
        "validation",
        "search",
        "test",
    ]
    assert "linear" in plan.explain()
    assert plan.measured is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"target": "buyz"}, "Did you mean `buys`"),
        ({"scoring": "acuracy"}, "Did you mean `accuracy`"),
        ({"families": ["lineer"]}, "Did you mean `linear`"),
        ({"drop": ["agee"]}, "Did you mean `age`"),
        ({"task": "regression"}, "needs numbers"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_written(
    table: pd.DataFrame, tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    output = tmp_path / "out"
    given: dict[str, Any] = {"target": "buys", "timeout": 5.0} | change
    with pytest.raises((ConfigError, InputError), match=says):
        sweep(table, output=output, **given)
    assert not output.exists()


def test_too_few_rows_are_refused(table: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="at least 20 rows"):
        sweep(table.head(15), "buys", timeout=5.0)


def test_a_table_without_a_useful_column_is_refused(table: pd.DataFrame) -> None:
    with pytest.raises(InputError, match=r"none is left.*numbers the rows"):
        sweep(table[["buys"]].assign(row=range(400)), "buys", timeout=5.0)
