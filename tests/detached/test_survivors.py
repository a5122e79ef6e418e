"""A submitted sweep outlives whatever dies: its client, its worker, its scheduler."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.clusters import eventually
from tests.interrupted import write_people

from mlopt.cluster.connect import connect
from mlopt.detached.job import jobs
from mlopt.detached.records import Folder
from mlopt.sweep.config import Config, Data, Search
from mlopt.sweep.outputs import summary
from mlopt.sweep.run import sweep

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
SETTINGS: dict[str, Any] = {"timeout": None, "n_trials": 12, "sampler": "random"}
SUBMIT = """
import sys, time
import mlopt
from mlopt.detached.work import Sweep
from mlopt.sweep.config import Config, Data, Search

path, storage, scheduler = sys.argv[1:]
config = Config(data=Data(path=path, target="buys"), search=Search(**{settings}))
work = Sweep(config=config, families=("extra_trees",))
mlopt.submit(work, scheduler=scheduler, storage=storage, name="survivor")
print("submitted", flush=True)
time.sleep(1000)
"""


class Pool:
    """A scheduler and two workers, each in a process of its own."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def start(self) -> None:
        """All of them, anew."""
        self.end()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        port = self.address.rpartition(":")[2]
        python, here = [sys.executable, "-m"], ["--host", "127.0.0.1"]
        scheduler = [
            "distributed.cli.dask_scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            port,
        ]
        worker = ["distributed.cli.dask_worker", self.address, "--nworkers", "2"]
        for command in (scheduler, [*worker, "--nthreads", "1", *here]):
            self.processes.append(
                subprocess.Popen(
                    [*python, *command, "--no-dashboard"],
                    stderr=subprocess.DEVNULL, start_new_session=True,
                )
            )  # fmt: skip

    def kill_scheduler(self) -> None:
        self.processes[0].kill()

    def end(self) -> None:
        for process in self.processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.processes = []


@pytest.fixture
def pool() -> Iterator[Pool]:
    running = Pool()
    running.start()
    yield running
    running.end()


def finished(folder: Folder, attempt: int) -> int:
    """Trials that an attempt has finished."""
    log = folder.log(attempt)
    return log.read_text().count('"TrialFinished"') if log.exists() else 0


def test_a_submitted_sweep_survives(pool: Pool, tmp_path: Path) -> None:
    people, storage = write_people(tmp_path), tmp_path / "jobs"
    folder = Folder(storage / "survivor")
    program = SUBMIT.replace("{settings}", repr(SETTINGS))
    command = [sys.executable, "-c", program, str(people), str(storage), pool.address]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"submitted\n"
        client.kill()

    assert eventually(lambda: finished(folder, 1) >= 2, 60)
    with connect(pool.address) as asking:
        pids = asking.run(os.getpid)
    os.kill(pids[folder.read().worker], signal.SIGKILL)

    assert eventually(lambda: finished(folder, 2) >= 4, 60)
    pool.kill_scheduler()
    pool.start()
    with connect(pool.address) as asking:
        (job,) = jobs(asking, storage)
        assert job.status == "lost"
        job.resume()
    asked = ["mlopt", "jobs", "survivor", "--json", "--scheduler", pool.address]
    found = subprocess.run(
        [sys.executable, "-m", *asked, "--storage", storage],
        stdout=subprocess.PIPE,
        check=True,
    )
    there = json.loads(found.stdout)

    assert folder.read().attempt >= 3
    config = Config(data=Data(path=str(people), target="buys"), search=Search(**SETTINGS))
    here = summary(sweep(config=config, families=["extra_trees"]))
    for name in ("best_score", "best_params", "test_scores", "n_trials", "passes"):
        assert there[name] == here[name], name
