"""The peers of factors.py, run by the Python of any environment that has them.

usage: peer_factors.py surprise DATA.npz K RATE PENALTY EPOCHS...
       peer_factors.py implicit DATA.npz K PENALTY PASSES SEED

DATA.npz has users, items and ratings, of training and of test. Prints JSON lines: seconds
of this process's processor time, on one thread, and what came of it. `implicit` prints the
file in which it left its factors.
"""

from __future__ import annotations

import json
import os
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np


def surprise(data, k, rate, penalty, *epochs):
    """The biased SVD of scikit-surprise."""
    from surprise import SVD, Trainset

    u, i, r = data["u"], data["i"], data["r"]
    ur, ir = {}, {}
    for a, b, c in zip(u.tolist(), i.tolist(), r.tolist(), strict=True):
        ur.setdefault(a, []).append((b, c))
        ir.setdefault(b, []).append((a, c))
    users, items = {x: x for x in ur}, {x: x for x in ir}
    raw = max(users) + 1, max(items) + 1
    train = Trainset(ur, ir, *raw, len(r), (0.5, 5), users, items)
    for count in epochs:
        model = SVD(
            n_factors=int(k), n_epochs=int(count), lr_all=float(rate),
            reg_all=float(penalty), random_state=0,
        )  # fmt: skip
        begin = time.process_time()
        model.fit(train)
        seconds = time.process_time() - begin
        pairs = zip(data["tu"].tolist(), data["ti"].tolist(), strict=True)
        told = [
            model.estimate(a, b) if a in ur and b in ir else baseline(model, a, b)
            for a, b in pairs
        ]
        error = float(np.sqrt(np.mean((np.array(told) - data["tr"]) ** 2)))
        line = {"epochs": int(count), "seconds": seconds, "rmse": error}
        print(json.dumps(line), flush=True)


def baseline(model, user, item):
    """What is known without factors."""
    value = model.trainset.global_mean
    value += model.bu[user] if model.trainset.knows_user(user) else 0
    return value + (model.bi[item] if model.trainset.knows_item(item) else 0)


def implicit(data, k, penalty, passes, seed):
    """Alternating least squares by conjugate gradients."""
    from implicit.als import AlternatingLeastSquares
    from scipy.sparse import csr_matrix

    shape = int(data["shape"][0]), int(data["shape"][1])
    # Its values are whole confidences: ours of 1 + r.
    C = csr_matrix((1 + data["r"].astype(np.float32), (data["u"], data["i"])), shape=shape)
    model = AlternatingLeastSquares(
        factors=int(k), regularization=float(penalty), alpha=1.0, iterations=int(passes),
        use_cg=True, num_threads=1, random_state=int(seed), dtype=np.float32,
    )  # fmt: skip
    begin = time.process_time()
    model.fit(C, show_progress=False)
    seconds = time.process_time() - begin
    np.savez(sys.argv[2] + ".out.npz", P=model.user_factors, Q=model.item_factors)
    print(json.dumps({"seconds": seconds, "file": sys.argv[2] + ".out.npz"}))


if __name__ == "__main__":
    which, path, *rest = sys.argv[1:]
    {"surprise": surprise, "implicit": implicit}[which](np.load(path), *rest)
