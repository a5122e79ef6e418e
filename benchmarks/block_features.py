"""65,536 random features of 60,000 images, never all at once: predicted, measured, memory.

Fits `BlockLeastSquaresClassifier` to mnist (train-images-idx3-ubyte.gz and so on) by random
cosine features that are generated block by block. Prints the plan before the run, the
seconds and the accuracy after it, the peak of resident memory and the share of the GEMM
rate that was reached. A plan predicts a machine that nobody else uses: beside wall seconds
stand the seconds that the cores worked for this process.

usage: block_features.py --data DIR [--rows 60000] [--features 65536] [--block 2048]
                         [--passes 2] [--gamma 0.02] [--alpha 0.5] [--budget 1GiB]
                         [--limit 3GiB]

Ends with 1 where the peak is above the limit.
"""

from __future__ import annotations

import argparse
import gzip
import os
import resource
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "2")

import numpy as np
from dask.utils import parse_bytes
from scipy.ndimage import gaussian_filter

import mlopt
from mlopt.pipeline.library.learning import BlockLeastSquaresClassifier


def images(folder: Path, part: str):
    """Pixels (n, 784) in float32, and labels (n,)."""
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    # blurred by a pixel and of one length, as in examples/digits_random_features.py
    smooth = gaussian_filter(pixels.reshape(-1, 28, 28) / np.float32(255), (0, 1.0, 1.0))
    smooth = smooth.reshape(-1, 784)
    length = np.linalg.norm(smooth, axis=1, keepdims=True)
    return smooth * np.float32(9.2) / np.maximum(length, np.float32(1e-6)), labels


def main() -> int:
    """Fit, predict, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--features", type=int, default=65_536)
    parser.add_argument("--block", type=int, default=2048)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--gamma", type=float, default=0.02)
    parser.add_argument("--alpha", type=float, default=0.5)
    parser.add_argument("--budget", default="1GiB")
    parser.add_argument("--limit", default="3GiB")
    given = parser.parse_args()
    X, y = images(given.data, "train")
    X, y = X[: given.rows], y[: given.rows]

    probed = mlopt.Resources.probe(refresh=True)
    rate = probed.gemm_f32 * probed.threads
    print(f"float32 products: {rate / 1e9:.0f} Gflop/s on {probed.threads} threads")
    model = BlockLeastSquaresClassifier(
        given.alpha,
        features=mlopt.RandomFeatures(given.features, gamma=given.gamma, random_state=0),
        block_size=given.block,
        n_iter=given.passes,
        memory_budget=given.budget,
    )
    print(model.explain(X, y).explain(verbose=True), flush=True)

    cores, load = time.process_time(), os.getloadavg()[0]
    start = time.perf_counter()
    model.fit(X, y)
    wall, cores = time.perf_counter() - start, time.process_time() - cores
    plan = model.plan_
    took = plan.choices[0].measured
    print(plan.explain())
    flops = given.passes * len(X) * given.features * (given.block + 2 * 784.0)
    print(
        f"fit {wall:.1f} s wall, {cores / probed.threads:.1f} s of each core; load before "
        f"{load:.1f}, after {os.getloadavg()[0]:.1f}"
    )
    predicted = plan.choices[0].predicted
    of_cores = predicted * probed.threads / cores
    print(f"predicted / measured: {predicted / took:.2f}, {of_cores:.2f} of core seconds")
    print(f"needed products at {flops / took / 1e9:.0f} Gflop/s: {flops / took / rate:.0%}")

    start = time.perf_counter()
    test, labels = images(given.data, "t10k")
    accuracy = float(np.mean(model.predict(test) == labels))
    print(f"accuracy {accuracy:.4f} on {len(labels)}; {time.perf_counter() - start:.1f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"peak resident memory {peak / 2**30:.2f} GiB")
    return int(peak > parse_bytes(given.limit))


if __name__ == "__main__":
    sys.exit(main())
