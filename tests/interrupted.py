"""A sweep in a process of its own that gets a signal, and what came of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from tests import forks

OUTPUTS = {"result.json", "report.html", "plan.json", "trials.parquet"}
"""What a sweep that got as far as a score has written, whatever interrupts it."""


def write_people(folder: Path) -> Path:
    """A small table with a category, a number and the target ``buys``."""
    random = np.random.default_rng(0)
    age = random.integers(18, 80, 400)
    city = random.choice(["rome", "oslo"], 400)
    buys = np.where(age + 20 * (city == "oslo") > 55, "yes", "no")
    path = folder / "people.csv"
    pd.DataFrame({"age": age, "city": city, "buys": buys}).to_csv(path, index=False)
    return path


@dataclass(frozen=True)
class Ended:
    """How a sweep ended."""

    status: int
    out: str
    err: str
    files: set[str]
    seconds: float
    """From the signal on; from the start where there was none."""
    orphans: bool

    @property
    def says_how_to_go_on(self) -> bool:
        """Whether its last words are the command to go on with."""
        return "To go on: mlopt sweep" in self.err.splitlines()[-1]


def sweep(
    table: Path,
    output: Path,
    when: Callable[[str], bool] | float | None,
    number: int = signal.SIGINT,
    *,
    loaded: bool = True,
) -> Ended:
    """Sweep ``table``; the signal comes after a line on stderr, or after seconds.

    Without ``loaded`` the process begins with nothing, as for users.
    """
    command = [sys.executable, "-m", "mlopt", "sweep", str(table), "--target", "buys"]
    command += ["--output", str(output), "--families", "linear,extra_trees"]
    command += ["--n-trials", "8", "--timeout", "60"]
    start = forks.Popen if loaded else subprocess.Popen
    process = start(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=_hear_interrupts,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    assert process.stderr is not None
    begin, seen = time.monotonic(), ""
    if callable(when):
        for line in process.stderr:
            seen += line
            if when(line):
                break
    elif when is not None:
        time.sleep(when)
    if when is not None and process.poll() is None:
        begin = time.monotonic()
        process.send_signal(number)
    out, err = process.communicate(timeout=120)
    seconds = time.monotonic() - begin
    files = {path.name for path in output.iterdir()} if output.is_dir() else set()
    return Ended(
        process.returncode, out, seen + err, files, seconds, _has_members(process.pid)
    )


def _has_members(group: int) -> bool:
    """Whether a process group has a process yet."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _hear_interrupts() -> None:
    """What a shell starts in the background is told to ignore Ctrl-C, and so are we."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
