"""How much of the package a reader must open: no circles of files, few files of one fit."""

from __future__ import annotations

import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
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


TRACED = """
import sys, threading
from pathlib import Path
import numpy as np
import mlopt

sources, found = Path(mlopt.__file__).parent, set()

def seen(frame, event, arg):
    path = Path(frame.f_code.co_filename)
    if path.is_relative_to(sources) and frame.f_code.co_name != "<module>":
        found.add(str(path.relative_to(sources)))

rng = np.random.default_rng(0)
X = rng.standard_normal((6000, 12))
y = X @ rng.standard_normal(12) + rng.standard_normal(6000) > 0
mlopt.LogisticRegression().fit(X, y)  # what compiles, or is read once, is no fit's own
threading.settrace(seen)
sys.settrace(seen)
mlopt.LogisticRegression().fit(X, y)
sys.settrace(None)
print(*sorted(found), sep="\\n")
"""


def test_a_small_logistic_regression_runs_through_few_files() -> None:
    # In a process of its own: Python 3.11 traces on for ever where an exception is on its
    # way to a thread that does not run, such as one that other tests have given up.
    run = subprocess.run(
        [sys.executable, "-c", TRACED], capture_output=True, text=True, check=True
    )
    found = run.stdout.split()
    assert "gd/logistic.py" in found
    assert len(found) <= MOST_FILES, found
