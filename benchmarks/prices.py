"""Prices of methods beside what they took, passes given; and the price list fitted to that.

Rows are drawn for a grid of shapes, dense and sparse; each method runs three times, for two
seconds and 60 passes at most, and its price for the passes that it took stands beside the
median. A ratio below 1 says that the price is too low. Single passes over all rows, "pass"
among the methods, are measured on shapes of their own: few values a row, many rows, blocks.
So are "step"s of L-BFGS, passes over next to nothing: many weights, of one column or more.
"theirs" are scikit-learn's own fits by lbfgs and, in the primal, by LIBLINEAR, of two
classes and of five, to their end; of dense rows those that solve at once, and of k-means
both, theirs and ours.
Foreseeing passes is another matter: `foresight.py`.

With --fit methods run on one thread, and the processor time of the median run counts: a
neighbour on the same core is as usual as to have it alone. The prices of
`src/mlopt/prices/prices.csv` that name this script are fitted to these: logarithms of
ratios are to be small, large ones count linearly, and a price that no run tells anything
about stays where it is. Printed are ratios by method before and after, and the lines of the
list that change, with today's date.

With --drawn 1,2,3 problems are those that `foresight.py` draws from these seeds, in
place of shapes of the grid. Runs that did not come to their end do not count.

usage: prices.py [--seed 0] [--methods lbfgs,cholesky] [--fit] [--drawn 1,2] [--problems 6]
"""

from __future__ import annotations

import argparse
import ast
import csv
import datetime
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

FIT = "--fit" in sys.argv
THREADS = "1" if FIT else "2"
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, THREADS)
os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day
warnings.filterwarnings("ignore")

import numpy as np
import scipy.sparse as sp
from scipy.optimize import least_squares
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.svm import LinearSVC

import mlopt
from mlopt.cluster import Threads, between_passes, single_threaded
from mlopt.costs import Cost
from mlopt.errors import MloptError
from mlopt.gd.columns import Model, layout
from mlopt.gd.passes import Sums, evaluate
from mlopt.gd.plans import lbfgs
from mlopt.gd.plans.fitting import Ranker
from mlopt.gd.plans.method import Method
from mlopt.gd.plans.running import Alternative
from mlopt.gd.pricing import Shape, gradient_pass, shape_of
from mlopt.gd.quasi_newton import QuasiNewton
from mlopt.pipeline.calibration.fitting import MOST as FACTOR
from mlopt.pipeline.calibration.fitting import RIDGE, robust
from mlopt.pipeline.fits.registry import own_cost, ways_of
from mlopt.pipeline.profiling.shapes import stats_of
from mlopt.prices import PRICES
from mlopt.resources import Calibration
from mlopt.rows import Rows
from mlopt.stats import Stats

LOSSES = ("logistic", "squared", "squared_hinge", "hinge")
SHAPES = (
    (600, 8, 1.0), (3000, 20, 1.0), (3000, 200, 1.0), (1500, 900, 1.0), (20_000, 20, 1.0),
    (20_000, 200, 1.0), (100_000, 30, 1.0), (8000, 700, 1.0), (2000, 100, 0.1),
    (3000, 1500, 0.02), (20_000, 100, 0.05), (20_000, 5000, 0.005), (100_000, 300, 0.02),
    (6000, 20_000, 0.007), (150_000, 8, 1.0), (150_000, 40, 0.03),
)  # fmt: skip
METHODS = (
    "lbfgs", "newton-cholesky", "newton-cg", "primal-coordinate-descent", "cholesky",
    "sparse_cg", "sketched_cg", "mixed_cholesky", "svd", "dual-coordinate-descent",
    "dual-logistic", "interior-point", "pass", "step", "theirs",
)  # fmt: skip
PASSES = (
    (500, 10, 1.0), (4000, 10, 1.0), (12_000, 10, 1.0), (150_000, 2, 1.0),
    (150_000, 8, 1.0), (60_000, 20, 1.0), (20_000, 100, 1.0), (4000, 400, 1.0),
    (1000, 1500, 1.0), (5000, 200, 0.01), (200_000, 42, 0.02), (100_000, 20, 0.1),
    (150_000, 658, 0.026), (20_000, 658, 0.026), (20_000, 5000, 0.005),
    (6000, 20_000, 0.007), (40_000, 20_000, 0.0025), (60_000, 40, 0.3),
)  # fmt: skip
PASS, LOOKS, MODELS = "pass", 15, (1, 16)
STEPS = (
    (10_000, 1), (100_000, 1), (300_000, 1), (3000, 4), (10_000, 4), (30_000, 4),
    (100_000, 4), (300_000, 4), (3000, 16), (10_000, 16), (30_000, 16), (100_000, 16),
)  # fmt: skip
"""Weights of a column, and columns."""
STEP, FEWEST, STEPS_ROWS = "step", (20, 60), (2000, 10)
"""Passes before those that count and with them; rows, and values in each."""
THEIRS, CLASSES, CENTRES = "theirs", 5, (8, 30)
VALUES = 8e6
"""Stored by a drawn problem at most."""
TOLERANCE, L2, MOST, SECONDS, REPEATS, HOPELESS = 1e-4, 1e-4, 60, 2.0, 3, 20.0
SCRIPT, PREFIX = "prices.py", ""
UNITS = {"s", "operations", "times", "reads", "vectors", "visits", "columns"}
"""Of prices that seconds tell something about; passes are judged by `foresight.py`."""
DIGITS = 2
"""Of a price: what is measured has no more."""


@dataclass(frozen=True)
class Seen:
    """A method that took so many passes, in so many seconds."""

    ranker: Ranker
    method: Method
    passes: int
    seconds: float

    def priced(self) -> float:
        """Seconds by the list as it is now."""
        ranker = self.ranker
        fresh = Ranker(ranker.problem, ranker.resources, ranker.stop, ranker.methods)
        return fresh.seconds(self.method, self.passes)


@dataclass(frozen=True)
class Looked:
    """One pass, and its seconds."""

    method: SimpleNamespace
    shape: Shape
    resources: mlopt.Resources
    seconds: float
    cost: Callable[[Shape, mlopt.Resources], Cost] = gradient_pass

    def priced(self) -> float:
        """Seconds by the list as it is now."""
        cost = self.cost(self.shape, self.resources)
        return cost.seconds(self.resources, self.resources.threads)


def stepped(rng, d, columns):
    """A pass of L-BFGS with so many weights, over a few short rows."""
    n, stored = STEPS_ROWS
    X, threads = rows(rng, n, d, stored / d), int(THREADS)
    resources = replace(mlopt.Resources.probe(), threads=threads)
    codes = rng.integers(0, max(columns, 2), (n, 1)).astype(float)
    beside = {"targets": codes, "weights": np.ones_like(codes)}
    model = Model("squared_hinge", 1e-6, outputs=columns)
    with closing(Threads(threads)) as where, between_passes():
        held = Rows.of(X, executor=where).attach(**beside)
        seconds = []
        for _ in range(REPEATS):
            training = QuasiNewton(held, [model], gtol=0.0, max_passes=FEWEST[1])
            training.advance(FEWEST[0])
            clock = time.process_time if FIT else time.perf_counter
            start, before = clock(), training.passes
            training.advance(FEWEST[1])
            seconds.append((clock() - start) / max(training.passes - before, 1))
        took = statistics.median(seconds)
        shape = shape_of(held, columns)
    one = Looked(SimpleNamespace(name=STEP), shape, resources, took, lbfgs.each)
    print(
        f"{STEP:34s} squared_hinge {d:6d} weights x {columns:2d}            1 passes "
        f"{1e3 * took:9.2f} ms  price {1e3 * one.priced():9.2f} ms  "
        f"{one.priced() / took:5.2f}",
        flush=True,
    )
    yield one


def looked(rng, n, d, density):
    """A pass for each loss over rows of one shape, for one model and for many."""
    X, threads = rows(rng, n, d, density), int(THREADS)
    resources = replace(mlopt.Resources.probe(), threads=threads)
    with closing(Threads(threads)) as where, between_passes():
        y = np.sign(rng.normal(size=(n, 1)))
        beside = {"targets": y, "weights": np.ones_like(y)}
        held = Rows.of(X, executor=where).attach(**beside)
        sums = Sums.of(held)
        for loss, models in product(LOSSES, MODELS):
            plan = layout([Model(loss, L2 * (1 + number)) for number in range(models)])
            weights, seconds = np.full((d + 1, models), 0.1), []
            for _ in range(LOOKS):
                clock = time.process_time if FIT else time.perf_counter
                start = clock()
                evaluate(held, weights, plan, sums, scored=False)
                seconds.append(clock() - start)
            took, kind = statistics.median(seconds), "dense" if density == 1 else "sparse"
            named = SimpleNamespace(name=f"{PASS}, {kind}, {models} models")
            one = Looked(named, shape_of(held, models), resources, took)
            print(
                f"{named.name:34s} {loss:13s} {n:6d} x {d:<5d} {density:5.3f}    1 passes "
                f"{1e3 * took:9.2f} ms  price {1e3 * one.priced():9.2f} ms  "
                f"{one.priced() / took:5.2f}",
                flush=True,
            )
            yield one


@dataclass(frozen=True)
class Theirs:
    """A fit of a class of scikit-learn's, its steps, and its seconds."""

    method: SimpleNamespace
    estimator: Any
    stats: Stats
    passes: int
    resources: mlopt.Resources
    seconds: float
    way: Any = None
    """None: its own."""

    def priced(self) -> float:
        """Seconds by the list as it is now."""
        if self.way is None:
            cost = own_cost(self.estimator, self.stats, self.passes)
        else:
            given = self.estimator, self.stats, self.resources, self.passes + 2
            cost = self.way.cost(*given)
        assert cost is not None
        return cost.seconds(self.resources)


def fits_of(classes):
    """Estimators by what they minimise, each with the way that fits it."""
    yield "logistic", LogisticRegression(max_iter=MOST), None
    yield "squared_hinge", LinearSVC(), None
    yield "signs", RidgeClassifier(), None
    if classes > 2:
        return
    yield from (("cholesky", Ridge(), None), ("lstsq", LinearRegression(), None))
    yield "components", PCA(), None
    for centres in CENTRES:
        model = KMeans(centres, max_iter=MOST, random_state=0)
        yield from (("lloyd", model, None), ("our lloyd", model, ways_of(model)[0]))


def fitted_theirs(rng, n, d, density):
    """scikit-learn's own fits to rows of one shape, of two classes and of more."""
    X, resources = rows(rng, n, d, density), mlopt.Resources.probe()
    for classes in (2, CLASSES):
        z = X @ rng.normal(size=(d, classes))
        y = np.argmax(z / z.std(axis=0) + rng.gumbel(size=z.shape), axis=1)
        stats = replace(stats_of(X, n, 1), outputs=1 if classes == 2 else classes)
        for loss, estimator, way in fits_of(classes):
            if own_cost(estimator, stats) is None:
                continue  # in the dual, or by steps
            seconds, found = [], estimator
            with single_threaded(), closing(Threads(1)) as where, between_passes():
                held = None if way is None else Rows.of(X, executor=where)
                for _ in range(REPEATS):
                    clock = time.process_time if FIT else time.perf_counter
                    start = clock()
                    found = estimator.fit(X, y) if held is None else way.fit(
                        estimator, held, None, None
                    )  # fmt: skip
                    seconds.append(clock() - start)
            took = statistics.median(seconds)
            steps = int(np.max([getattr(found, "n_iter_", 1) or 1]))
            if loss == "squared_hinge" and steps == estimator.max_iter:
                continue
            kind = f"{THEIRS}, {'dense' if density == 1 else 'sparse'}, {classes} classes"
            named = SimpleNamespace(name=f"{kind}, {loss}")
            one = Theirs(named, estimator, stats, steps, resources, took, way)
            print(
                f"{kind:34s} {loss:13s} {n:6d} x {d:<5d} {density:5.3f} {steps:4d} passes "
                f"{1e3 * took:9.2f} ms  price {1e3 * one.priced():9.2f} ms  "
                f"{one.priced() / took:5.2f}",
                flush=True,
            )
            yield one


class Bindings:
    """The constants of all modules that come from the price list, to be set together."""

    def __init__(self) -> None:
        self._places: list[tuple[ModuleType, list[str], CodeType, set[str] | None]] = []
        self._modules = [
            m for name, m in sys.modules.items() if name.startswith("mlopt.") and m.__file__
        ]
        for module in self._modules:
            for node in ast.parse(Path(str(module.__file__)).read_text()).body:
                if isinstance(node, ast.Assign) and _asks(node.value):
                    code = compile(ast.Expression(node.value), module.__name__, "eval")
                    target = node.targets[0]
                    names = [ast.unparse(one) for one in getattr(target, "elts", [target])]
                    self._places.append((module, names, code, _asked(node.value)))

    def set(self, values: dict[str, float]) -> None:
        """Let the list have these values, wherever it was asked."""
        values = {n: value for n, value in values.items() if PRICES[n].value != value}
        for name, value in values.items():
            PRICES[name] = replace(PRICES[name], value=value)
        for module, names, code, asked in self._places:
            if asked is not None and asked.isdisjoint(values):
                continue
            found = eval(code, vars(module))
            for name, new in zip(names, found if len(names) > 1 else [found], strict=True):
                old = getattr(module, name)
                for other in self._modules:  # those that import it from there
                    if getattr(other, name, None) is old:
                        setattr(other, name, new)


def _asks(node: ast.expr) -> bool:
    calls = (one.func for one in ast.walk(node) if isinstance(one, ast.Call))
    return any(isinstance(f, ast.Name) and f.id in ("price", "count") for f in calls)


def _asked(node: ast.expr) -> set[str] | None:
    """The names that are asked for; None where they are put together."""
    parts = list(ast.walk(node))
    if any(isinstance(one, ast.JoinedStr) for one in parts):
        return None
    return {str(one.value) for one in parts if isinstance(one, ast.Constant)}


def fitted(seen: list[Seen | Looked | Theirs]) -> dict[str, float]:
    """The prices that name this script, by least squares of logarithms; now in the list."""
    bindings = Bindings()
    own = [p for p in PRICES.values() if p.script == SCRIPT and p.unit in UNITS]
    names = [p.name for p in own if p.name.startswith(PREFIX)]
    first = np.array([PRICES[name].value for name in names])
    measured = np.log([one.seconds for one in seen])

    def errors(logs: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
        bindings.set(dict(zip(names, (first * np.exp(logs)).tolist(), strict=True)))
        off = np.log([one.priced() for one in seen]) - measured
        return np.concatenate([robust(off), RIDGE * logs])

    bound = np.log(FACTOR)
    found = least_squares(
        errors, np.zeros(len(names)), bounds=(-bound, bound), diff_step=1e-3
    )
    values = [float(f"{v:.{DIGITS}g}") for v in first * np.exp(found.x)]
    bindings.set(dict(zip(names, values, strict=True)))
    return dict(zip(names, values, strict=True))


def of_method(one: Any) -> str:
    """What a run is a run of."""
    return str(one.method.name)


def summary(seen: list[Any], title: str, kind: Any = of_method) -> None:
    """Ratios of price and measurement, method by method."""
    print(title)
    for name in dict.fromkeys(map(kind, seen)):
        ratios = [one.priced() / one.seconds for one in seen if kind(one) == name]
        near = np.mean([0.5 <= ratio <= 2 for ratio in ratios])
        print(
            f"{name:34s} price / measured: median {statistics.median(ratios):.2f}, "
            f"within 2x {near:.0%} of {len(ratios)}"
        )


def print_fitted(seen: list[Any], kind: Any = of_method) -> None:
    """The lines of the list that change, and ratios before and after."""
    summary(seen, "\nthe list as it is", kind)
    before = dict(PRICES)
    found = fitted(seen)
    summary(seen, "\nas it would be with these lines", kind)
    today, writer = datetime.date.today().isoformat(), csv.writer(sys.stdout)
    for name, value in found.items():
        if value != before[name].value:
            one = before[name]
            writer.writerow((name, value, one.unit, one.script, today, one.what))


def timed(alternative: Alternative) -> tuple[float, int, bool]:
    """Seconds and passes of a run, and whether it came to its end."""
    start = time.process_time()
    run = alternative.run(time_limit=SECONDS, max_iter=MOST)
    seconds = time.process_time() - start if FIT else run.seconds
    return seconds, run.n_iter, run.converged


def solved(problem, methods):
    """A run of each method that can and is not foreseen to take for ever."""
    X, y, loss, l2, tolerance = problem
    (n, d), stored = X.shape, X.nnz if sp.issparse(X) else X.size
    for name in methods:
        # A dual has no intercept.
        free = not name.startswith("dual-coordinate")
        task = mlopt.gd.Task(loss, l2=l2, fit_intercept=free)
        try:
            plan = mlopt.gd.plan(
                task, X, y, tolerance=tolerance, methods=[name], speculation=False,
                n_jobs=int(THREADS),
            )  # fmt: skip
        except MloptError:
            continue
        if plan.chosen.predicted_seconds > HOPELESS:
            continue
        plan.ranker.resources = replace(
            plan.ranker.resources, calibration=Calibration(), threads=int(THREADS)
        )
        runs = sorted(timed(plan.chosen) for _ in range(REPEATS))
        seconds, passes, ended = runs[REPEATS // 2]
        method = plan.chosen.method
        if not (ended or method.bounds):
            continue  # nothing was proven, which has its part in the price
        one = Seen(plan.ranker, method, passes, seconds)
        price = one.priced()
        print(
            f"{name:34s} {loss:13s} {n:6d} x {d:<5d} {stored / n / d:5.3f} "
            f"{passes:4d} passes {1e3 * seconds:9.2f} ms  price "
            f"{1e3 * price:9.2f} ms  {price / seconds:5.2f}",
            flush=True,
        )
        yield one


def grid(rng):
    """X, y, loss, penalty and tolerance of a problem for each shape and loss."""
    for shape in SHAPES:
        X = rows(rng, *shape)
        z = X @ rng.normal(size=shape[1])
        z = z / z.std() + rng.normal(size=shape[0])
        for loss in LOSSES:
            yield X, z if loss == "squared" else (z > 0).astype(int), loss, L2, TOLERANCE


def drawn(seeds, count):
    """The same of so many problems of each seed, drawn as `foresight.py` draws them."""
    import foresight

    for seed in seeds:
        rng = np.random.default_rng(seed)
        for _ in range(count):
            one = foresight.draw(rng, VALUES)
            yield *foresight.rows_of(one), one.loss, one.l2, one.tolerance


def rows(rng, n, d, density):
    """X (n, d): correlated where dense, common and rare columns where sparse."""
    if density == 1:
        return rng.normal(size=(n, d)) + 0.7 * rng.normal(size=(n, 1))
    often = rng.pareto(1.0, d) + 0.05
    count = rng.poisson(max(density * d, 1.0), n)
    columns = rng.choice(d, size=count.sum(), p=often / often.sum()).astype(np.int32)
    values = np.abs(rng.normal(size=len(columns))) + 0.1
    places = np.repeat(np.arange(n, dtype=np.int32), count), columns
    X = sp.csr_array((values, places), shape=(n, d))
    X.sum_duplicates()
    return X


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--fit", action="store_true", help="the price list to these runs")
    parser.add_argument("--drawn", default="", help="seeds of problems in place of shapes")
    parser.add_argument("--problems", type=int, default=6, help="drawn of each seed")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    seen: list[Seen | Looked | Theirs] = []
    methods = options.methods.split(",")
    for name, shapes, made in (
        (PASS, PASSES, looked), (STEP, STEPS, stepped), (THEIRS, SHAPES, fitted_theirs)
    ):  # fmt: skip
        if name in methods:
            methods.remove(name)
            seen += [one for shape in shapes for one in made(rng, *shape)]
    if methods:
        seeds = [int(seed) for seed in options.drawn.split(",") if seed]
        problems = drawn(seeds, options.problems) if seeds else grid(rng)
        seen += [one for problem in problems for one in solved(problem, methods)]
    if options.fit:
        print_fitted(seen)
    else:
        summary(seen, "\nthe list as it is")


if __name__ == "__main__":
    main()
