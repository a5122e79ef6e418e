"""Commands and their files: nothing that is read is written over, secrets are not shown,
what a sweep wrote is found by its folder."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests import forks

import mlopt
from mlopt.cli import main
from mlopt.errors import InputError, masked
from mlopt.settings import Settings, config_of
from mlopt.statuses import BAD_INPUT, DONE, INTERRUPTED, status_of

SECRET = "s3cret/p@ss"
URL = f"postgresql://user:{SECRET}@host/db"


def run(*arguments: str | Path) -> int:
    """The exit status of the command line."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return int(caught.value.code or 0)


@pytest.fixture(autouse=True)
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """people.csv in the folder where commands run."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    age = random.integers(18, 80, 200)
    city = random.choice(["rome", "oslo"], 200)
    buys = np.where(age + 20 * (city == "oslo") > 55, "yes", "no")
    frame = pd.DataFrame({"age": age, "city": city, "buys": buys})
    frame.to_csv("people.csv", index=False)
    return Path("people.csv")


@pytest.fixture
def model() -> Path:
    """A model of people.csv."""
    assert run("fit", "people.csv", "--target", "buys", "--output", "model.skops") == DONE
    return Path("model.skops")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """What a command complains about that leaves every file as it was."""
    before = {p: p.read_bytes() for p in Path().rglob("*") if p.is_file()}
    assert run(*arguments) == BAD_INPUT
    assert {p: p.read_bytes() for p in Path().rglob("*") if p.is_file()} == before
    complaint = [ln for ln in capsys.readouterr().err.splitlines() if ln[:1] != "{"]
    assert len(complaint) == 1
    return complaint[0]


def test_fit_does_not_write_over_its_data(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("link.csv").symlink_to(people)
    Path("hard.csv").hardlink_to(people)
    for output in ("people.csv", "link.csv", "hard.csv"):
        said = refused(capsys, "fit", people, "--target", "buys", "--output", output)
        assert f"`{output}` is the file `people.csv`" in said


@pytest.mark.slow
def test_predict_writes_neither_over_the_model_nor_over_the_rows(
    people: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for output in (people, model):
        said = refused(capsys, "predict", model, people, "--output", output)
        assert "must not be what is read" in said


def test_a_query_does_not_write_predictions_over_its_data_or_model(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", "Q = RUN classification ON people.csv:3, people.csv:1;"
               "PERSIST Q ON m.txt") == DONE  # fmt: skip
    query = "p = PREDICT ON people.csv:1 WITH m.txt"
    for output in ("people.csv", "m.txt"):
        assert "must not be what" in refused(capsys, "run", query, "--output", output)


def test_a_sweep_does_not_write_over_its_data(capsys: pytest.CaptureFixture[str]) -> None:
    Path("out").mkdir()
    Path("people.csv").rename("out/trials.csv")
    said = refused(capsys, "sweep", "out/trials.csv", "--target", "buys", "--output", "out")
    assert "must not be what is read" in said


def test_predictions_keep_the_mode_of_their_file_and_go_through_links(
    people: Path, model: Path
) -> None:
    real, link = Path("real.csv"), Path("link.csv")
    real.touch(mode=0o600)
    link.symlink_to(real)
    assert run("predict", model, people, "--output", link) == DONE
    assert link.is_symlink()
    assert len(pd.read_csv(real)) == 200
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert run("predict", model, people, "--output", "/dev/null") == DONE


def test_a_folder_that_cannot_be_written_to_ends_a_sweep_before_it_reads(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for output in ("/proc/out", people / "out"):
        assert run("sweep", people, "--target", "buys", "--output", output) == BAD_INPUT
        said = capsys.readouterr().err
        assert said.startswith("mlopt: `output` must be in a folder that can be")
        assert (
            run("fit", people, "--target", "buys", "--output", f"{output}/m") == BAD_INPUT
        )
        assert "must be in a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (URL, "postgresql://user:***@host/db"),
        (f"--storage '{URL}?a=1' b", "--storage 'postgresql://user:***@host/db?a=1' b"),
        ("my+sql://u:p@h/d and redis://:pw@h", "my+sql://u:***@h/d and redis://:***@h"),
        ("pg://h/d?user=u&password=pw&ssl=1", "pg://h/d?user=u&password=***&ssl=1"),
        ("sqlite:////home/a@b/c:d/study.db", "sqlite:////home/a@b/c:d/study.db"),
        ("tcp://10.0.0.1:8786", "tcp://10.0.0.1:8786"),
        ("mail a@b.c: see http://x.y/z", "mail a@b.c: see http://x.y/z"),
    ],
)  # fmt: skip
def test_secrets_of_addresses_are_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.parametrize(
    "toml",
    [
        f'storage = ["{URL}"]',
        f'storage = {{ url = "{URL}" }}',
        f'sampler = "{URL}"',
        f'n_trials = "{URL}"',
    ],
)
def test_an_error_in_a_configuration_shows_no_password(
    toml: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("c.toml").write_text(
        f'[data]\npath = "people.csv"\ntarget = "buys"\n[search]\n{toml}\n'
    )
    assert run("sweep", "c.toml") == BAD_INPUT
    assert SECRET not in capsys.readouterr().err


def test_the_command_to_go_on_shows_no_password(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["mlopt", "sweep", "a.csv", "--storage", URL])
    assert status_of(interrupted) == INTERRUPTED
    said = capsys.readouterr().err
    assert SECRET not in said
    assert "To go on: mlopt sweep a.csv" in said
    assert "OPTUNA_STORAGE" in said


@pytest.mark.parametrize(
    ("text", "seconds"), [("1m", 60), ("90", 90), ("1h30m", 5400), ("0.5", 0.5)]
)
def test_a_time_limit_is_written_as_in_a_query(text: str, seconds: float) -> None:
    settings = Settings(target="buys", timeout=text)
    assert config_of("people.csv", settings).search.timeout == seconds
    plain = text if text.replace(".", "").isdigit() else f'"{text}"'
    Path("c.toml").write_text(f'[data]\npath = "people.csv"\n[search]\ntimeout = {plain}\n')
    assert config_of("c.toml", Settings()).search.timeout == seconds


@pytest.mark.slow
def test_a_sweep_says_who_won_and_is_found_by_its_folder(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--families", "linear,extra_trees", "--n-trials", "4", "--timeout", "1m"]
    assert run("sweep", people, "--target", "buys", "--output", "out", *arguments) == DONE
    said = capsys.readouterr().out
    result = json.loads(Path("out/result.json").read_text())
    family = result["best_params"].pop("family")
    assert f"best model: {family}" in said
    for name in result["best_params"]:
        assert name.removeprefix("model__") in said
    other = {"linear", "extra_trees"} - {family}
    assert f"other families: {other.pop()}" in said
    yes = (pd.read_csv(people)["buys"] == "yes").mean()
    assert result["baseline"] == pytest.approx(max(yes, 1 - yes), abs=0.02)
    assert f"always the same answer: {result['baseline']:.5g}" in said
    assert "mlopt predict out DATA" in said
    assert run("predict", "out", people, "--output", "p.csv") == DONE
    loaded = mlopt.load("out")
    assert np.array_equal(
        loaded.predict(pd.read_csv(people)), pd.read_csv("p.csv")["prediction"]
    )
    assert type(mlopt.load("out/model.skops")) is type(loaded)


def test_a_folder_without_a_model_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    with pytest.raises(InputError, match=r"`empty` must hold a model\.skops"):
        mlopt.load("empty")
    said = refused(capsys, "predict", "empty", "people.csv")
    assert "`empty` must hold a model.skops" in said


def test_columns_are_dropped_and_the_task_set_on_the_command_line(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--target", "age", "--task", "regression", "--drop", "city"]
    assert run("explain", people, *arguments, "--json") == DONE
    said = capsys.readouterr().out
    assert "dropped city: on request" in said
    assert "regression of age" in said


@pytest.mark.slow
def test_what_is_printed_is_utf_8_as_files_are_whatever_the_terminal_has(
    model: Path, tmp_path: Path
) -> None:
    people = pd.read_csv("people.csv").replace(
        {"rome": "Łódź", "yes": "Köln", "no": "Łódź"}
    )
    people.to_csv("people.csv", index=False)
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}

    def printed(*arguments: str, run: Any = forks.run) -> bytes:
        command = [sys.executable, "-m", "mlopt", *arguments]
        found = run(command, env=environment, capture_output=True, check=True)
        return bytes(found.stdout)

    run = subprocess.run  # the first begins as a user's does
    fitted = printed(
        "fit", "people.csv", "--target", "buys", "--output", str(model), run=run
    )
    assert "├─" in fitted.decode()
    shown = printed("predict", str(model), "people.csv", "--proba")
    printed("predict", str(model), "people.csv", "--proba", "--output", "out.csv")
    assert shown == Path("out.csv").read_bytes()
    assert "probability_Łódź" in shown.decode()


@pytest.mark.slow
def test_a_closed_stdout_loses_what_is_said_and_nothing_else(tmp_path: Path) -> None:
    command = "mlopt fit people.csv --target buys --output model.skops >&- 2>&-"
    command = command.replace("mlopt", f"'{sys.executable}' -m mlopt", 1)
    assert subprocess.run(command, shell=True).returncode == DONE
    assert Path("model.skops").is_file()
