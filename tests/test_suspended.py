"""A sweep that is suspended for a while (Ctrl-Z) goes on as if nothing had been."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests import forks
from tests.interrupted import write_people


@pytest.mark.slow
def test_nothing_fails_and_nothing_is_left_over(tmp_path: Path) -> None:
    """A fit that stands still with its process does not hang."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "mlopt", "sweep", str(write_people(tmp_path))]
    command += ["--target", "buys", "--families", "extra_trees"]
    command += ["--n-trials", "3", "--timeout", "60", "--output", str(out)]
    process = forks.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if '"RungDone"' in line:
            break
    process.send_signal(signal.SIGSTOP)
    time.sleep(2.0)
    process.send_signal(signal.SIGCONT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 0, rest
    result = json.loads((out / "result.json").read_text())
    ends = {name: result[f"n_{name}"] for name in ("trials", "failed", "unfinished")}
    assert ends == {"trials": 3, "failed": 0, "unfinished": 0}
