"""`mlopt.predict` of a thousand files: memory, throughput, and kill -9 in the middle.

Makes files of numbers, categories and gaps, fits a pipeline and prints

* the largest resident memory of a process that predicts all files, beside one that
  predicts one of them, and one that predicts a single file as large as all,
* rows a second of the whole beside those of each stage alone (reading, predicting, writing,
  in one thread, of a part of the files), by the clock and by processor seconds,
* of a run that is killed: files in their place, torn ones, and how many the next run does
  twice,
* the same on two workers of Dask: rows a second, their largest memory, and a driver that is
  killed.

usage: predict_files.py [--files 1000] [--mb 2] [--folder DIR] [--large-mb 400]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pandas as pd

import mlopt
from mlopt.cluster import local_cluster
from mlopt.scoring.files import JOURNAL
from mlopt.sweep.config import Config, override
from mlopt.sweep.fit import fit_one
from mlopt.sweep.formulas import csv_of
from mlopt.sweep.models import dump_model
from mlopt.sweep.predict import predictions, read_rows
from mlopt.writing import write_file

DIFFERENT = 20
"""Files of different content; the others are copies."""

CORES = len(os.sched_getaffinity(0))

CHILD = """
import json, os, resource, sys, time
import mlopt
client = None
if "SCHEDULER" in os.environ:
    from distributed import Client
    client = Client(os.environ["SCHEDULER"])
began = time.perf_counter(), time.process_time()
done = mlopt.predict(sys.argv[1], sys.argv[3:], output=sys.argv[2], client=client)
assert not done.failed, done.failed
print(json.dumps({
    "rows": sum(done.rows.values()), "files": len(done.rows),
    "seconds": time.perf_counter() - began[0],
    "cpu": sum(os.times()[:4]),
    "mb": max(
        resource.getrusage(who).ru_maxrss / 1024
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ),
    "plan": str(done.plan_),
}))
"""


def people(rows: int, seed: int) -> pd.DataFrame:
    """Rows with a target that follows from them."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "age": random.integers(17, 90, rows),
        "hours": random.integers(1, 99, rows),
        "gain": np.where(random.random(rows) < 0.9, 0, random.integers(1, 99999, rows)),
        "weight": random.lognormal(11, 1, rows).round(2),
        "education": random.choice([f"school {n}" for n in range(16)], rows),
        "work": random.choice(["private", "state", "self", "none"], rows),
        "country": random.choice([f"country {n}" for n in range(40)], rows),
    })  # fmt: skip
    odds = 0.05 * (frame["age"] - 45) + (frame["work"] == "self") + random.normal(size=rows)
    frame.loc[::11, "weight"] = np.nan
    return frame.assign(rich=np.where(odds > 0, "yes", "no"))


def make(folder: Path, files: int, mb: float) -> Path:
    """The files, in a folder of their own; and the model beside it."""
    data = folder / f"data-{files}-{mb}"
    if not data.is_dir():
        data.mkdir(parents=True)
        sample = people(1000, 0).to_csv(index=False).encode()
        rows = int(1000 * mb * 1e6 / len(sample))
        contents = [people(rows, n).to_csv(index=False).encode() for n in range(DIFFERENT)]
        for number in range(files):
            (data / f"{number:04}.csv").write_bytes(contents[number % DIFFERENT])
    people(20_000, 99).to_csv(folder / "train.csv", index=False)
    config = override(Config(), path=str(folder / "train.csv"), target="rich")
    (folder / "model.skops").write_bytes(dump_model(fit_one(config, "linear").model))
    return data


def child(model: Path, output: Path, *paths: Path) -> dict:
    """What a process of its own takes."""
    command = [sys.executable, "-c", CHILD, str(model), str(output), *map(str, paths)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def alone(model: Path, files: list[Path], folder: Path) -> tuple[dict, dict]:
    """Rows a second, and a second of CPU, of each stage in one thread with nothing else to
    do.
    """
    folder.mkdir(exist_ok=True)
    estimator = mlopt.load(model)
    names = "read", "predict", "write"
    took = np.zeros((len(names), 2))
    rows = 0
    for number, path in enumerate([files[0], *files]):
        marks = [clocks()]
        X, _ = read_rows(estimator, str(path))
        marks.append(clocks())
        content = csv_of(predictions(estimator, X))
        marks.append(clocks())
        write_file(folder / path.name, content)
        marks.append(clocks())
        if number:  # the first one loads and compiles
            rows += len(X)
            took += np.diff(marks, axis=0)
    wall, cpu = (rows / took).T
    return dict(zip(names, wall, strict=True)), dict(zip(names, cpu, strict=True))


def peak() -> float:
    """MB of a process at most, so far."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def clocks() -> tuple[float, float]:
    """Seconds of wall time and of CPU."""
    return time.perf_counter(), time.process_time()


def killed(model: Path, data: Path, output: Path, after: int) -> None:
    """Kill a run when some files are there; look at what is, and go on."""
    command = [sys.executable, "-c", CHILD, str(model), str(output), str(data)]
    worker = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while len(list(output.glob("*.csv"))) < after and worker.poll() is None:
        time.sleep(0.02)
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    there = {path: path.stat().st_mtime_ns for path in output.glob("*.csv")}
    sizes = {p.name: len(p.read_bytes().splitlines()) for p in data.glob("*.csv")}
    torn = [p for p in there if len(p.read_bytes().splitlines()) != sizes[p.name]]
    left = [p for p in output.iterdir() if p.suffix != ".csv" and p.name != JOURNAL]
    again = child(model, output, data)
    twice = [path for path, at in there.items() if path.stat().st_mtime_ns != at]
    missing = [name for name in sizes if not (output / name).exists()]
    wrong = [p.name for p in output.glob("*.csv")
             if len(p.read_bytes().splitlines()) != sizes[p.name]]  # fmt: skip
    over = [p for p in output.iterdir() if p.suffix != ".csv" and p.name != JOURNAL]
    print(
        f"killed with {len(there)} of {len(sizes)} files there: {len(torn)} torn, "
        f"{len(left)} unfinished beside them; the next run did {again['files']}, "
        f"{len(twice)} of them twice; missing {len(missing)}, wrong {len(wrong)}, "
        f"left over {len(over)}"
    )
    assert not torn
    assert not missing
    assert not wrong
    assert not over


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--mb", type=float, default=2.0)
    parser.add_argument("--large-mb", type=float, default=400.0)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        data = make(folder, given.files, given.mb)
        model = folder / "model.skops"
        outputs = Path(tempfile.mkdtemp(dir=folder))
        files = sorted(data.iterdir())

        one = child(model, outputs / "one", files[0])
        before, _ = alone(model, files[:60], outputs / "alone")
        many = child(model, outputs / "many", data)
        after, cpu = alone(model, files[:60], outputs / "alone")
        rates = {name: (before[name] + after[name]) / 2 for name in before}
        print(many["plan"])
        print(
            f"memory: one file {one['mb']:.0f} MB, {many['files']} files "
            f"{many['mb']:.0f} MB: {many['mb'] / one['mb']:.2f}x"
        )
        stages = ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
        rate = many["rows"] / many["seconds"]
        print(
            f"rows a second: {rate:,.0f} in {many['seconds']:.1f} s "
            f"({many['cpu']:.1f} s of CPU); alone {stages}; "
            f"{rate / min(rates.values()):.2f} of the slowest"
        )
        stages = ", ".join(f"{name} {rate:,.0f}" for name, rate in cpu.items())
        rate = many["rows"] / many["cpu"]
        share = rate * CORES / min(cpu.values())
        print(
            f"rows a second of CPU: {rate:,.0f}, imports and all processes included; alone "
            f"{stages}; with {CORES} cores to itself {share:.2f} of the slowest"
        )
        killed(model, data, outputs / "killed", after=len(files) // 3)
        with local_cluster(2) as client:
            os.environ["SCHEDULER"] = client.scheduler.address
            first = child(model, outputs / "there-one", files[0])
            small = max(client.run(peak).values())
            there = child(model, outputs / "there", data)
            large = max(client.run(peak).values())
            print(
                f"on two workers: {there['rows'] / there['seconds']:,.0f} rows a second, "
                f"{large:.0f} MB of a worker at most, {large / small:.2f}x after one file"
            )
            assert first["files"] == 1
            killed(model, data, outputs / "there-killed", after=len(files) // 3)
            del os.environ["SCHEDULER"]

        large = folder / "large.csv"
        with large.open("wb") as file:
            head, _, body = files[0].read_bytes().partition(b"\n")
            file.write(head + b"\n")
            while file.tell() < given.large_mb * 1e6:
                file.write(body)
        whole = child(model, outputs / "large", large)
        print(
            f"one file of {given.large_mb:.0f} MB: {whole['mb']:.0f} MB of memory, "
            f"{whole['mb'] / one['mb']:.2f}x one of {given.mb:.0f} MB; "
            f"{whole['rows'] / whole['seconds']:,.0f} rows a second"
        )
        large.unlink()


if __name__ == "__main__":
    main()
