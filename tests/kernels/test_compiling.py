"""Compilation is said once and is no model's time."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from typing import Any

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import FunctionTransformer

import mlopt
from mlopt.gd.plans import fitting
from mlopt.kernels import compiling
from mlopt.kernels.one_row import squared_norms
from mlopt.tuning.crews import batching


def compile_something() -> None:
    """A function that nobody has compiled, as if it were a kernel."""

    def fresh(values: Any) -> float:
        total = 0.0
        for value in values:
            total += np.sqrt(value)
        return total

    fresh.__module__ = "mlopt.kernels.made_up"
    numba.njit(fresh)(np.ones(3))


def data() -> tuple[Any, Any]:
    X = np.random.default_rng(0).normal(size=(60, 3))
    return X, (X[:, 0] > 0).astype(int)


@pytest.fixture(autouse=True)
def _shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_SHOWN", 0.0)


ROUNDING = 0.05
"""Seconds that `said` is off by at most; what is compiled takes much longer."""


def said(plan: mlopt.Plan) -> float:
    (line,) = [note for note in plan.notes if note.startswith("compiling kernels, once: ")]
    return float(line.split()[-2])


def test_seconds_of_compilation_are_seen_as_they_pass() -> None:
    start = time.perf_counter()
    compile_something()
    seconds = compiling.compiled(start)
    assert 0 < seconds <= time.perf_counter() - start
    assert compiling.worked(start) <= time.perf_counter() - start - seconds
    assert compiling.compiled(time.perf_counter()) == 0.0


def test_one_line_a_process_says_that_kernels_compile(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compiling, "_said", threading.Event())
    with caplog.at_level(logging.WARNING, logger="mlopt"):
        compile_something()
        compile_something()
    (message,) = caplog.messages
    assert "compiles kernels: once on this machine" in message


def test_what_others_compile_is_not_ours() -> None:
    start = time.perf_counter()
    numba.njit(lambda value: value + 1)(1)
    assert compiling.compiled(start) == 0.0


def test_a_fit_does_not_count_compilation_as_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    train = fitting.Chosen.run

    def compiles_first(*given: Any) -> Any:
        for _ in range(5):
            compile_something()
        return train(*given)

    monkeypatch.setattr(fitting.Chosen, "run", compiles_first)
    plan = mlopt.LogisticRegression(solver="lbfgs").fit(*data()).plan_
    (choice,) = plan.choices
    assert plan.measured is not None
    assert choice.measured is not None
    assert choice.measured <= plan.measured - said(plan) + 2 * ROUNDING


def test_a_pipeline_says_what_compilation_took() -> None:
    def first_call_compiles(X: Any) -> Any:
        compile_something()
        return X

    X, y = data()
    step = FunctionTransformer(first_call_compiles)
    plan = mlopt.make_pipeline(step, mlopt.LogisticRegression()).fit(X, y).plan_
    assert said(plan) >= 0.0


def test_a_search_says_what_compilation_took(monkeypatch: pytest.MonkeyPatch) -> None:
    advance = batching.BatchCrew._advance

    def compiles_first(self: Any, *given: Any) -> None:
        for _ in range(5):
            compile_something()
        advance(self, *given)

    monkeypatch.setattr(batching.BatchCrew, "_advance", compiles_first)
    search = mlopt.ModelSearchCV(
        mlopt.LogisticRegression(), {"C": [0.1, 1.0]}, sampler="grid", bandit=None, cv=2
    )
    plan = search.fit(*data()).plan_
    family = plan.choices[0]
    assert family.measured is not None
    assert plan.measured is not None
    assert family.measured <= plan.measured - said(plan) + 2 * ROUNDING


READ = """
import time
import scipy.sparse as sp
from mlopt.kernels import compiling
from mlopt.kernels.one_row import squared_norms
start = time.perf_counter()
squared_norms(sp.csr_array([[1.0, 2.0]]))
assert compiling.compiled(start) == 0.0
took = compiling.loaded(start)
assert 0 < took < time.perf_counter() - start
assert compiling.worked(start) <= time.perf_counter() - start - took
(line,) = compiling.notes(start)
assert line.startswith("loading kernels, once in this process: "), line
squared_norms(sp.csr_array([[1.0, 2.0]]))
assert compiling.loaded(start) == took
"""


def test_what_is_read_from_disk_is_seen_apart() -> None:
    squared_norms(sp.csr_array([[1.0, 2.0]]))  # there it is now
    subprocess.run([sys.executable, "-c", READ], check=True)


def test_what_is_read_while_a_kernel_compiles_is_part_of_that() -> None:
    start = time.perf_counter()
    compiling.begin()
    with compiling.loading():
        time.sleep(0.01)
    compiling.end()
    assert compiling.loaded(start) == 0.0
    assert compiling.once(start) == compiling.compiled(start) >= 0.01


def test_planning_counts_no_reading_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(self: Any, X: Any) -> Any:
        with compiling.loading():
            time.sleep(0.3)
        return X

    monkeypatch.setattr(FunctionTransformer, "transform", slow)
    X, y = data()
    steps = [("read", FunctionTransformer()), ("fit", mlopt.Ridge())]
    model = mlopt.Pipeline(steps).fit(np.tile(X, (50, 1)), np.tile(y, 50))
    (planning,) = [note for note in model.plan_.notes if "planning took" in note]
    (read,) = [
        n for n in model.plan_.notes if n.startswith("loading kernels, once in this")
    ]
    assert model.plan_.measured is not None
    others = model.plan_.measured - float(read.split()[-2])
    assert float(planning.split()[-2]) <= others + 2 * ROUNDING
