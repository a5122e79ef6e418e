"""dask-ml's searches, in an environment of their own (see search.py); prints one JSON line.

usage: peer_dask_ml.py DATA.npz hyperband|halving|halving-parts N SEED

An iteration of dask-ml is a call of partial_fit on one chunk. "halving-parts" has chunks of
a 27th of the rows, so that the first look comes after a 27th of a pass, as ours does.
"""

import json
import os
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster
from dask_ml.model_selection import HyperbandSearchCV, SuccessiveHalvingSearchCV
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier

EPOCHS, FACTOR, PARTS = 27, 3, 27
SPACE = {
    "loss": ["log_loss", "hinge"],
    "alpha": loguniform(1e-7, 1e-1),
    "learning_rate": ["optimal", "invscaling", "constant"],
    "eta0": loguniform(1e-3, 1),
}


def main():
    path, method, n, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    data = np.load(path)
    X, y = data["X"], data["y"]
    order = np.random.RandomState(seed).permutation(len(X))
    X, y = X[order], y[order]
    base = SGDClassifier(max_iter=EPOCHS, tol=1e-3, random_state=seed)
    parts = PARTS if method == "halving-parts" else 1
    shared = {"aggressiveness": FACTOR, "test_size": 0.25, "random_state": seed}
    if method == "hyperband":  # max_iter fixes the number of models: 27 -> 49 models
        search = HyperbandSearchCV(base, SPACE, max_iter=EPOCHS, **shared)
    else:
        search = SuccessiveHalvingSearchCV(
            base, SPACE, n_initial_parameters=n, n_initial_iter=1,
            max_iter=EPOCHS * parts, **shared,
        )  # fmt: skip
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0"
    )
    with cluster, Client(cluster):
        size = -(-len(y) // parts)
        X = da.from_array(X, chunks=(size, X.shape[1]))
        y = da.from_array(y, chunks=size)
        clone(search).fit(X[:2000], y[:2000], classes=[0, 1])  # as others are, before
        start = time.perf_counter()
        search.fit(X, y, classes=[0, 1])
        seconds = time.perf_counter() - start
    test = float(search.best_estimator_.score(data["X_test"], data["y_test"]))
    models = len(search.cv_results_["params"])
    print(json.dumps({"seconds": seconds, "test": test, "models": models}), flush=True)


if __name__ == "__main__":
    main()
