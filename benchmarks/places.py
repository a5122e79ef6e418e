"""Linear models of Dask rows on local workers: left there, or brought where prices say so.

Problems are drawn by --seed: an estimator of `benchmarks/small.py` on 1e4 to --most values,
in six blocks that workers hold. Each is fitted with rows that stay (`mlopt.plan` "always",
but for methods that need them in one piece) and with places chosen, in turn; the median of
three fits counts, reading included. Printed are both, where the chosen one ran, what was
predicted beside what it took without reading, and at the end quantiles of the ratio.

usage: places.py [--seed 0] [--problems 20] [--most 1e7] [--workers 2]
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day
warnings.filterwarnings("ignore")

import dask
import dask.array as da
import numpy as np
from sklearn.base import clone
from small import drawn

from mlopt.cluster import local_cluster

FITS = 3
WAYS = ("always", "where it pays")


def main():
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--problems", type=int, default=20)
    given.add_argument("--most", type=float, default=1e7)
    given.add_argument("--workers", type=int, default=2)
    options = given.parse_args()
    rng, ratios = np.random.default_rng(options.seed), []
    with local_cluster(options.workers, 1) as client:
        for _ in range(options.problems):
            model, X, y, kind = dense(rng, options.most)
            rows, targets = (
                client.persist(da.from_array(a, chunks=(-(-len(a) // 6), *a.shape[1:])))
                for a in (X, y)
            )
            found = {way: [] for way in WAYS}
            for turn in range(FITS + 1):
                for way in WAYS:
                    with dask.config.set({"mlopt.plan": way}):
                        began = time.perf_counter()
                        fitted = clone(model).fit(rows, targets)
                        took = time.perf_counter() - began
                    if turn:  # the first compiles, and measures the cluster
                        found[way].append((took, fitted.plan_))
            there, here = (np.median([took for took, _ in found[way]]) for way in WAYS)
            choice = found[WAYS[1]][-1][1].choices[0]
            came = any("come from the workers" in note for note in choice.notes)
            foreseen = "-" if choice.predicted is None else f"{choice.predicted:.3f}"
            ratios.append(here / there)
            print(
                f"{kind:9s} {X.shape[0]:7d} x {X.shape[1]:4d}  there {there:.3f} s, "
                f"chosen {here:.3f} s ({'here' if came else 'there'}, {choice.chosen}, "
                f"predicted {foreseen}, without reading {choice.measured:.3f})",
                flush=True,
            )
    low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9))
    print(f"chosen to there: {low:.2f} {middle:.2f} {high:.2f}, worst {max(ratios):.2f}")


def dense(rng, most):
    """An estimator, X, y, what it is: dense rows of 1e4 values to so many."""
    while True:
        model, X, y, kind, *_ = drawn(rng, False)
        if isinstance(X, np.ndarray) and X.size >= 1e4:
            times = int(10 ** rng.uniform(0, max(0.0, np.log10(most / 1e6))))
            noise = [X + 0.1 * rng.normal(size=X.shape) for _ in range(times)]
            return model, np.vstack(noise), np.tile(y, times), kind


if __name__ == "__main__":
    main()
