"""A sweep of which no fit ever ends says so, and what became of each trial."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from mlopt.cli import run_arguments
from mlopt.errors import InputError
from mlopt.statuses import BAD_INPUT, status_of
from mlopt.sweep.run import sweep
from mlopt.tuning.crews.black_box import BlackBoxCrew

SETTINGS: dict[str, Any] = {"families": ["random_forest"], "timeout": 2.0}


def table() -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {"a": random.normal(size=80), "target": random.choice(["x", "y"], 80)}
    )


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> None:
    """No fit ends, and nobody waits for one."""
    monkeypatch.setattr(BlackBoxCrew, "_next", lambda self, waits: None)


@pytest.mark.usefixtures("hanging")
def test_without_a_fit_that_ends_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none was fitted once .* longer `timeout`"):
        sweep(table(), "target", output=tmp_path, **SETTINGS)
    rows = pd.read_parquet(tmp_path / "trials.parquet")
    assert len(rows) > 0
    assert set(rows["state"]) == {"WAITING"}
    assert set(rows["reason"]) == {"unfinished: no time was left"}
    assert not (tmp_path / "result.json").exists()


@pytest.mark.usefixtures("hanging")
def test_the_command_line_tells_it_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "data.csv", tmp_path / "out"
    table().to_csv(data, index=False)
    arguments = ["sweep", str(data), "--output", str(out), "--families", "random_forest"]
    asked = [*arguments, "--target", "target", "--timeout", "2"]
    assert status_of(lambda: run_arguments(asked)) == BAD_INPUT
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("mlopt: No trial gave a score: of ")
    assert (out / "trials.parquet").exists()


def test_what_a_sweep_found_before_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "result.json").write_text('{"study": "earlier"}')
    monkeypatch.setattr(BlackBoxCrew, "_next", lambda self, waits: None)
    with pytest.raises(InputError, match="No trial gave a score"):
        sweep(table(), "target", output=tmp_path, **SETTINGS)
    assert not (tmp_path / "trials.parquet").exists()


def test_where_every_fit_fails_the_trials_say_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any, X: Any, y: Any) -> Any:
        raise ValueError("cannot be fitted")

    monkeypatch.setattr(RandomForestClassifier, "fit", fail)
    with pytest.raises(ValueError, match="cannot be fitted"):
        sweep(table(), "target", output=tmp_path, **SETTINGS | {"n_trials": 3})
    rows = pd.read_parquet(tmp_path / "trials.parquet")
    assert set(rows["reason"]) == {"ValueError: cannot be fitted"}
