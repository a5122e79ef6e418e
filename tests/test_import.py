"""Importing mlopt is quick, and its public names are found when asked for."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import pytest

import mlopt

HEAVY = [
    "optuna",
    "distributed",
    "matplotlib",
    "plotly",
    "sklearn",
    "dask",
    "numba",
    "pandas",
]


def test_importing_mlopt_is_quick_and_loads_nothing_heavy() -> None:
    code = "import sys, time; begin = time.process_time(); import mlopt; "
    code += f"print(time.process_time() - begin, *set({HEAVY}) & set(sys.modules))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, *heavy = done.stdout.split()
    assert heavy == []
    assert float(seconds) < 0.5  # of a core, whatever else the machine does


def test_resources_and_plans_load_nothing_heavy() -> None:
    use = "import sys, mlopt; mlopt.Resources, mlopt.Plan"
    code = f"{use}; print(*set({HEAVY}) & set(sys.modules))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_what_workers_run_loads_nothing_of_planning() -> None:
    sent = ["tasks.functions", "tasks.fitting", "running.rows_of", "blocks.cut"]
    use = "import sys, mlopt.gd.passes" + "".join(f", mlopt.pipeline.{m}" for m in sent)
    left = ["mlopt.pipeline.fits.registry", "mlopt.pipeline.planning", "sklearn.cluster"]
    code = f"{use}; print(*set({left}) & set(sys.modules))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("name", mlopt.__all__)
def test_every_public_name_is_there(name: str) -> None:
    value = getattr(mlopt, name)
    assert value is getattr(mlopt, name)
    assert name in dir(mlopt)
    if name != "__version__":
        assert value.__name__.rpartition(".")[2] == name


@pytest.mark.parametrize("room", ["cluster", "errors", "events"])
def test_what_the_pages_name_is_there_without_an_import_of_its_own(room: str) -> None:
    code = f"import mlopt; print(mlopt.{room}.__name__)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"mlopt.{room}"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", ["mlopt.gd.l1_training", "mlopt.gd.working_set", "mlopt.gd.subproblem"]
)
def test_a_solver_can_be_imported_before_the_table_that_holds_it(module: str) -> None:
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)


def test_the_version_is_that_of_the_package() -> None:
    assert mlopt.__version__ == importlib.metadata.version("mlopt")


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute `LogisticRegresion`"):
        _ = mlopt.LogisticRegresion
