"""Fits of few values: a method taken by rule, beside the one that prices choose.

Problems are drawn by --seed: an estimator, rows and columns, scales, correlation, noise,
penalty, dense or sparse. Each is fitted without prices and with them, in turn, and the
processor time of the quickest of five fits counts. Printed are quantiles of the ratio
(below 1: the rule is quicker, planning included) by values of a pass: where the worst
begins to grow beyond 1 is `small.values` of the price list. With --weights the ratio is
that of Newton's method to L-BFGS, both by rule (or what prices choose, if none holds),
by weights: where that passes 1 is `small.weights`.

usage: small.py [--seed 0] [--problems 60] [--weights]
"""

from __future__ import annotations

import argparse
import gc
import os
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day
warnings.filterwarnings("ignore")

import numpy as np
from scipy import sparse

import mlopt
from mlopt.gd.plans import fitting, newton_cholesky

FITS = 5
EVERYTHING = 10**9
VALUES = (1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6)
WEIGHTS = (8, 32, 64, 128, 256, 512, 1024)


def drawn(rng, weights):
    """An estimator, X, y, what it is."""
    values = 10 ** rng.uniform(3, 5 if weights else 6)
    d = int(np.clip(10 ** rng.uniform(1 if weights else 0.3, 2.5), 2, values / 4))
    n = max(int(values / d), 4)
    X = rng.normal(size=(n, d)) * 10 ** rng.uniform(-1, 1, d) ** rng.integers(0, 2)
    if rng.random() < 0.3:
        X += rng.normal(size=(n, 1)) * rng.uniform(0, 3)  # correlated
    kind = rng.choice(["logistic", "softmax", "svm", "ridge", "squares", "lasso"])
    if weights:
        kind = rng.choice(["logistic", "softmax", "svm"])
    if kind != "squares" and rng.random() < 0.2:
        X = sparse.csr_array(X * (rng.random((n, d)) < 0.1))
    planes = int(rng.integers(3, 9)) if kind == "softmax" else 1
    Z = np.asarray(X @ rng.normal(size=(d, planes)))
    Z = Z / Z.std() + rng.uniform(0.1, 2) * rng.normal(size=Z.shape)
    strength = 10 ** rng.uniform(-2, 2)
    model, y = {
        "logistic": (mlopt.LogisticRegression(C=strength), Z[:, 0] > 0),
        "softmax": (mlopt.LogisticRegression(C=strength), Z.argmax(axis=1)),
        "svm": (mlopt.LinearSVC(C=strength), Z[:, 0] > 0),
        "ridge": (mlopt.Ridge(alpha=strength), Z[:, 0]),
        "squares": (mlopt.LinearRegression(), Z[:, 0]),
        "lasso": (mlopt.Lasso(alpha=0.1 * strength / 100), Z[:, 0]),
    }[kind]
    stored = (X.nnz if sparse.issparse(X) else X.size) + n
    kind += " sparse" * sparse.issparse(X)
    return model, X, y, kind, planes * stored, planes


def least(model, X, y, ways):
    """Processor seconds of the quickest fit of each way, in turn."""
    found = [[] for _ in ways]
    chosen = [""] * len(ways)
    for _ in range(FITS):
        for place, (values, few) in enumerate(ways):
            fitting.SMALL, newton_cholesky._FEW_WEIGHTS = values, few
            gc.collect()
            began = time.process_time()
            model.fit(X, y)
            found[place].append(time.process_time() - began)
            chosen[place] = model.plan_.choices[0].chosen
    return [min(one) for one in found], chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--weights", action="store_true")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    few = newton_cholesky._FEW_WEIGHTS
    edges = WEIGHTS if options.weights else VALUES
    ways = [(EVERYTHING, few), (0, few)]
    if options.weights:
        ways = [(EVERYTHING, EVERYTHING), (EVERYTHING, 0)]
    lines = []
    for _ in range(options.problems):
        model, X, y, kind, stored, planes = drawn(rng, options.weights)
        (rule, other), (first, second) = least(model, X, y, ways)
        size = planes * (X.shape[1] + 1) if options.weights else stored
        lines.append((size, rule / other))
        print(
            f"{kind:16s} {X.shape[0]:7d} x {X.shape[1]:4d}  {planes}  {first:15s} "
            f"{rule * 1e3:8.2f} ms  {second:15s} {other * 1e3:8.2f} ms  "
            f"{rule / other:5.2f}",
            flush=True,
        )
    print(f"\n{'up to':>10s} {'problems':>9s} {'median':>7s} {'90%':>6s} {'worst':>6s}")
    for low, high in zip((0, *edges), (*edges, np.inf), strict=True):
        ratios = [ratio for size, ratio in lines if low < size <= high]
        if ratios:
            print(
                f"{high:10.0f} {len(ratios):9d} {np.median(ratios):7.2f} "
                f"{np.quantile(ratios, 0.9):6.2f} {max(ratios):6.2f}"
            )


if __name__ == "__main__":
    main()
