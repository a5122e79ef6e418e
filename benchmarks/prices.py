"""Prices of methods beside what they took, passes given: constants are fitted to this.

Rows are drawn for a grid of shapes, dense and sparse; each method runs three times, for two
seconds and 60 passes at most, and its price for the passes that it took stands beside the
median. A ratio below 1 says that the price is too low. Foreseeing passes is another matter:
`foresight.py`.

usage: prices.py [--seed 0] [--methods lbfgs,svrg]
"""

from __future__ import annotations

import argparse
import os
import statistics
import warnings

THREADS = "2"
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, THREADS)
os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day
warnings.filterwarnings("ignore")

import numpy as np
import scipy.sparse as sp

import mlopt
from mlopt.errors import MloptError

LOSSES = ("logistic", "squared", "squared_hinge")
SHAPES = (
    (600, 8, 1.0), (3000, 20, 1.0), (3000, 200, 1.0), (1500, 900, 1.0), (20_000, 20, 1.0),
    (20_000, 200, 1.0), (100_000, 30, 1.0), (8000, 700, 1.0), (2000, 100, 0.1),
    (3000, 1500, 0.02), (20_000, 100, 0.05), (20_000, 5000, 0.005), (100_000, 300, 0.02),
    (6000, 20_000, 0.007),
)  # fmt: skip
METHODS = (
    "lbfgs", "newton-cholesky", "primal-coordinate-descent", "svrg", "cholesky",
    "sparse_cg", "sketched_cg", "mixed_cholesky", "svd",
)  # fmt: skip
TOLERANCE, L2, MOST, SECONDS, REPEATS, HOPELESS = 1e-4, 1e-4, 60, 2.0, 3, 20.0


def rows(rng, n, d, density):
    """X (n, d): correlated where dense, common and rare columns where sparse."""
    if density == 1:
        return rng.normal(size=(n, d)) + 0.7 * rng.normal(size=(n, 1))
    often = rng.pareto(1.0, d) + 0.05
    count = rng.poisson(max(density * d, 1.0), n)
    columns = rng.choice(d, size=count.sum(), p=often / often.sum())
    values = np.abs(rng.normal(size=len(columns))) + 0.1
    X = sp.csr_array((values, (np.repeat(np.arange(n), count), columns)), shape=(n, d))
    X.sum_duplicates()
    return X


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    ratios = {name: [] for name in options.methods.split(",")}
    for n, d, density in SHAPES:
        X = rows(rng, n, d, density)
        z = X @ rng.normal(size=d)
        z = z / z.std() + rng.normal(size=n)
        for loss in LOSSES:
            task = mlopt.gd.Task(loss, l2=L2)
            y = z if loss == "squared" else (z > 0).astype(int)
            for name, found in ratios.items():
                try:
                    plan = mlopt.gd.plan(
                        task, X, y, tolerance=TOLERANCE, methods=[name], speculation=False,
                        n_jobs=int(THREADS),
                    )  # fmt: skip
                except MloptError:
                    continue
                if plan.chosen.predicted_seconds > HOPELESS:
                    continue
                runs = [
                    plan.chosen.run(time_limit=SECONDS, max_iter=MOST)
                    for _ in range(REPEATS)
                ]
                run = sorted(runs, key=lambda one: one.seconds)[REPEATS // 2]
                price = plan.ranker.seconds(plan.chosen.method, run.n_iter)
                found.append(price / run.seconds)
                print(
                    f"{name:34s} {loss:13s} {n:6d} x {d:<5d} {density:5.3f} "
                    f"{run.n_iter:4d} passes {1e3 * run.seconds:9.2f} ms  price "
                    f"{1e3 * price:9.2f} ms  {found[-1]:5.2f}",
                    flush=True,
                )
    for name, found in ratios.items():
        if found:
            near = np.mean([0.5 <= ratio <= 2 for ratio in found])
            print(
                f"{name:34s} price / measured: median {statistics.median(found):.2f}, "
                f"within 2x {near:.0%} of {len(found)}"
            )


if __name__ == "__main__":
    main()
