"""How many blocks rows are worth: one pass over them for one model, cut ever finer.

Rows of several shapes are cut into 1 to 16 blocks; a pass over all of them gives the loss
and the gradient of a logistic model. Printed are its milliseconds, the medians of many
passes that take turns, on one thread and on two, and which number of blocks `block_count`
takes. Where a block takes less than its handing over, .05 to .1 ms, cutting costs time on
one thread and gains none on two.

usage: blocks.py [--seed 0] [--passes 60]
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from contextlib import ExitStack, closing

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np

from mlopt.cluster import Threads, between_passes
from mlopt.gd.columns import Model, layout
from mlopt.gd.passes import Sums, evaluate
from mlopt.rows import Rows
from mlopt.rows.block import block_count

SHAPES = (
    (2000, 8), (5000, 10), (10_000, 30), (20_000, 8), (20_000, 40), (80_000, 8),
    (30_000, 100), (5000, 600),
)  # fmt: skip
CUT, THREADS = (1, 2, 4, 8, 16), (1, 2)


def passes(rng, n, d, threads):
    """Each number of blocks, and a function of no arguments: a pass over as many."""
    X, y = rng.normal(size=(n, d)), np.sign(rng.normal(size=(n, 1)))
    weights, plan = np.full((d + 1, 1), 0.1), layout([Model("logistic", 1e-4)])
    for count in CUT:
        rows = Rows.of(X, executor=threads, block_rows=-(-n // count))
        held = rows.attach(targets=y, weights=np.ones_like(y))
        sums = Sums.of(held)
        yield count, lambda h=held, s=sums: evaluate(h, weights, plan, s, scored=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--passes", type=int, default=60)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    print(f"{'n x d':>14s} {'MB':>5s} threads " + "".join(f"{c:8d}" for c in CUT))
    for n, d in SHAPES:
        for threads in THREADS:
            with ExitStack() as stack:
                where = stack.enter_context(closing(Threads(threads)))
                stack.enter_context(between_passes())
                runs, took = dict(passes(rng, n, d, where)), {c: [] for c in CUT}
                for _ in range(options.passes):
                    for count, run in runs.items():
                        start = time.perf_counter()
                        run()
                        took[count].append(1e3 * (time.perf_counter() - start))
            medians = "".join(f"{statistics.median(took[c]):8.2f}" for c in CUT)
            print(
                f"{n:7d} x {d:<4d} {8 * n * d / 2**20:5.1f} {threads:7d} {medians}"
                f"   taken: {block_count(n, 8 * n * d)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
