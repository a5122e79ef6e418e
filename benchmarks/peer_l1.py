"""The peers of l1.py, run by the Python of any environment that has them.

usage: peer_l1.py DATA.npz ALPHA NAME     NAME: celer or skglm

Prints a line of JSON for tighter and tighter tolerances: CPU seconds, objective. Compiled
and imported before the clock starts; one thread.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"
warnings.filterwarnings("ignore")

import numpy as np
from scipy import sparse

TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
MOST = 100_000


def loaded(path):
    """X by columns, as coordinate descent likes it, and y."""
    data = np.load(path)
    if "X" in data:
        return np.asfortranarray(data["X"]), data["y"]
    parts = data["data"], data["indices"].astype(np.int32), data["indptr"].astype(np.int32)
    return sparse.csc_matrix(parts, shape=tuple(data["shape"])), data["y"]


def objective(X, y, alpha, model):
    """Half the mean square and the penalty."""
    residual = y - X @ model.coef_ - model.intercept_
    return float(np.mean(residual**2) / 2 + alpha * np.abs(model.coef_).sum())


def timed(make, X, y, alpha, tol, repeat=3):
    """(least seconds of the CPU, objective)."""
    seconds = []
    while len(seconds) < repeat and sum(seconds) < 5:
        start = time.process_time()
        model = make(alpha, tol).fit(X, y)
        seconds.append(time.process_time() - start)
    return min(seconds), objective(X, y, alpha, model)


def main(path, alpha, name):
    """Fit to tighter and tighter tolerances."""
    Lasso = importlib.import_module(name).Lasso
    more = {"celer": {"max_iter": 1000}, "skglm": {"max_iter": 1000}}[name]

    def make(alpha, tol):
        return Lasso(alpha=alpha, tol=tol, fit_intercept=True, **more)

    X, y = loaded(path)
    small = X[:50, :20].copy()
    make(0.01, 1e-3).fit(small, y[:50])
    for tol in TOLERANCES:
        seconds, value = timed(make, X, y, float(alpha), tol)
        print(json.dumps([tol, seconds, value]), flush=True)
        if seconds > 30:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
