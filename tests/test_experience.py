"""Ratios of measured over predicted: bounded, shrunk, stored, and forgotten."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.config
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import forks

from mlopt.report.machine import describe
from mlopt.resources import Calibration, Resources, cache, probe
from mlopt.resources import experience as remembering
from mlopt.resources.experience import SECONDS, Experience, Ratio, Seen

SEEN = [Seen("lbfgs", SECONDS, "dense", 2.0)]
ratios = st.floats(1e-6, 1e6)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of its own, where fits are remembered."""
    monkeypatch.setattr(cache, "directory", lambda: tmp_path / "cache")
    monkeypatch.setattr(remembering, "_waiting", [])
    monkeypatch.setattr(remembering, "_APART", 0.0)
    monkeypatch.setattr(probe, "_known", {})
    with dask.config.set({"mlopt.remember": True}):
        yield tmp_path / "cache"


def cache_count() -> int:
    return sum(ratio.count for _, ratio in remembering._load(remembering._file()).entries)


def count() -> int:
    found = remembering.experience()
    assert found is not None
    return sum(ratio.count for _, ratio in found.entries)


@given(st.lists(ratios, max_size=40), ratios)
def test_one_fit_moves_a_factor_by_a_bounded_step(before: list[float], one: float) -> None:
    found = Ratio()
    for ratio in before:
        found = found.after(ratio)
    moved = found.after(one)
    assert abs(moved.mean - found.mean) <= math.log(3.0) / min(len(before) + 1, 30) + 1e-9
    assert moved.spread <= math.log(3.0)


@given(ratios, st.integers(1, 60))
def test_factors_lie_between_one_and_what_was_measured(ratio: float, times: int) -> None:
    found = Ratio()
    for _ in range(times):
        found = found.after(ratio)
    low, high = sorted((1.0, ratio))
    assert low * (1 - 1e-9) <= found.factor() <= high * (1 + 1e-9)


def test_a_machine_that_changes_is_followed() -> None:
    found = Ratio()
    for ratio in [1.0] * 500 + [2.0] * 100:
        found = found.after(ratio)
    assert found.factor() == pytest.approx(2.0, rel=0.15)


def test_what_is_remembered_is_found_by_another_process(folder: Path) -> None:
    remembering.remember(SEEN)
    assert remembering._load(remembering._file()) == Experience().after(SEEN)
    assert Resources.remembered().experience == Experience().after(SEEN)
    assert not [f for f in folder.iterdir() if f.suffix not in (".json", ".lock")]


@pytest.mark.parametrize(
    "methods",
    [None, [], {"a": 3}, {"a": {"b": {"c": [float("nan"), 1, 1]}}}, "half a file"],
)
def test_a_damaged_file_holds_nothing_and_is_replaced(folder: Path, methods: Any) -> None:
    remembering.remember(SEEN)
    file = remembering._file()
    text = json.dumps({"formulas": cache.FORMULAS, "methods": methods})
    file.write_text(text[:20] if methods == "half a file" else text)
    assert count() == 0
    remembering.remember(SEEN)
    assert count() == 1
    assert json.loads(file.read_text())


def test_ratios_of_other_formulas_are_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remembering.remember(SEEN)
    monkeypatch.setattr(cache, "FORMULAS", "other")
    assert remembering._load(remembering._file()) == Experience()


def test_where_nothing_can_be_written_this_process_remembers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file where the folder should be")
    for _ in range(200):
        remembering.remember(SEEN)
    assert count() == 100
    folder.unlink()
    remembering.remember(SEEN)
    assert len(remembering._load(remembering._file()).entries) == 1


def test_a_fit_that_meets_another_writer_is_not_lost(folder: Path) -> None:
    with remembering._only_writer(remembering._file()):
        remembering.remember(SEEN)
        assert remembering._load(remembering._file()) == Experience()
        assert count() == 1
    remembering.remember(SEEN)
    assert count() == 2
    assert not remembering._waiting


@pytest.mark.slow
def test_processes_add_to_one_file(folder: Path) -> None:
    """Each sees what the other has written before."""
    code = (
        "from pathlib import Path\n"
        "from mlopt.resources import cache, experience\n"
        f"cache.directory = lambda: Path({str(folder)!r})\n"
        "experience.remember([experience.Seen('lbfgs', 'seconds', 'dense', 2.0)])\n"
    )
    settings = os.environ | {"DASK_MLOPT__REMEMBER": "true"}
    remembering.remember(SEEN)
    forks.run([sys.executable, "-c", code], check=True, env=settings)
    remembering.remember(SEEN)
    assert count() == 3
    off = os.environ | {"DASK_MLOPT__REMEMBER": "false"}
    forks.run([sys.executable, "-c", code], check=True, env=off)
    assert count() == 3


def test_fits_that_come_one_after_the_other_are_written_together(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembering, "_APART", 1e9)
    monkeypatch.setattr(remembering, "_written", -1e18)
    for _ in range(5):
        remembering.remember(SEEN)
    assert count() == 5
    assert cache_count() == 1
    remembering._end()  # as Python does when it ends
    assert cache_count() == 5


def test_what_was_remembered_can_be_seen_and_forgotten(folder: Path) -> None:
    remembering.remember(SEEN)
    assert "seconds: dense" in describe(Resources.remembered())
    remembering.forget()
    assert count() == 0
    assert "no fit is remembered yet" in describe(Resources.remembered())
    remembering.forget()  # there may be nothing to forget
    with dask.config.set({"mlopt.remember": False}):
        assert "nothing is remembered of fits" in describe(Resources.remembered())


def test_other_predictions_are_not_corrected_by_these_ratios(folder: Path) -> None:
    remembering.remember(SEEN)
    with dask.config.set({"mlopt.resources": {"gemm_f64": 1e9}}):
        assert Resources.remembered().experience is None
    with dask.config.set({"mlopt.resources": {"memory": 2**30}}):
        assert Resources.remembered().experience is not None
    assert Resources().experience is None
    probe.keep_calibration(Calibration())
    assert count() == 0


def test_without_a_home_fits_are_remembered_in_this_process(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(cache, "directory", homeless)
    remembering.remember(SEEN)
    assert count() == 1
    assert Resources.remembered().experience is not None
    assert not probe.keep_calibration(Calibration())
    assert count() == 0
