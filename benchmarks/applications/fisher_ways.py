"""Both ways of computing Fisher vectors, for several sizes, on one thread.

Printed are milliseconds, those predicted in brackets, and the way that is chosen.

usage: fisher_ways.py [--repeats 3]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from mlopt.cluster import single_threaded
from mlopt.pipeline.library.fisher import FisherVector, Sizes, costs
from mlopt.resources import Resources

WAYS = (
    # images, descriptors, columns, components
    (5000, 4, 32, 16),
    (2000, 25, 32, 16),
    (500, 200, 32, 16),
    (500, 200, 64, 64),
    (100, 1500, 64, 64),
    (40, 4000, 64, 128),
)


def ways(repeats):
    """Measured and predicted milliseconds of both ways."""
    machine, rng = Resources.probe(), np.random.default_rng(0)
    print("images descriptors columns components      images way       batch way   chosen")
    for shape in WAYS:
        n, m, d, k = shape
        X = rng.normal(size=(n, m, d)).astype(np.float32)
        fisher = FisherVector(k, n_samples=4000, max_iter=3, random_state=0).fit(X)
        sizes = Sizes(*shape)
        row = f"{n:6d} {m:11d} {d:7d} {k:10d}"
        for name, cost in costs(sizes, machine).items():
            fisher.solver, took = name, []
            for _ in range(repeats):
                with single_threaded():
                    begin = time.perf_counter()
                    fisher.transform(X)
                    took.append(time.perf_counter() - begin)
            row += f"{1e3 * min(took):8.0f} ({1e3 * cost.seconds(machine):5.0f})"
        fisher.solver = "auto"
        print(row, f"  {fisher.choose(sizes, machine)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    ways(parser.parse_args().repeats)


if __name__ == "__main__":
    main()
