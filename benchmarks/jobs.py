"""Submitted sweeps whose client, worker and scheduler are killed; and two on one pool.

A scheduler and two workers are started as processes of this machine. Printed are

* for the samplers random and grid: a sweep that is submitted by a process which is killed
  then (kill -9); whose worker is killed once trials have ended; whose scheduler is killed
  after some more; that is resumed on a new pool, and followed there by `mlopt jobs`. What
  it found beside the local sweep, its attempts, and how many trials were trained twice,
* a sweep of many trials and a small one submitted after it: when each began and ended,
* what is left of one that is cancelled: tasks of the scheduler, and files.

usage: jobs.py [--trials 12] [--folder DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pandas as pd

import mlopt
from mlopt.cluster.connect import connect
from mlopt.detached.kinds import Sweep
from mlopt.detached.records import Folder
from mlopt.sweep.config import Config, Data, Search
from mlopt.sweep.outputs import summary
from mlopt.sweep.run import sweep

SAME = ("best_score", "best_params", "test_scores", "n_trials", "passes")
PATIENCE = 120.0
SUBMIT = """
import sys, time
import msgspec, mlopt
from mlopt.detached.kinds import Sweep

work, storage, scheduler = sys.argv[1:]
mlopt.submit(
    msgspec.json.decode(work, type=Sweep), scheduler=scheduler, storage=storage, name="job"
)
print("submitted", flush=True)
time.sleep(1000)
"""


class Pool:
    """A scheduler and two workers, as processes."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def start(self) -> None:
        """All of them, instead of those before."""
        self.end()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        self.address, here = f"tcp://127.0.0.1:{port}", ["--host", "127.0.0.1"]
        scheduler = ["distributed.cli.dask_scheduler", *here, "--port", port]
        worker = ["distributed.cli.dask_worker", self.address, *here, "--nthreads", "1"]
        for command in (scheduler, [*worker, "--nworkers", "2"]):
            command = [sys.executable, "-m", *command, "--no-dashboard"]
            self.processes.append(
                subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
            )

    def kill_scheduler(self) -> None:
        """And see its workers go."""
        self.processes[0].kill()

    def end(self) -> None:
        """Kill them all."""
        for process in self.processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.processes = []


@contextmanager
def pool() -> Iterator[Pool]:
    """A pool until the end of the block."""
    running = Pool()
    running.start()
    try:
        yield running
    finally:
        running.end()


@dataclass(frozen=True)
class Survived:
    """What a job found that lost its client, its worker and its scheduler.

    Attributes
    ----------
    there, here : dict
        The result of the job, and of the local sweep.
    attempts : int
    status : str
        Of the job between its two schedulers.
    trained, twice : int
        Trials that ended, and those of them that had ended in an attempt before.
    """

    there: dict[str, Any]
    here: dict[str, Any]
    attempts: int
    status: str
    trained: int
    twice: int

    @property
    def same(self) -> bool:
        """Whether both are equal, but for seconds and names."""
        return all(self.there[name] == self.here[name] for name in SAME)


def survive(running: Pool, folder: Path, sampler: str, trials: int) -> Survived:
    """Submit a sweep, kill everything around it in turn, and follow it to its end."""
    work, storage = a_sweep(folder, sampler, trials), folder / f"jobs-{sampler}"
    job_folder = Folder(storage / "job")
    asked = [json_of(work), str(storage), running.address]
    with subprocess.Popen(
        [sys.executable, "-c", SUBMIT, *asked], stdout=subprocess.PIPE
    ) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"submitted\n"
        client.kill()

    wait(lambda: len(ended(job_folder, 1)) > 0)
    with connect(running.address) as asking:
        pids = asking.run(os.getpid)
    os.kill(pids[job_folder.read().worker], signal.SIGKILL)

    wait(lambda: len(ended(job_folder, 2)) > 0)
    running.kill_scheduler()
    running.start()
    with connect(running.address) as asking:
        (job,) = mlopt.jobs(asking, storage)
        status = job.status
        job.resume()
    follow = ["mlopt", "jobs", "job", "--json", "--scheduler", running.address]
    told = subprocess.run(
        [sys.executable, "-m", *follow, "--storage", str(storage)],
        capture_output=True, check=True,
    )  # fmt: skip
    assert b'"RungDone"' in told.stderr
    attempts = job_folder.read().attempt
    trained = [one for n in range(1, attempts + 1) for one in ended(job_folder, n)]
    return Survived(
        json.loads(told.stdout),
        summary(sweep(config=work.config, families=work.families)),
        attempts, status, len(trained), len(trained) - len(set(trained)),
    )  # fmt: skip


def a_sweep(folder: Path, sampler: str, trials: int) -> Sweep:
    """Without a limit on time: the same trials wherever it runs."""
    search = Search(timeout=None, n_trials=trials, sampler=sampler)
    config = Config(data=Data(path=str(people(folder)), target="buys"), search=search)
    return Sweep(config=config, families=("extra_trees", "random_forest"))


def people(folder: Path) -> Path:
    """A table of 400 rows, whose target follows from its columns but for a tenth."""
    random = np.random.default_rng(0)
    age, city = random.integers(18, 80, 400), random.choice(["rome", "oslo"], 400)
    buys = (age + 20 * (city == "oslo") > 55) ^ (random.uniform(size=400) < 0.1)
    path = folder / "people.csv"
    frame = {"age": age, "city": city, "buys": np.where(buys, "yes", "no")}
    pd.DataFrame(frame).to_csv(path, index=False)
    return path


def ended(folder: Folder, attempt: int) -> list[int]:
    """The trials that an attempt has trained to their end."""
    log = folder.log(attempt)
    lines = log.read_text().splitlines() if log.exists() else []
    records = [json.loads(line) for line in lines if line.endswith("}")]
    old = {one["trial"] for one in records if one.get("replayed")}
    return [
        one["trial"]
        for one in records
        if one["event"] == "TrialFinished" and one["trial"] not in old
    ]


def wait(true: Callable[[], bool]) -> None:
    """Until it is true."""
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"nothing came of it in {PATIENCE:.0f} s")
        time.sleep(0.05)


def json_of(work: Sweep) -> str:
    """As it is in the record of a job."""
    import msgspec

    return msgspec.json.encode(work).decode()


def side_by_side(running: Pool, folder: Path, trials: int) -> None:
    """Print how a large and a small sweep share a pool, and what is left when one is
    cancelled."""
    storage = folder / "jobs"
    works = [a_sweep(folder, "random", n) for n in (5 * trials, trials // 2)]
    with connect(running.address) as client:
        client.wait_for_workers(2)
        large, small = (mlopt.submit(w, scheduler=client, storage=storage) for w in works)
        small.result()
        records = large.record, small.record
        for name, record in zip(("large", "small"), records, strict=True):
            began = (record.began or 0) - records[0].created
            end = record.ended and record.ended - records[0].created
            until = f"ended after {end:.1f} s" if end else "goes on"
            count = record.work.config.search.n_trials
            print(f"{name}: {count} trials, began after {began:.1f} s, {until}")
        large.cancel()
        tasks = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        left = sorted(path.name for path in large.folder.path.iterdir())
        print(f"cancelled: {tasks} tasks, files {', '.join(left)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, pool() as running:
        folder = given.folder or Path(temporary)
        for sampler in ("random", "grid"):
            found = survive(running, folder, sampler, given.trials)
            print(
                f"{sampler}: {found.status} after its scheduler died; {found.attempts} "
                f"attempts, {found.trained} trials trained, {found.twice} of them twice; "
                f"best {found.there['best_score']:.5f} there, "
                f"{found.here['best_score']:.5f} here; "
                f"{'the same' if found.same else 'DIFFERENT'}"
            )
        side_by_side(running, folder, given.trials)


if __name__ == "__main__":
    main()
