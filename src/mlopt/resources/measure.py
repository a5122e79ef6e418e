"""Microbenchmarks: short runs whose best time is kept, since noise only ever adds to it.

But what a neighbour on the same core takes lasts for seconds, and is as usual as to have
the core alone: speeds are measured in rounds, and their mean counts.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.limits import between_passes

GEMM_SIZE = 384
PIECE = 2**21  # doubles; 16 MiB take about 2 ms, less than a scheduler's time slice
PIECES = 8  # together larger than most last-level caches, so that every piece is read anew
DISK_BYTES = 2**23
CALLS, CALL_SECONDS = 100, 6e-4
"""Rounds of small calls, and what they take on a machine of speed 1."""
ROUNDS, ROUND = 6, 0.03
"""Rounds of a speed, and seconds of each: small calls were seen to take 1.8 times as long
from one tenth of a second to the next."""


def measure(threads: int) -> dict[str, float]:
    """The measured fields of `Resources` for this process, in about a second.

    Parameters
    ----------
    threads : int
        Threads whose common memory bandwidth is measured.
    """
    with between_passes():
        data = np.ones(PIECES * PIECE)
        speeds = [_speeds() for _ in range(ROUNDS)]
        one = read_rate(data, 1)
        rates = {
            "bandwidth": one,
            # What one thread reads is a lower bound: a neighbour may have held a core.
            "bandwidth_all": max(one, read_rate(data, threads)) if threads > 1 else one,
        }
    for name in speeds[0]:
        rates[name] = statistics.harmonic_mean([speed[name] for speed in speeds])
    disk = disk_rate()
    if disk is not None:
        rates["disk"] = disk
    # Inside a process nothing is sent; what would be is at most copied.
    return rates | {"network": one} | task_seconds()


def _speeds() -> dict[str, float]:
    return {
        "gemm_f64": gemm_rate(np.float64),
        "gemm_f32": gemm_rate(np.float32),
        "python": python_rate(),
    }


def gemm_rate(dtype: Any, budget: float = ROUND) -> float:
    """Flop/s of a matrix product whose operands stay in cache."""
    a = np.ones((GEMM_SIZE, GEMM_SIZE), dtype)
    out = np.empty_like(a)
    return 2 * GEMM_SIZE**3 / best_seconds(lambda: np.dot(a, a, out=out), budget)


def python_rate(budget: float = ROUND) -> float:
    """Speed of small calls: of NumPy on a few numbers, and of what is around them."""
    few = np.ones(32)

    def calls() -> None:
        for number in range(CALLS):
            kept = {"sum": float((few * number).sum()), "rows": few[2:-2].reshape(4, -1)}
            dict(kept, copy=np.concatenate([few, few]))

    return CALL_SECONDS / best_seconds(calls, budget)


def best_seconds(run: Callable[[], Any], budget: float) -> float:
    """The shortest of as many runs as fit ``budget`` seconds, at least two."""
    times: list[float] = []
    end = time.perf_counter() + budget
    while len(times) < 2 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def read_rate(data: NDArray[np.float64], threads: int, budget: float = 0.1) -> float:
    """Bytes/s that ``threads`` threads read together from memory."""
    with ThreadPoolExecutor(threads) as pool:
        rates = pool.map(lambda first: _read_pieces(data, first, budget), range(threads))
        return sum(rates)


def _read_pieces(data: NDArray[np.float64], first: int, budget: float) -> float:
    """Bytes/s of the piece that is faster than three quarters of the pieces."""
    times: list[float] = []
    end = time.perf_counter() + budget
    while len(times) < PIECES or time.perf_counter() < end:
        where = (first + len(times)) % PIECES * PIECE
        start = time.perf_counter()
        data[where : where + PIECE].sum()
        times.append(time.perf_counter() - start)
    return 8 * PIECE / sorted(times)[len(times) // 4]


def disk_rate() -> float | None:
    """Bytes/s read from a temporary file; None where none can be written."""
    try:
        with tempfile.TemporaryFile(buffering=0) as file:
            file.write(bytes(DISK_BYTES))
            os.fsync(file.fileno())
            if sys.platform == "linux":  # elsewhere it is the page cache that answers
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            file.seek(0)
            start = time.perf_counter()
            count = len(file.read())
            return count / (time.perf_counter() - start)
    except OSError:
        return None


def task_seconds(tasks: int = 200) -> dict[str, float]:
    """Seconds per task and per round trip of a pool of threads in this process."""
    with ThreadPoolExecutor(1) as pool:
        trips = [_timed(lambda: pool.submit(int).result()) for _ in range(50)]
        many = _timed(lambda: list(pool.map(int, range(tasks))))
    return {"task": many / tasks, "round_trip": statistics.median(trips)}


def _timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
