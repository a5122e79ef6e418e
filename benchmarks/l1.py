"""L1 penalties: single fits, and searches over 64 of them in 5 folds.

fits    `mlopt.Lasso` against scikit-learn's (without and with a Gram matrix), celer and
        skglm on dense 20,000 x 500, sparse 20,000 x 50,000, wide 500 x 20,000: CPU seconds
        until the objective is within a relative 1e-6 of the least that any found. Each with
        the loosest tolerance that gets there, its columns in the order it likes, one
        thread, the least of three runs.
classes `mlopt.LogisticRegression` of ten classes against scikit-learn's saga on dense
        10,000 x 100, sparse 10,000 x 20,000, wide 500 x 2000: as fits, to a relative 1e-4,
        which saga does not always reach; and what was predicted.
search  `mlopt.ModelSearchCV` against `GridSearchCV` (two processes of one thread) and
        against `LassoCV` and `LogisticRegressionCV`, which go along paths too; every solver
        with the loosest tolerance whose objective at the weakest penalty is within 1e-4 of
        the least, all of which is printed. Final fits included.

usage: l1.py [--part fits,classes,search] [--data dense,sparse,wide] [--shares .1,.01]
             [--peers PYTHON] [--constants]

--constants instead fits with other values of the constants of `mlopt.gd.working_set`, and
prints CPU seconds: what their values rest on.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day
warnings.filterwarnings("ignore")

import numpy as np
from peer_l1 import TOLERANCES, objective, timed
from scipy import sparse
from scipy.special import logsumexp
from sklearn.linear_model import Lasso, LassoCV, LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, KFold

import mlopt
from mlopt.gd import working_set
from mlopt.gd.plans import column_products

GAP, LOOSE = 1e-6, 1e-4
PENALTIES, FOLDS = 64, 5


def dense(n=20_000, d=500, support=100):
    """Correlated columns, of which some tell the target."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X += 0.5 * rng.standard_normal((n, 10)) @ rng.standard_normal((10, d))
    w = np.zeros(d)
    w[rng.permutation(d)[:support]] = rng.standard_normal(support)
    return X, X @ w + np.sqrt(support) * rng.standard_normal(n)


def few(n=20_000, d=50_000, each=80):
    """Sparse: frequent and rare columns, as of words."""
    rng = np.random.default_rng(0)
    popular = 1 / np.arange(1, d + 1) ** 0.8
    columns = rng.choice(d, size=n * each, p=popular / popular.sum())
    place = (np.repeat(np.arange(n), each), columns)
    X = sparse.csr_matrix((rng.random(n * each) + 0.5, place), shape=(n, d))
    w = np.zeros(d)
    w[rng.permutation(2000)[:200]] = rng.standard_normal(200)
    return X, X @ w + rng.standard_normal(n)


PROBLEMS = {"dense": dense, "sparse": few, "wide": lambda: dense(500, 20_000, 50)}


def strongest(X, y):
    """The penalty from which on no column has a weight."""
    return float(np.abs(X.T @ (y - y.mean())).max() / len(y))


def peers(python, X, y, alpha):
    """Name to (tolerance, seconds, objective), from another environment."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        if sparse.issparse(X):
            C = X.tocsc()
            parts = {"data": C.data, "indices": C.indices, "indptr": C.indptr}
            np.savez(path, y=y, shape=X.shape, **parts)
        else:
            np.savez(path, X=X, y=y)
        for name in ("celer", "skglm"):
            program = [python, str(Path(__file__).parent / "peer_l1.py")]
            run = subprocess.run(
                [*program, str(path), repr(alpha), name], capture_output=True, text=True
            )
            found[name] = [json.loads(line) for line in run.stdout.splitlines()]
            if not found[name]:
                print(f"  {name}: not run ({run.stderr.strip().splitlines()[-1:]})")
    return found


def fits(names, shares, python):
    """Seconds of one fit to the same gap."""
    for name in names:
        X, y = PROBLEMS[name]()
        by_columns = X.tocsc() if sparse.issparse(X) else np.asfortranarray(X)
        for share in shares:
            alpha = share * strongest(X, y)
            runs = peers(python, X, y, alpha) if python else {}
            # Each in the layout that it takes as it is.
            given = by_columns if sparse.issparse(X) else X
            sets = {
                "mlopt": (lambda a, tol: mlopt.Lasso(a, tol=tol, max_iter=10**5), given)
            }
            for gram in (False, True) if name == "dense" else (False,):
                sets[f"scikit-learn precompute={gram}"] = (
                    lambda a, tol, gram=gram: Lasso(
                        a, tol=tol, max_iter=10**5, precompute=gram
                    ),
                    by_columns,
                )
            for label, (make, data) in sets.items():
                runs[label] = []
                for tol in TOLERANCES:
                    run = (tol, *timed(make, data, y, alpha, tol))
                    runs[label].append(run)
                    near = len(runs[label]) > 1 and (
                        runs[label][-2][2] - run[2] < 0.1 * GAP * run[2]
                    )
                    if run[1] > 10 or near:
                        break
            least = min(value for found in runs.values() for _, _, value in found)
            ours = None
            print(f"{name} {X.shape[0]} x {X.shape[1]}, alpha {share} of the largest")
            for label in sorted(runs, key=lambda label: label != "mlopt"):
                near = [r for r in runs[label] if r[2] <= least * (1 + GAP)]
                if not near:
                    print(f"  {label:30} never within the gap")
                    continue
                tol, seconds, _ = min(near, key=lambda run: run[1])
                ours = seconds if ours is None else ours
                print(f"  {label:30} {seconds:8.3f} s  {seconds / ours:6.2f}x  tol {tol:g}")


def classes(n=20_000, d=60):
    """Two classes, standardised columns."""
    X, z = dense(n, d, 20)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, (z > np.median(z)).astype(int)


def loss(X, y, C, model):
    """scikit-learn's objective over C n; liblinear's intercept is hardly penalised."""
    z = X @ model.coef_[0] + model.intercept_[0]
    mean = np.logaddexp(0, np.where(y == 1, -z, z)).mean()
    return float(mean + np.abs(model.coef_).sum() / (C * len(y)))


CLASSES = 10
SHAPES = {
    "dense": (10_000, 100, None),
    "sparse": (10_000, 20_000, 60),
    "wide": (500, 2000, None),
}


def labelled(n, d, each):
    """Rows of ten classes, each told by a few columns."""
    rng = np.random.default_rng(0)
    X = few(n, d, each)[0] if each else rng.standard_normal((n, d))
    W = np.zeros((d, CLASSES))
    W[: d // 4] = rng.standard_normal((d // 4, CLASSES)) * (rng.random((d // 4, 1)) < 0.2)
    z = X @ W
    return X, (z / z.std() + 0.5 * rng.gumbel(size=z.shape)).argmax(axis=1)


def softmax_loss(X, y, C, model):
    """scikit-learn's objective over C n."""
    z = X @ model.coef_.T + model.intercept_
    mean = (logsumexp(z, axis=1) - z[np.arange(len(y)), y]).mean()
    return float(mean + np.abs(model.coef_).sum() / (C * len(y)))


def many(names, shares):
    """Seconds of one fit of many classes to the same gap."""
    makers = {"mlopt": mlopt.LogisticRegression, "saga": LogisticRegression}
    more = {"mlopt": {}, "saga": {"solver": "saga", "random_state": 0}}
    for name in names:
        X, y = labelled(*SHAPES[name])
        own = (y[:, None] == np.arange(CLASSES)) - np.bincount(y) / len(y)
        for share in shares:
            C = 1 / (share * float(np.abs(X.T @ own).max()))
            runs = {label: [] for label in makers}
            for label, make in makers.items():
                for tol in TOLERANCES:
                    same = {"C": C, "l1_ratio": 1.0, "tol": tol, "max_iter": 10**4}
                    start = time.process_time()
                    model = make(**same, **more[label]).fit(X, y)
                    seconds = time.process_time() - start
                    value = softmax_loss(X, y, C, model)
                    runs[label].append((seconds, value, tol))
                    if label == "mlopt" and tol == TOLERANCES[2]:
                        predicted = model.plan_.choices[0].predicted
                    if seconds > 60:
                        break
            least = min(value for found in runs.values() for _, value, _ in found)
            print(f"{name} {X.shape[0]} x {X.shape[1]}, {share} of the largest penalty")
            print(f"  predicted {predicted:.3f} s")
            for label, found in runs.items():
                near = [run for run in found if run[1] <= least * (1 + LOOSE)]
                seconds, value, tol = min(near or found[-1:])
                over = value / least - 1
                print(f"  {label:8} {seconds:8.3f} s, {over:.1e} above, tol {tol:g}")


def loosest(makers, value, X, y):
    """Label to the tolerance that comes near the least objective at the weakest penalty."""
    found = {}
    for label, make in makers.items():
        for tol in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
            start = time.perf_counter()
            got = value(make(tol).fit(X, y))
            found.setdefault(label, []).append((tol, got))
            if time.perf_counter() - start > 20:
                break
    least = min(got for runs in found.values() for _, got in runs)
    return {
        label: next((t for t, got in runs if got <= least * (1 + LOOSE)), runs[-1][0])
        for label, runs in found.items()
    }


def raced(contestants, X, y):
    """Print seconds of each search, ours first, and how far its best score is.

    The median of three runs, or of as many as begin within half a minute.
    """
    ours = score = None
    for label, make in contestants.items():
        seconds = []
        while not seconds or (len(seconds) < 3 and sum(seconds) < 30):
            search = make()
            start = time.perf_counter()
            search.fit(X, y)
            seconds.append(time.perf_counter() - start)
        took = statistics.median(seconds)
        ours = took if ours is None else ours
        found = getattr(search, "best_score_", None)
        score = found if score is None else score
        apart = "" if found is None else f"  best score off by {abs(found - score):.1e}"
        print(f"  {label:44} {took:8.2f} s  {took / ours:6.1f}x{apart}")


def search():
    """64 penalties in 5 folds."""
    cv = KFold(FOLDS, shuffle=True, random_state=0)

    def ours(model, space):
        settings = {"sampler": "grid", "n_trials": None, "bandit": None, "cv": cv}
        return mlopt.ModelSearchCV(model, space, **settings)

    def grid(model, space):
        return GridSearchCV(model, space, cv=cv, n_jobs=2)

    X, y = dense(d=100, support=30)
    alphas = (strongest(X, y) * np.geomspace(1, 1e-3, PENALTIES)).tolist()
    space, last = {"alpha": alphas}, alphas[-1]
    makers = {
        "mlopt": lambda tol: mlopt.Lasso(last, tol=tol),
        "cd": lambda tol: Lasso(last, tol=tol, max_iter=10**5),
    }
    tol = loosest(makers, lambda model: objective(X, y, last, model), X, y)
    print(f"Lasso, {PENALTIES} alphas x {FOLDS} folds, {X.shape[0]} x {X.shape[1]}, {tol}")
    slow = {"tol": tol["cd"], "max_iter": 10**5}
    one = grid(Lasso(**slow), {"alpha": alphas[:2]})
    one.fit(X, y)  # starts the processes
    raced(
        {
            "mlopt": lambda: ours(mlopt.Lasso(tol=tol["mlopt"]), space),
            "GridSearchCV": lambda: grid(Lasso(**slow), space),
            "GridSearchCV precompute": lambda: grid(Lasso(precompute=True, **slow), space),
            "LassoCV": lambda: LassoCV(alphas=alphas, cv=cv, n_jobs=2, **slow),
            "LassoCV one process": lambda: LassoCV(alphas=alphas, cv=cv, **slow),
        },
        X,
        y,
    )

    X, y = classes()
    first = 2 / (len(y) * strongest(X, 2.0 * y - 1))
    Cs = (first * np.geomspace(1, 1e3, PENALTIES)).tolist()
    last = Cs[-1]
    solvers = {"liblinear": {"intercept_scaling": 30.0}, "saga": {}}

    def peer(solver, tol, **more):
        settings = {"solver": solver, "tol": tol, "max_iter": 5000, "l1_ratio": 1.0}
        return LogisticRegression(**settings, **solvers[solver], **more)

    makers = {"mlopt": lambda tol: mlopt.LogisticRegression(C=last, l1_ratio=1.0, tol=tol)}
    for solver in solvers:
        makers[solver] = lambda tol, solver=solver: peer(solver, tol, C=last)
    tol = loosest(makers, lambda model: loss(X, y, last, model), X, y)
    print(f"logistic, {PENALTIES} C x {FOLDS} folds, {X.shape[0]} x {X.shape[1]}, {tol}")
    model = mlopt.LogisticRegression(l1_ratio=1.0, tol=tol["mlopt"])
    contestants = {"mlopt": lambda: ours(model, {"C": Cs})}
    for solver in solvers:
        one = peer(solver, tol[solver])
        contestants[f"GridSearchCV {solver}"] = lambda one=one: grid(one, {"C": Cs})
        contestants[f"LogisticRegressionCV {solver}"] = lambda solver=solver: (
            LogisticRegressionCV(
                Cs=Cs,
                l1_ratios=[1.0],
                solver=solver,
                tol=tol[solver],
                cv=cv,
                n_jobs=2,
                max_iter=5000,
                scoring="accuracy",
                **solvers[solver],
            )
        )
    raced(contestants, X, y)


TRIED = {
    (working_set, "_FEWEST"): (16, 64, 256),
    (working_set, "_CLOSER"): (0.3, 0.1, 0.03, 0.01),
    (working_set, "_SWEEPS"): (50, 200, 800),
    (column_products, "PRODUCTS"): (8.0, 16.0, 32.0, 64.0),
    (column_products, "_SPARSE_PRODUCTS"): (0.1, 0.5, 2.0),
}


def constants(names, shares):
    """CPU seconds of fits with other constants, each summed over the problems."""
    problems = []
    for name in names:
        X, y = PROBLEMS[name]()
        sign = np.where(y > np.median(y), 1, 0)
        for share in shares:
            problems.append((mlopt.Lasso(share * strongest(X, y), tol=1e-6), X, y))
            C = 2 / (len(y) * share * strongest(X, 2.0 * sign - 1))
            model = mlopt.LogisticRegression(C=C, l1_ratio=1.0, max_iter=1000)
            problems.append((model, X, sign))
    for (module, name), values in TRIED.items():
        kept, totals = getattr(module, name), {value: [] for value in values}
        for model, X, y in problems:
            best = dict.fromkeys(values, np.inf)
            for _ in range(3):
                for value in values:
                    setattr(module, name, value)
                    start = time.process_time()
                    model.fit(X, y)
                    best[value] = min(best[value], time.process_time() - start)
            for value in values:
                totals[value].append(best[value])
        setattr(module, name, kept)
        print(f"{name} (now {kept})")
        for value, parts in totals.items():
            each = " ".join(f"{part:6.3f}" for part in parts)
            print(f"  {value:6}: {sum(parts):7.3f} s  = {each}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="fits,classes,search")
    parser.add_argument("--data", default="dense,sparse,wide")
    parser.add_argument("--shares", default="0.1,0.01")
    parser.add_argument("--peers")
    parser.add_argument("--constants", action="store_true")
    given = parser.parse_args()
    names, shares = given.data.split(","), [float(s) for s in given.shares.split(",")]
    if given.constants:
        constants(names, shares)
    else:
        if "fits" in given.part:
            fits(names, shares, given.peers)
        if "classes" in given.part:
            many(names, shares)
        if "search" in given.part:
            search()
