"""How much of the package a reader must open: no circles of files, few files of one fit."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from graphlib import TopologicalSorter
from pathlib import Path
from types import FrameType
from typing import Any

import grimp
import numpy as np
import pytest

import mlopt

SOURCES = Path(mlopt.__file__).parent
MOST_FILES = 25


@pytest.mark.parametrize("room", ["gd", "kernels"])
def test_no_file_of_a_room_imports_itself_by_way_of_others(room: str) -> None:
    graph = grimp.build_graph("mlopt", exclude_type_checking_imports=True, cache_dir=None)
    files = {m for m in graph.modules if m.startswith(f"mlopt.{room}.")}
    assert len(files) > 20
    imports = {m: graph.find_modules_directly_imported_by(m) & files for m in files}
    TopologicalSorter(imports).prepare()  # names the files of a circle


@contextmanager
def files_that_run() -> Iterator[set[str]]:
    """The files of the package in which functions are called, in whatever thread."""
    found: set[str] = set()

    def seen(frame: FrameType, event: str, arg: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(SOURCES) and frame.f_code.co_name != "<module>":
            found.add(str(path.relative_to(SOURCES)))

    before = sys.gettrace()
    threading.settrace(seen)
    sys.settrace(seen)
    try:
        yield found
    finally:
        sys.settrace(before)
        threading.settrace(before)


def test_a_small_logistic_regression_runs_through_few_files() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 12))
    y = X @ rng.standard_normal(12) + rng.standard_normal(6000) > 0
    mlopt.LogisticRegression().fit(X, y)  # what compiles, or is read once, is no fit's own
    with files_that_run() as found:
        mlopt.LogisticRegression().fit(X, y)
    assert len(found) <= MOST_FILES, sorted(found)
