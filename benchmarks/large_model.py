"""A model that is larger than the workers that train it: 1 GB on two workers of 600 MB.

The model: of each of 4 million items a vector of 64 float32, and how often it was changed,
in 64 parts. The rows: what is known of an item, a product of its vector with one that is
given; a step does some gradient descent on the items of one part. Each is printed with what
it was before: the error on all rows, which falls; the sum of all changes, which is exact;
and of each worker the most memory that its process had, what it wrote to its file, and
whether it is the process that it was; and the memory of the driver, which has no limit.

usage: large_model.py [--layout rotate] [--limit 600e6] [--gigabytes 1] [--passes 3]
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import cloudpickle
import numpy as np
import psutil

from mlopt.cluster import MeshDask, local_cluster
from mlopt.server import Job

cloudpickle.register_pickle_by_value(sys.modules[__name__])

PARTS, STRATA, SIZE = 64, 2, 64
ROWS = 4000  # of each cell


def step(cell, part):
    """Descent on the squared errors of a cell's rows; and which items it changed."""
    items, contexts, values = cell
    errors = values - np.einsum("ij,ij->i", part["vectors"][items], contexts)
    delta = {name: np.zeros_like(array) for name, array in part.items()}
    np.add.at(delta["vectors"], items, 0.5 / SIZE * errors[:, None] * contexts)
    np.add.at(delta["changes"], items, 1)
    return delta


def generated(items):
    """Cells by strata and parts."""
    rng = np.random.default_rng(0)

    def cell():
        contexts = rng.standard_normal((ROWS, SIZE), dtype=np.float32)
        values = rng.standard_normal(ROWS, dtype=np.float32)
        return rng.integers(items, size=ROWS), contexts, values

    return [[cell() for _ in range(PARTS)] for _ in range(STRATA)]


def error(rows, parts):
    """Root mean squared, on all rows."""
    squares = [
        (values - np.einsum("ij,ij->i", part["vectors"][items], contexts)) ** 2
        for stratum in rows
        for (items, contexts, values), part in zip(stratum, parts, strict=True)
    ]
    return float(np.sqrt(np.mean(squares)))


def written(dask_worker):
    """Bytes that a member has put into its file so far."""
    found = [p for p in dask_worker.plugins.values() if hasattr(p, "service")]
    return sum(one._served.service.room.written for one in found if one._served)


class Watch:
    """The most memory that processes had."""

    def __init__(self, pids):
        self.most = dict.fromkeys(pids, 0)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self):
        processes = {pid: psutil.Process(pid) for pid in self.most}
        while not self._ended.wait(0.02):
            for pid, process in processes.items():
                self.most[pid] = max(self.most[pid], process.memory_info().rss)

    def end(self):
        self._ended.set()
        self._thread.join()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--layout", default="rotate")
    parser.add_argument("--limit", type=float, default=600e6)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--passes", type=int, default=3)
    given = parser.parse_args()
    items = int(given.gigabytes * 2**30 / PARTS / (4 * SIZE))
    parts = [
        {"vectors": np.zeros((items, SIZE), np.float32), "changes": np.zeros(items, int)}
        for _ in range(PARTS)
    ]
    rows = generated(items)
    size = sum(array.nbytes for part in parts for array in part.values())
    print(f"{given.layout}: a model of {size / 1e9:.2f} GB on 2 workers of "
          f"{given.limit / 1e6:.0f} MB")  # fmt: skip
    with local_cluster(2, memory_limit=int(given.limit)) as client:
        before = client.run(os.getpid)
        idle = {pid: psutil.Process(pid).memory_info().rss for pid in before.values()}
        watch = Watch([*before.values(), os.getpid()])
        with MeshDask(client) as mesh:
            job = Job(step, parts, rows, layout=given.layout, where=mesh, n_jobs=1,
                      passes=given.passes)  # fmt: skip
            began, cpu = time.perf_counter(), client.run(time.process_time)
            job.advance(given.passes)
            took = time.perf_counter() - began
            files = client.run(written)
            cpu = {one: b - cpu[one] for one, b in client.run(time.process_time).items()}
            result = job.run()
        watch.end()
        after = client.run(os.getpid)
    done = sum(int(part["changes"].sum()) for part in result.model)
    due = given.passes * STRATA * PARTS * ROWS
    print(f"{result.passes} passes: {took:.0f} s, {sum(cpu.values()):.0f} s of all "
          f"CPUs; {result.lost} members lost")  # fmt: skip
    print(f"error {error(rows, parts):.3f} before, {error(rows, result.model):.3f} after")
    print(f"changes: {due} due, {done} done")
    for worker, pid in before.items():
        same = "the same process" if after.get(worker) == pid else "restarted"
        print(f"a worker: {idle[pid] / 1e6:.0f} MB at first, {watch.most[pid] / 1e6:.0f} "
              f"MB at most; {files[worker] / 1e9:.1f} GB written; {same}")  # fmt: skip
    print(f"the driver: {watch.most[os.getpid()] / 1e9:.1f} GB at most")


if __name__ == "__main__":
    main()
