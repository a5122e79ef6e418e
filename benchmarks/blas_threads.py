"""scikit-learn's own fits with one thread of BLAS and with two, in turn: least of three.

What `Own.vectors` of `mlopt.pipeline.fits.known` rests on: of which fits threads of BLAS
wait for each other for longer than they work.

usage: blas_threads.py [--rounds 3]
"""

from __future__ import annotations

import argparse
import time
import warnings

warnings.filterwarnings("ignore")

import numpy as np
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from threadpoolctl import threadpool_limits

SIZES = (
    (1560, 617, 26), (5000, 400, 2), (20_000, 200, 2), (20_000, 200, 10), (100_000, 50, 2),
    (50_000, 300, 2), (5000, 800, 10), (20_000, 500, 20), (300_000, 300, 2),
)  # fmt: skip
"""Rows, columns and classes of fits by lbfgs."""


def seconds(model, X, y, threads):
    """Of a fit."""
    with threadpool_limits(threads):
        begin = time.perf_counter()
        model.fit(X, y)
        return time.perf_counter() - begin


def compared(name, model, X, y, rounds):
    """Print both, and their ratio."""
    found = [[seconds(model, X, y, threads) for threads in (1, 2)] for _ in range(rounds)]
    one, two = np.min(found, axis=0)
    print(f"{name:42s} one {one:.3f} s, two {two:.3f} s: {two / one:.2f}x", flush=True)


def main():
    """Fits by lbfgs, and by others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds

    def drawn(n, d, classes):
        return make_classification(
            n, d, n_informative=min(d, 20), n_classes=classes, n_clusters_per_class=1,
            random_state=0,
        )  # fmt: skip

    for n, d, classes in SIZES:
        X, y = drawn(n, d, classes)
        name = f"lbfgs, {n} x {d}, {classes} classes"
        compared(name, LogisticRegression(max_iter=30), X, y, rounds)
    X, y = drawn(20_000, 300, 2)
    others = (
        LogisticRegression(solver="newton-cg"),
        LogisticRegression(solver="newton-cholesky"),
        Ridge(),
        LinearRegression(),
        PCA(10, svd_solver="full"),
    )  # fmt: skip
    for model in others:
        compared(f"{model}, 20,000 x 300", model, X, y, rounds)


if __name__ == "__main__":
    main()
