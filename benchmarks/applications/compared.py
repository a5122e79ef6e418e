"""Two programs for one task, in turn in one run: seconds, accuracies, ratio.

Each is given the seed of its draws, another one each time, and gives an accuracy. It does
all its work from the arrays on: learning, and predicting the rows to judge by. Printed are
mean accuracies, and medians of seconds, by the clock and of the processor: on a machine
that others use, the second is steadier, and counts both threads.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import os
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "2")
os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day
warnings.filterwarnings("ignore")

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("MLOPT_DATA", ROOT.parent / "shared/data"))

from mlopt.pipeline.environment import environment

Program = Callable[[int], float]


def arguments(about: str) -> argparse.Namespace:
    """``--data``, ``--repeats`` and ``--rows`` of a benchmark."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, help="a cut of the rows to learn from")
    return parser.parse_args()


def example(name: str) -> ModuleType:
    """A file of the folder ``examples``: its pipeline is the one that is timed."""
    spec = importlib.util.spec_from_file_location(
        f"example_{name}", ROOT / f"examples/{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compare(name: str, ours: Program, theirs: Program, repeats: int) -> None:
    """Run both in turn, after one run of ours in which kernels compile."""
    ours(0)
    programs = {"mlopt": ours, "scikit-learn": theirs}
    clock: dict[str, list[float]] = {key: [] for key in programs}
    processor: dict[str, list[float]] = {key: [] for key in programs}
    accuracy: dict[str, list[float]] = {key: [] for key in programs}
    for seed in range(repeats):
        for key, program in programs.items():
            environment.clear()  # nothing learnt before
            gc.collect()
            begin, work = time.perf_counter(), time.process_time()
            accuracy[key].append(program(seed))
            clock[key].append(time.perf_counter() - begin)
            processor[key].append(time.process_time() - work)
    print(f"{name}: medians of {repeats} runs")
    for key in programs:
        print(f"  {key:13} {statistics.median(clock[key]):7.2f} s   "
              f"processor {statistics.median(processor[key]):7.2f} s   "
              f"accuracy {statistics.mean(accuracy[key]):.4f}")  # fmt: skip
    first, second = (statistics.median(clock[key]) for key in programs)
    work, more = (statistics.median(processor[key]) for key in programs)
    print(f"  {second / first:.1f}x by the clock, {more / work:.1f}x of the processor")
