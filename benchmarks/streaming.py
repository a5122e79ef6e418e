"""A pipeline over data several times larger than the memory of all workers together.

Writes blocks of rows as .npy files into a temporary folder, fits StandardScaler, PCA(20)
and LogisticRegression on them and predicts, with two worker processes of 600 MB. Printed
are seconds, bytes of blocks read a second, restarts of workers (0, or it fails) and the
largest resident memory of a worker.

usage: streaming.py [--gb 4.8] [--block-mb 25] [--columns 200] [--memory-mb 600]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import dask
import dask.array as da
import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.cluster import local_cluster

MB = 1 << 20


def write(folder: Path, blocks: int, rows: int, columns: int) -> None:
    """Blocks of float64, and the labels of a plane through them."""
    plane = np.random.default_rng(0).normal(size=columns)
    scales = np.linspace(3.0, 0.5, columns)
    for number in range(blocks):
        rng = np.random.default_rng(number)
        X = rng.standard_normal((rows, columns), dtype=np.float32) * scales + 5.0
        np.save(folder / f"X{number}.npy", X)
        y = (X - 5.0) @ plane + rng.normal(size=rows) > 0
        np.save(folder / f"y{number}.npy", y.astype(np.int64))


def read(path: str) -> np.ndarray:
    """One file; what is read is counted in a file beside it."""
    Path(f"{path}.{os.getpid()}.{time.time_ns()}.read").touch()
    return np.load(path)


def lazy(folder: Path, name: str, blocks: int, shape: tuple[int, ...], dtype: str):
    """The blocks as one dask array; nothing is read."""
    load = dask.delayed(read)
    parts = [
        da.from_delayed(load(str(folder / f"{name}{number}.npy")), shape, dtype)
        for number in range(blocks)
    ]
    return da.concatenate(parts)


class Watch(threading.Thread):
    """The largest resident memory of any worker process, and processes ever seen."""

    def __init__(self, client) -> None:
        super().__init__(daemon=True)
        self.client, self.peak, self.pids, self.stopped = client, 0, set(), False

    def run(self) -> None:
        while not self.stopped:
            for worker in self.client.cluster.workers.values():
                pid = worker.pid
                if pid:
                    self.pids.add(pid)
                    self.peak = max(self.peak, _resident(pid))
            time.sleep(0.05)


def _resident(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def reads(folder: Path) -> int:
    """Bytes of the blocks of X that were read since the last call."""
    total = 0
    for mark in folder.glob("X*.read"):
        total += (folder / mark.name.split(".npy")[0]).with_suffix(".npy").stat().st_size
        mark.unlink()
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gb", type=float, default=4.8)
    parser.add_argument("--block-mb", type=float, default=25)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--memory-mb", type=int, default=600)
    options = parser.parse_args()
    rows = int(options.block_mb * MB / 8 / options.columns)
    blocks = round(options.gb * 1e9 / (rows * options.columns * 8))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, blocks, rows, options.columns)
        print(f"{blocks} blocks of {options.block_mb:.0f} MB, {blocks * rows} rows")
        run(folder, blocks, (rows, options.columns), options.memory_mb)


def run(folder: Path, blocks: int, shape: tuple[int, int], memory: int) -> None:
    """Fit and predict once, and print what it took."""
    pipe = mlopt.Pipeline([
        ("scale", StandardScaler()),
        ("pca", PCA(20)),
        ("classify", LogisticRegression()),
    ])  # fmt: skip
    with local_cluster(2, 1, memory_limit=memory * MB) as client:
        watch = Watch(client)
        watch.start()
        X = lazy(folder, "X", blocks, shape, "f8")
        y = lazy(folder, "y", blocks, shape[:1], "i8")
        begin = time.perf_counter()
        pipe.fit(X, y)
        report("fit", time.perf_counter() - begin, reads(folder), X.nbytes)
        print(pipe.plan_.explain())
        begin = time.perf_counter()
        right = (pipe.predict(X) == y).mean().compute()
        report("predict", time.perf_counter() - begin, reads(folder), X.nbytes)
        watch.stopped = True
        watch.join()
        restarts = len(watch.pids) - 2
    print(f"accuracy {right:.4f}   restarts {restarts}   peak {watch.peak / MB:.0f} MB")
    if restarts:
        raise SystemExit("a worker was restarted")


def report(what: str, seconds: float, nbytes: int, size: int) -> None:
    """Seconds, passes over the data, and speed."""
    print(
        f"{what:8} {seconds:6.1f} s   {nbytes / size:4.1f} passes   "
        f"{nbytes / seconds / 1e6:.0f} MB/s",
        flush=True,
    )


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main()
