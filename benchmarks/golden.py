"""What is chosen and how long it takes: this code beside another checkout, in turn.

A refactoring must not slow anything down without a word. Each workload runs in processes
of its own, by turns with the package of this checkout and of the other one (``--before``),
each after a first run that nobody times; the data and this script are the same for both.
Printed: medians of seconds of both, their ratio, and what each chose; workloads beyond
``--slower`` are marked, and make the exit code 1. ``--record FILE`` writes the table as
JSON; ``--against FILE`` compares with such a table of the same machine, instead of another
checkout. With ``--cpu`` seconds are those of a processor, planned for and run on one core:
they hold on a machine that others use.

    choices      least squares and PCA, dense and sparse, by the estimators
    plans        `mlopt.gd.plan` on a9a, imdb and california to a gap of 1e-3
    solvers      the classifiers on drawn rows: few, tall, wide, sparse, many classes
    search       16 values of C x 5 folds on adult (three metrics), 16 penalties of ridge
    pipelines    pipelines.py's three, on some thousand rows
    foresight    problems drawn by a seed

usage: golden.py --before CHECKOUT | --against FILE [--only search,foresight]
    [--rounds 3] [--cpu] [--record FILE]

Workloads whose data are missing are named and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

CPU = "--cpu" in sys.argv
THREADS = "1" if CPU else "2"
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, THREADS)
clock = time.process_time if CPU else time.perf_counter
os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day
warnings.filterwarnings("ignore")

import numpy as np
import scipy.sparse as sp

HERE = Path(__file__).resolve().parent
SLOWER = 1.15
"""How many times the seconds of before count as slower."""
JOBS = 1 if CPU else 2
RUNS, LEAST = 7, 1.5
"""Runs in one process, or as many as take so many seconds."""
FORESIGHT_SEED, FORESIGHT_PROBLEMS, VALUES = 11, 12, 2e6


def classes(n, d, density=1.0, kinds=2, seed=0):
    """Rows and classes that a plane tells apart, but for noise."""
    rng = np.random.default_rng(seed)
    if density < 1:
        X = sp.random_array((n, d), density=density, format="csr", rng=rng)
    else:
        X = rng.normal(size=(n, d))
    signal = X @ rng.normal(size=(d, kinds)) / np.sqrt(d * density)
    return X, (signal + rng.normal(size=signal.shape)).argmax(axis=1)


def numbers(n, d, density=1.0, dtype=np.float64):
    """Rows and a target."""
    X, _ = classes(n, d, density)
    rng = np.random.default_rng(1)
    y = X @ rng.normal(size=d) / np.sqrt(d * density) + rng.normal(size=n)
    return X.astype(dtype), y.astype(dtype)


def chosen(fitted):
    """What the plan of a fitted estimator, search or pipeline chose."""
    return ", ".join(choice.chosen for choice in fitted.plan_.choices)


def estimator(make, data):
    """A workload: fit an estimator of `mlopt`; what its plan chose."""

    def prepare():
        import mlopt

        X, y = data()

        def run():
            return chosen(make(mlopt).fit(X, y))

        return run

    return prepare


def planned(name):
    """A workload: `mlopt.gd.plan` on one of the sets of plans.py."""

    def prepare():
        import mlopt
        import plans

        X, y, task = plans.DATA[name](None)
        return lambda: solved(mlopt, task, X, y, plans.TOLERANCE)

    return prepare


def foreseen(number):
    """A workload: one of the problems that foresight.py draws."""

    def prepare():
        import foresight

        import mlopt

        rng = np.random.default_rng(FORESIGHT_SEED)
        problem = [foresight.draw(rng, VALUES) for _ in range(number + 1)][number]
        X, y = foresight.rows_of(problem)
        task = mlopt.gd.Task(problem.loss, l2=problem.l2)
        return lambda: solved(mlopt, task, X, y, problem.tolerance)

    return prepare


def solved(mlopt, task, X, y, tolerance):
    """Plan and run; the name of the plan."""
    plan = mlopt.gd.plan(task, X, y, tolerance=tolerance, n_jobs=JOBS)
    plan.run()
    return plan.chosen.name


def searched(metric):
    """A workload: values of C on adult."""

    def prepare():
        import search

        X, y, _, _ = search.load("adult", None)
        values = np.logspace(-4, 4, 16).tolist()
        return lambda: chosen(search.ours(values, metric, None, JOBS).fit(X, y))

    return prepare


def penalties():
    """A workload: penalties of ridge x 5 folds."""
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import KFold

    import mlopt

    X, y = numbers(20_000, 100)
    space = {"alpha": np.logspace(-4, 4, 16).tolist()}

    def run():
        search = mlopt.ModelSearchCV(
            Ridge(), space, sampler="grid", n_trials=16, cv=KFold(5), bandit=None,
            n_jobs=JOBS,
        )  # fmt: skip
        return chosen(search.fit(X, y))

    return run


def piped(part, rows):
    """A workload: one of the pipelines of pipelines.py."""

    def prepare():
        import pipelines

        import mlopt

        X, y, steps = pipelines.PARTS[part](rows)

        def run():
            pipelines.environment.clear()
            return chosen(mlopt.Pipeline(pipelines.fresh(steps)).fit(X, y))

        return run

    return prepare


WORKLOADS = {
    "choices": {
        "ridge 20000 x 100": estimator(lambda m: m.Ridge(), lambda: numbers(20_000, 100)),
        "ridge 2000 x 2000": estimator(lambda m: m.Ridge(), lambda: numbers(2000, 2000)),
        "ridge 20000 x 5000 sparse": estimator(
            lambda m: m.Ridge(), lambda: numbers(20_000, 5000, 0.01)
        ),
        "ridge 8000 x 1000 float32": estimator(
            lambda m: m.Ridge(), lambda: numbers(8000, 1000, dtype=np.float32)
        ),
        "regression 50000 x 50": estimator(
            lambda m: m.LinearRegression(), lambda: numbers(50_000, 50)
        ),
        "pca 50000 x 100": estimator(lambda m: m.PCA(10), lambda: numbers(50_000, 100)),
    },
    "plans": {name: planned(name) for name in ("a9a", "imdb", "california")},
    "solvers": {
        "logistic 6000 x 12": estimator(
            lambda m: m.LogisticRegression(), lambda: classes(6000, 12)
        ),
        "logistic 200000 x 50": estimator(
            lambda m: m.LogisticRegression(), lambda: classes(200_000, 50)
        ),
        "logistic 5000 x 1500": estimator(
            lambda m: m.LogisticRegression(), lambda: classes(5000, 1500)
        ),
        "logistic 20000 x 20000 sparse": estimator(
            lambda m: m.LogisticRegression(), lambda: classes(20_000, 20_000, 0.002)
        ),
        "softmax 20000 x 40, 6 classes": estimator(
            lambda m: m.LogisticRegression(), lambda: classes(20_000, 40, kinds=6)
        ),
        "svm 20000 x 40": estimator(lambda m: m.LinearSVC(), lambda: classes(20_000, 40)),
        "svm 5000 x 20000 sparse": estimator(
            lambda m: m.LinearSVC(), lambda: classes(5000, 20_000, 0.002)
        ),
    },
    "search": {
        **{metric: searched(metric) for metric in ("accuracy", "roc_auc", "neg_log_loss")},
        "ridge, 16 penalties": penalties,
    },
    "pipelines": {
        "text": piped("text", 4000),
        "digits": piped("digits", 1500),
        "flights": piped("flights", 12_000),
    },
    "foresight": {str(number): foreseen(number) for number in range(FORESIGHT_PROBLEMS)},
}


def child(group, name):
    """Run one workload here: print what it chose and its seconds."""
    if CPU and hasattr(os, "sched_setaffinity"):  # planned for the one core it is timed on
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    run = WORKLOADS[group][name]()
    run()
    seconds, chosen = [], ""
    while len(seconds) < RUNS and (not seconds or sum(seconds) < LEAST):
        begin = clock()
        chosen = run()
        seconds.append(clock() - begin)
    print(json.dumps({"chosen": chosen, "seconds": seconds}))


def ask(checkout, group, name):
    """One process with the package of a checkout; None where it has no data."""
    paths = os.pathsep.join((str(checkout / "src"), str(HERE)))
    done = subprocess.run(
        [sys.executable, str(HERE / "golden.py"), *CPU * ["--cpu"], "--child", group, name],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        return f"left out: {reason[0]}"
    return json.loads(done.stdout.strip().splitlines()[-1])


def compared(checkouts, group, name, rounds):
    """Medians of seconds and choices of both checkouts, or why there are none."""
    found = {which: [] for which in checkouts}
    for _ in range(rounds):
        for which, checkout in checkouts.items():
            answer = ask(checkout, group, name)
            if isinstance(answer, str):
                return f"{which} {answer}"
            found[which].append(answer)
    return {
        which: {
            "chosen": runs[-1]["chosen"],
            "seconds": statistics.median(s for run in runs for s in run["seconds"]),
        }
        for which, runs in found.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--before", type=Path, help="another checkout")
    other.add_argument("--against", type=Path, help="a table that --record has written")
    parser.add_argument("--only", help="groups of workloads")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slower", type=float, default=SLOWER)
    parser.add_argument("--cpu", action="store_true", help="one thread, processor time")
    parser.add_argument("--record", type=Path, help="write the table as JSON")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(*options.child)
    checkouts = {"now": HERE.parent}
    if options.before:
        checkouts = {"before": options.before.resolve(), **checkouts}
    earlier = json.loads(options.against.read_text()) if options.against else {}
    table, slower = {}, 0
    for group in options.only.split(",") if options.only else WORKLOADS:
        for name in WORKLOADS[group]:
            row = compared(checkouts, group, name, options.rounds)
            table[f"{group}: {name}"] = row
            row = beside(row, earlier.get(f"{group}: {name}"))
            slower += reported(f"{group}: {name}", row, options.slower)
    if options.record:
        options.record.write_text(json.dumps(table, indent=1) + "\n")
    return int(slower > 0)


def beside(row, earlier):
    """The row with what it was in an earlier table, if it is in both."""
    if isinstance(row, str) or not isinstance(earlier, dict):
        return row
    return {"before": earlier["now"], **row}


def reported(title, row, limit):
    """Print one line; whether it is slower."""
    if isinstance(row, str):
        print(f"{title:42s} {row}", flush=True)
        return False
    now, before = row["now"], row.get("before", row["now"])
    ratio = now["seconds"] / before["seconds"]
    slow = "  SLOWER" if ratio > limit else ""
    other = "" if before["chosen"] == now["chosen"] else f"  (was {before['chosen']})"
    print(
        f"{title:42s} {before['seconds']:8.4f} s {now['seconds']:8.4f} s  {ratio:5.2f}x"
        f"{slow}  {now['chosen']}{other}",
        flush=True,
    )
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main())
