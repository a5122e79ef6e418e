"""`mlopt sweep`, killed in the middle and typed again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from sklearn.datasets import make_classification
from tests import forks

from mlopt.cli import main

MLOPT = [sys.executable, "-m", "mlopt"]
ENVIRONMENT = os.environ | {"PYTHONWARNINGS": "ignore"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    X, y = make_classification(900, 5, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(label=y)
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def command(table: Path, output: Path, sampler: str) -> list[str]:
    settings = ["--target", "label", "--n-trials", "8", "--sampler", sampler, "--json"]
    few = ["--families", "linear,extra_trees", "--timeout", "300"]
    return ["sweep", str(table), *settings, *few, "--output", str(output)]


def finish(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert not caught.value.code


def trials(output: Path) -> pd.DataFrame:
    table = pd.read_parquet(output / "trials.parquet")
    return table.drop(columns=["seconds", "started", "ended"])


@pytest.mark.slow
def test_a_killed_sweep_goes_on_to_the_same_result(table: Path, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    finish(command(table, whole, "random"))
    arguments = command(table, parts, "random")
    with forks.Popen(
        [*MLOPT, *arguments], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        env=ENVIRONMENT,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        rungs = 0
        for line in process.stderr:
            rungs += '"RungDone"' in line
            if rungs == 2:  # the first rung is in the storage for sure
                break
        process.kill()
    assert not (parts / "result.json").exists()
    finish(arguments)

    pd.testing.assert_frame_equal(trials(whole), trials(parts))
    first, second = (
        json.loads((folder / "result.json").read_text()) for folder in (whole, parts)
    )
    for key in ("best_score", "best_params", "n_trials", "n_pruned", "test_score"):
        assert first[key] == second[key]
