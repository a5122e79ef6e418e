"""Processes that are forks end, and say, what true ones do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import forks

PROGRAMS = [
    "import sys; print(sys.argv, __name__); sys.exit(3)",
    "import sys; print(sys.stdin.read()); sys.exit('a word')",
    "import os; print(os.getcwd(), os.environ['SAID'], os.environ.get('HOME'))",
    "import sys; print(sys.stdout.encoding, sys.path[0]); sys.stderr.write('ö')",
    "import signal, os; os.kill(os.getpid(), signal.SIGKILL)",
    "import signal, os; os.kill(os.getpid(), signal.SIGINT)",
    "import atexit, threading, time\n"
    "atexit.register(print, 'last')\n"
    "threading.Thread(target=lambda: time.sleep(.1) or print('thread')).start()",
    "print('half', end=''); raise ValueError('no')",
]


def seen(run: Any, program: str, folder: Path) -> tuple[object, ...]:
    done = run(
        [sys.executable, "-c", program, "one", "two"], cwd=folder, stdin=subprocess.DEVNULL,
        capture_output=True, env={"SAID": "so", "PYTHONIOENCODING": "latin-1"}, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr.splitlines()[-1:]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_fork_is_as_a_true_process(program: str, tmp_path: Path) -> None:
    found, expected = (seen(run, program, tmp_path) for run in (forks.run, subprocess.run))
    assert found == expected


def test_a_fork_is_killed_waited_for_and_heard() -> None:
    program = "import time; print('begun', flush=True); time.sleep(60)"
    with forks.Popen(
        [sys.executable, "-c", program],
        stdout=forks.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        assert process.poll() is None
        with pytest.raises(forks.TimeoutExpired):
            process.wait(0.01)
        assert os.getpgid(process.pid) == process.pid
        process.terminate()
    assert process.returncode == -signal.SIGTERM


def test_chance_is_not_that_of_another() -> None:
    program = "import numpy, random; print(numpy.random.random(), random.random())"
    command = [sys.executable, "-c", program]
    drawn = {forks.run(command, capture_output=True).stdout for _ in range(2)}
    assert len(drawn) == 2
