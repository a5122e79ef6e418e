"""`mlopt sweep` typed again with the same output: the same study, or another one, said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest
from sklearn.datasets import make_classification

from mlopt.cli import main


def table(folder: Path, name: str, changed: bool = False) -> Path:
    X, y = make_classification(200, 5, flip_y=0.1, random_state=0)
    if changed:
        X[:, :] = X[::-1].copy()
    frame = pd.DataFrame(X, columns=list("abcde")).assign(label=y)
    frame.to_csv(folder / name, index=False)
    return folder / name


def sweep(
    capsys: pytest.CaptureFixture[str], data: Path, output: Path, *more: str
) -> tuple[dict[str, Any], str]:
    """What result.json says, and what was told on stderr."""
    with pytest.raises(SystemExit) as caught:
        main(
            ["sweep", str(data), "--target", "label", "--sampler", "random", "--json",
             "--n-trials", "6", "--timeout", "300", "--output", str(output), *more]
        )  # fmt: skip
    assert not caught.value.code, capsys.readouterr().err
    told = capsys.readouterr().err
    return json.loads((output / "result.json").read_text()), told


def studies(output: Path) -> list[str]:
    return list(optuna.get_all_study_names(f"sqlite:///{output / 'study.db'}"))


@pytest.mark.slow
def test_a_corrected_table_is_searched_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--families", "linear")
    old, new = table(tmp_path, "data.csv"), table(tmp_path, "fresh.csv", changed=True)
    first, _ = sweep(capsys, old, tmp_path / "out", *few)
    fresh, _ = sweep(capsys, new, tmp_path / "fresh", *few)
    old.write_bytes(new.read_bytes())
    second, told = sweep(capsys, old, tmp_path / "out", *few)
    assert second["best_score"] == fresh["best_score"] != first["best_score"]
    assert second["test_score"] == fresh["test_score"]
    assert "`X` differs" in told
    assert len(studies(tmp_path / "out")) == 2


@pytest.mark.slow
def test_a_change_of_the_test_rows_alone_is_another_study(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, test = table(tmp_path, "data.csv"), table(tmp_path, "test.csv")
    settings = ("--families", "linear", "--test", str(test))
    sweep(capsys, data, tmp_path / "out", *settings)
    table(tmp_path, "test.csv", changed=True)
    _, told = sweep(capsys, data, tmp_path / "out", *settings)
    assert "a new study" in told
    assert len(studies(tmp_path / "out")) == 2


@pytest.mark.slow
def test_the_same_command_goes_on_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, output = table(tmp_path, "data.csv"), tmp_path / "out"
    first, told = sweep(capsys, data, output, "--families", "linear")
    assert "going on" not in told
    again, told = sweep(capsys, data, output, "--families", "linear")
    assert "going on from 6 trials" in told
    assert "replaces" not in told
    assert again["best_score"] == first["best_score"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "named"),
    [
        (("--families", "linear"), "extra_trees"),
        (("--families", "linear,extra_trees", "--scoring", "f1"), "scoring"),
    ],
)
def test_fewer_families_or_another_scoring_work_in_the_same_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], named: str
) -> None:
    data, output = table(tmp_path, "data.csv"), tmp_path / "out"
    sweep(capsys, data, output, "--families", "linear,extra_trees")
    _, told = sweep(capsys, data, output, *more)
    assert f"a new study: `{named}`" in told
    assert "this replaces the results of 6 trials" in told
    assert "linear, extra_trees" in told
