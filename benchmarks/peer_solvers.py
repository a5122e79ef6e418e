"""The peers of solvers.py, run by the Python of any environment that has them.

usage: peer_solvers.py DATA.npz TASK L2 LIMIT NAME...     TASK: logistic or ridge

Prints one line of JSON for each peer: its name, and for tighter and tighter tolerances
seconds and coefficients' objective. Peers that are not installed say so.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "2")
warnings.filterwarnings("ignore")

import numpy as np
import peer_spark
from scipy import sparse

CONSTANT = 11650396
"""Where Vowpal Wabbit keeps its intercept."""
MOST_TEXT = 10_000_000
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10)


def objective(task, X, y, l2, coef, intercept):
    """The mean loss and the penalty."""
    coef, intercept = np.ravel(coef), float(np.ravel(intercept)[0])
    z = np.asarray(X @ coef).ravel() + intercept
    if task == "ridge":
        mean = float(np.mean((z - y) ** 2) / 2)
    else:
        mean = float(np.logaddexp(0, np.where(y == 1, -z, z)).mean())
    return mean + 0.5 * l2 * float(coef @ coef)


def logistic(solver):
    """scikit-learn's LogisticRegression with one of its solvers."""

    def fit(X, y, l2, tol):
        from sklearn.linear_model import LogisticRegression

        # liblinear's intercept is a weight of a column of 30: hardly penalised.
        model = LogisticRegression(
            C=1 / (l2 * len(y)),
            solver=solver,
            tol=tol,
            max_iter=5000,
            intercept_scaling=30 if solver == "liblinear" else 1,
        ).fit(X, y)
        return model.coef_, model.intercept_

    return fit


def ridge(solver):
    """scikit-learn's Ridge with one of its solvers."""

    def fit(X, y, l2, tol):
        from sklearn.linear_model import Ridge

        model = Ridge(alpha=l2 * len(y), solver=solver, tol=tol).fit(X, y)
        return model.coef_, model.intercept_

    return fit


def sgd(X, y, l2, tol):
    """SGDClassifier, which stops by its own rule."""
    from sklearn.linear_model import SGDClassifier

    model = SGDClassifier(
        loss="log_loss", alpha=l2, tol=tol, max_iter=200, random_state=0
    ).fit(X, y)
    return model.coef_, model.intercept_


def normal_equations(X, y, l2, tol):
    """NumPy and nothing else."""
    del tol
    mean, centre = X.mean(axis=0), y.mean()
    gram = X.T @ X - len(y) * np.outer(mean, mean)
    right = X.T @ y - len(y) * centre * mean
    gram[np.diag_indices_from(gram)] += l2 * len(y)
    coef = np.linalg.solve(gram, right)
    return coef, centre - mean @ coef


def glum(family):
    """Iteratively reweighted least squares."""

    def fit(X, y, l2, tol):
        from glum import GeneralizedLinearRegressor

        model = GeneralizedLinearRegressor(
            family=family, alpha=l2, l1_ratio=0, gradient_tol=tol, max_iter=500
        ).fit(X, y)
        return model.coef_, model.intercept_

    return fit


def intelex(kind):
    """scikit-learn-intelex."""

    def fit(X, y, l2, tol):
        from sklearnex.linear_model import LogisticRegression, Ridge

        if kind == "ridge":
            model = Ridge(alpha=l2 * len(y), tol=tol).fit(X, y)
        else:
            model = LogisticRegression(C=1 / (l2 * len(y)), tol=tol, max_iter=5000)
            model.fit(X, y)
        return model.coef_, model.intercept_

    return fit


def skglm(X, y, l2, tol):
    """L-BFGS; the intercept is a column of 30, hardly penalised."""
    from skglm.datafits import Logistic
    from skglm.penalties import L2
    from skglm.solvers import LBFGS
    from skglm.utils.jit_compilation import compiled_clone

    both, labels = _with_ones(X), np.where(y == 1, 1.0, -1.0)
    both = both.tocsc() if sparse.issparse(both) else np.asfortranarray(both)
    start = time.perf_counter()
    coef, *_ = LBFGS(max_iter=5000, tol=tol).solve(
        both, labels, compiled_clone(Logistic()), compiled_clone(L2(l2))
    )
    return coef[:-1], 30.0 * coef[-1], time.perf_counter() - start


def _with_ones(X):
    ones = np.full((X.shape[0], 1), 30.0)
    return sparse.hstack([X, ones]).tocsr() if sparse.issparse(X) else np.hstack([X, ones])


def snapml(dual):
    """Parallel coordinate descent; the intercept is a column of 30, hardly penalised."""

    def fit(X, y, l2, tol):
        from snapml import LogisticRegression

        both = _with_ones(X).astype(np.float32)
        start = time.perf_counter()
        model = LogisticRegression(
            regularizer=l2 * len(y), dual=dual, n_jobs=2, max_iter=1000, tol=tol,
            fit_intercept=False,
        ).fit(both, y)  # fmt: skip
        coef = np.ravel(model.coef_)
        return coef[:-1], 30.0 * coef[-1], time.perf_counter() - start

    return fit


def vowpal_wabbit(X, y, l2, tol):
    """L-BFGS from a file in its own format; writing the file is not counted."""
    from vowpalwabbit import Workspace

    if (X.nnz if sparse.issparse(X) else X.size) > MOST_TEXT:
        raise ValueError(f"more than {MOST_TEXT} values are not written as text")
    path = _written(X, y)
    start = time.perf_counter()
    passes = max(5, int(-20 * np.log10(tol)))
    workspace = Workspace(
        f"--bfgs --loss_function logistic --l2 {l2 * len(y)} --passes {passes} "
        f"--termination {tol * 1e-2} -b 18 --holdout_off --mem 20 -d {path} -k "
        f"--cache_file {path}.cache --quiet"
    )
    seconds = time.perf_counter() - start
    coef = np.array([workspace.get_weight_from_name(str(j)) for j in range(X.shape[1])])
    return coef, workspace.get_weight(CONSTANT), seconds


def _written(X, y):
    path = Path(sys.argv[1]).with_suffix(".vw")  # beside the data, and gone with them
    if not path.exists():
        rows = sparse.csr_matrix(X)
        with path.open("w") as out:
            for i, label in enumerate(y):
                part = slice(rows.indptr[i], rows.indptr[i + 1])
                pairs = zip(rows.indices[part], rows.data[part], strict=True)
                text = " ".join(f"{j}:{v:.8g}" for j, v in pairs)
                out.write(f"{1 if label == 1 else -1} | {text}\n")
    return path


PEERS = {
    **{f"scikit-learn {s}": ("logistic", logistic(s)) for s in (
        "newton-cholesky", "lbfgs", "newton-cg", "liblinear", "saga", "sag")},
    "SGDClassifier": ("logistic", sgd),
    "glum irls": ("logistic", glum("binomial")),
    "skglm lbfgs": ("logistic", skglm),
    "intelex logistic": ("logistic", intelex("logistic")),
    "snapml primal": ("logistic", snapml(False)),
    "snapml dual": ("logistic", snapml(True)),
    "Vowpal Wabbit bfgs": ("logistic", vowpal_wabbit),
    "Spark MLlib": ("logistic", peer_spark.logistic),
    **{f"scikit-learn ridge {s}": ("ridge", ridge(s)) for s in (
        "cholesky", "svd", "lsqr", "sparse_cg", "sag")},
    "numpy normal equations": ("ridge", normal_equations),
    "glum normal": ("ridge", glum("normal")),
    "intelex ridge": ("ridge", intelex("ridge")),
    "Spark MLlib normal": ("ridge", peer_spark.ridge("normal")),
    "Spark MLlib l-bfgs": ("ridge", peer_spark.ridge("l-bfgs")),
}  # fmt: skip


def ladder(fit, task, X, y, l2, limit):
    """[seconds, objective] of runs with tighter and tighter tolerances."""
    runs = []
    for tol in TOLERANCES:
        start = time.perf_counter()
        with contextlib.redirect_stdout(sys.stderr):
            coef, intercept, *own = fit(X, y, l2, tol)
        took = own[0] if own else time.perf_counter() - start
        runs.append((took, objective(task, X, y, l2, coef, intercept)))
        if took > limit:
            break
    return runs


def loaded(path):
    """(X, y) of an .npz file."""
    data = np.load(path)
    if "X" in data:
        return data["X"], data["y"]
    parts = (data["data"], data["indices"], data["indptr"])
    return sparse.csr_matrix(parts, shape=tuple(data["shape"])), data["y"]


def main():
    path, task, l2, limit, *names = sys.argv[1:]
    X, y = loaded(path)
    few = slice(0, 2000)
    for name in names:
        try:
            fit = PEERS[name][1]
            if "Wabbit" not in name:
                fit(X[few], y[few], float(l2), 0.1)  # imports and compiled code are warm
            found = {"runs": ladder(fit, task, X, y, float(l2), float(limit))}
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps({"name": name, **found}), flush=True)


if __name__ == "__main__":
    main()
