"""A sweep that is interrupted says how to go on, and writes what it has."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.interrupted import OUTPUTS, sweep, write_people

from mlopt import events
from mlopt.sweep.result import SweepInterrupted
from mlopt.sweep.run import sweep as sweep_here
from mlopt.tuning import final_fit, search
from mlopt.tuning import refit as refit_of

STARTED, SEARCHING, TESTED = '"text": "read', '"text": "searching', '"text": "test '
MODEL = "model.skops"


pytestmark = pytest.mark.usefixtures("ctrl_c")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return write_people(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "number"),
    [(STARTED, signal.SIGINT), (SEARCHING, signal.SIGTERM), (TESTED, signal.SIGINT)],
)
def test_an_interrupted_sweep_ends_with_a_word_and_no_orphan(
    people: Path, tmp_path: Path, moment: str, number: int
) -> None:
    ended = sweep(people, tmp_path / "out", lambda line: moment in line, number)
    assert ended.status == 130, ended.err
    assert ended.says_how_to_go_on, ended.err
    assert "Traceback" not in ended.err
    assert not ended.orphans
    assert ended.seconds < 20
    if moment == TESTED:
        assert ended.files >= OUTPUTS | {MODEL}


INTERRUPTED = """
import mlopt.cli, mlopt.__main__ as command
mlopt.cli.run_arguments = lambda: exec("raise KeyboardInterrupt")
command.main()
"""


def test_an_interruption_within_code_that_is_made_from_text_is_heard(
    tmp_path: Path,
) -> None:
    # As the methods of dataclasses and named tuples are made, while modules are loaded.
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    command = [sys.executable, "-m", "interrupted"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "To run it again" in ended.stderr
    assert ended.returncode == 130


@pytest.mark.slow
def test_an_interruption_while_code_is_loaded_is_heard(
    people: Path, tmp_path: Path
) -> None:
    ended = sweep(people, tmp_path / "out", 0.3, loaded=False)
    assert (ended.status, ended.says_how_to_go_on) == (130, True), ended.err


def interrupted(people: Path, output: Path, observe: Callable[[Any], None]) -> Any:
    with pytest.raises(SweepInterrupted) as caught:
        sweep_here(
            pd.read_csv(people), "buys", output=output, families=["linear"], n_trials=3,
            observer=observe, timeout=None,
        )  # fmt: skip
    return caught.value.result


@pytest.mark.slow
def test_a_complete_search_is_written_although_it_is_interrupted(
    people: Path, tmp_path: Path
) -> None:
    def observe(event: events.Event) -> None:
        if isinstance(event, events.Message) and event.text.startswith("best "):
            signal.raise_signal(signal.SIGINT)

    result = interrupted(people, tmp_path / "out", observe)
    assert result.model is not None
    assert not result.interrupted
    assert {path.name for path in (tmp_path / "out").iterdir()} >= OUTPUTS | {MODEL}


@pytest.mark.slow
@pytest.mark.parametrize("hangs", [False, True])
def test_a_final_fit_is_waited_for_as_long_as_a_person_waits(
    people: Path, tmp_path: Path, hangs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = refit_of.refit
    monkeypatch.setattr(search, "PATIENCE", 0.5)

    def refit(*args: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        time.sleep(100 if hangs else 0)
        return fit(*args)

    monkeypatch.setattr(final_fit, "refit", refit)
    result = interrupted(people, tmp_path / "out", events.ignore)
    assert (result.model is None) == hangs
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= OUTPUTS
    assert (MODEL in names) != hangs


@pytest.mark.slow
def test_who_insists_is_let_go_at_once(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refit(*args: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.4)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(final_fit, "refit", refit)
    with pytest.raises(KeyboardInterrupt) as caught:
        sweep_here(pd.read_csv(people), "buys", output=tmp_path, families=["linear"],
                   n_trials=3, timeout=None)  # fmt: skip
    assert not isinstance(caught.value, SweepInterrupted)
    assert not (tmp_path / "result.json").exists()
