"""A submitted sweep outlives whatever dies: its client, its worker, its scheduler."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
SCRIPT = Path(__file__).parents[2] / "benchmarks/jobs.py"


def script() -> Any:
    """The script that anyone can run again, as a module."""
    spec = importlib.util.spec_from_file_location("jobs_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its data classes look for it
    spec.loader.exec_module(module)
    return module


def test_a_submitted_sweep_survives(tmp_path: Path) -> None:
    jobs = script()
    with jobs.pool() as running:
        found = jobs.survive(running, tmp_path, "random", 12)
    assert found.status == "lost"
    assert found.attempts >= 3
    for name in jobs.SAME:
        assert found.there[name] == found.here[name], name
