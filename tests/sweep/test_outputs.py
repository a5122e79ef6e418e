"""What is written is complete, can be read again, and never half there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from tests.plans import plan_of
from tests.sweep.conftest import people

from mlopt.errors import InputError
from mlopt.report.history import TrialRow
from mlopt.sweep.config import Config, override
from mlopt.sweep.formulas import csv_of
from mlopt.sweep.models import load
from mlopt.sweep.outputs import check_folder, plain, summary, write_trials
from mlopt.sweep.run import sweep
from mlopt.writing import write_files

KEYS = {
    "best_score", "best_params", "scoring", "n_trials", "n_pruned", "passes",
    "models_trained", "seconds", "test_score", "seed", "versions",
}  # fmt: skip


@pytest.mark.slow
def test_every_promised_file_is_there_and_nothing_else_is_left(swept: Any) -> None:
    names = {p.name for p in swept.folder.iterdir() if not p.name.endswith(".lock")}
    assert names >= {
        "model.skops", "model.joblib", "trials.parquet", "plan.txt", "plan.json",
        "report.html", "result.json", "study.db",
    }  # fmt: skip
    assert not [name for name in names if name.startswith(".")]


def test_the_result_has_the_promised_keys_and_true_values(swept: Any) -> None:
    content = json.loads((swept.folder / "result.json").read_text())
    assert set(content) >= KEYS
    assert content == json.loads(json.dumps(summary(swept.result)))
    assert content["n_trials"] == 10
    assert content["best_params"]["family"] in ("linear", "extra_trees")


@pytest.mark.slow
def test_the_saved_models_predict_what_the_model_predicts(swept: Any) -> None:
    X = swept.result.prepared.X_test
    expected = swept.result.model.predict(X)
    assert np.array_equal(load(swept.folder / "model.skops").predict(X), expected)
    assert np.array_equal(joblib.load(swept.folder / "model.joblib").predict(X), expected)


def test_the_table_of_trials_has_a_row_a_trial(swept: Any) -> None:
    trials = pd.read_parquet(swept.folder / "trials.parquet")
    assert trials["number"].tolist() == list(range(10))
    assert trials["score"].max() >= swept.result.best_score
    assert {"family", "state", "passes", "seconds", "param_model__C"} <= set(trials.columns)


@pytest.mark.parametrize("value", [np.inf, np.float64("nan"), 1.5, np.int64(3), True, "a"])
def test_a_value_is_one_that_any_reader_of_json_takes(value: Any) -> None:
    text = json.dumps(plain(value), allow_nan=False)
    odd = isinstance(value, float) and not np.isfinite(value)
    assert json.loads(text) == (str(value) if odd else value)


@pytest.mark.parametrize("trials", ["csv", "parquet"])
def test_a_parameter_of_mixed_values_is_missing_where_a_trial_has_none(
    trials: str, tmp_path: Path
) -> None:
    tried: list[dict[str, Any]] = [{"depth": "sqrt"}, {"depth": 0.5}, {"depth": None}, {}]
    rows = [TrialRow(k, "tree", params) for k, params in enumerate(tried)]
    write_trials(rows, override(Config(), trials=trials), tmp_path)
    read = pd.read_csv if trials == "csv" else pd.read_parquet
    column = read(tmp_path / f"trials.{trials}")["param_depth"]
    assert column.dropna().tolist() == ["sqrt", "0.5"]


@pytest.mark.parametrize("trials", ["csv", "parquet"])
def test_whole_numbers_stay_whole_where_another_family_has_none(
    trials: str, tmp_path: Path
) -> None:
    rows = [TrialRow(0, "tree", {"depth": 4}), TrialRow(1, "linear", {"C": 2.0})]
    write_trials(rows, override(Config(), trials=trials), tmp_path)
    read = pd.read_csv if trials == "csv" else pd.read_parquet
    table = read(tmp_path / f"trials.{trials}", dtype_backend="numpy_nullable")
    assert str(table["param_depth"].dtype) == "Int64"
    if trials == "csv":
        assert ",4," in (tmp_path / "trials.csv").read_text().splitlines()[1] + ","


def test_a_file_may_have_a_name_of_any_bytes(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9 \xff.csv")
    people(100).to_csv(path, index=False)
    result = sweep(
        str(path), "buys", n_trials=1, families=["linear"], timeout=60.0, output=tmp_path
    )
    assert result.prepared.name == "caf\ufffd \ufffd.csv"
    assert result.prepared.name in (tmp_path / "report.html").read_text("utf-8")


def test_the_plan_is_written_as_text_and_as_json(swept: Any) -> None:
    plan = plan_of(json.loads((swept.folder / "plan.json").read_text()))
    assert plan == swept.result.plan
    assert (swept.folder / "plan.txt").read_text().strip() == plan.explain(
        verbose=True
    ).strip()


def test_a_write_that_fails_leaves_the_old_files_and_no_others(tmp_path: Path) -> None:
    old = tmp_path / "result.json"
    old.write_text("old")
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_files({tmp_path / "taken" / "a" / "b": b"new", old: b"new"})
    assert old.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["result.json", "taken"]


def test_texts_that_a_spreadsheet_would_run_are_quoted() -> None:
    content = csv_of(pd.DataFrame({"prediction": ["=1+1", "fine", "-x"], "n": [-1, 2, 3]}))
    assert content.decode().splitlines() == ["prediction,n", "'=1+1,-1", "fine,2", "'-x,3"]


def test_names_of_columns_are_no_formulas_either() -> None:
    table = pd.DataFrame([[1.0, 2.0]], columns=["=1+cmd()", 0])
    assert csv_of(table).decode().splitlines() == ["'=1+cmd(),0", "1.0,2.0"]
    assert csv_of(table, header=False).decode() == "1.0,2.0\n"


@pytest.mark.parametrize("name", ["trials.csv", "plan.txt", "result.json"])
def test_files_of_others_are_not_replaced(
    name: str, table: pd.DataFrame, tmp_path: Path
) -> None:
    (tmp_path / name).write_text("7")
    with pytest.raises(InputError, match=f"has `{name}`: name another folder"):
        sweep(table, "buys", families=["linear"], n_trials=1, output=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "7"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_trials_of_a_sweep_without_a_model_are_replaced(kind: str, tmp_path: Path) -> None:
    config = override(Config(), trials=kind)
    rows = [TrialRow(0, "linear", {"C": 1.0}, reason="why")]
    write_trials(rows, config, tmp_path)
    check_folder(tmp_path, [])


def test_signs_alone_and_before_digits_are_written_as_they_are() -> None:
    texts = ["+", "-", "=", "+49 (30) 1", "-1.5", "--"]
    found = csv_of(pd.DataFrame({"prediction": texts})).decode().splitlines()
    assert found == ["prediction", *texts]


def test_all_else_is_written_of_a_model_that_no_file_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: pd.DataFrame
) -> None:
    def refuse(model: Any) -> bytes:
        raise InputError("The model must consist of reviewed types only.")

    monkeypatch.setattr("mlopt.sweep.outputs.dump_model", refuse)
    with pytest.raises(InputError, match="reviewed types only"):
        sweep(table, "buys", families=["linear"], n_trials=1, output=tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"trials.parquet", "plan.txt", "report.html", "result.json"}
    assert "model.skops" not in names
