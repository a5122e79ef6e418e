"""How many passes methods take: problems drawn and real, and the fit of what is expected.

Problems are those that `foresight.py` draws, by seeds of its own, a share of them made wide
and of the sparse ones a share with rows of length one, and parts of the tables that
`tables` finds: some rows, some columns, some rescaled, any loss, penalty and gap; or, for
the estimators, a gradient. Each method that iterates solves each of them; what has not
ended in the time, or in the passes, counts as twice the passes so far. Passes do not depend
on the machine or on what else it does.

With --fit a quadratic in what is known of a problem before a run is fitted to their
logarithms (`mlopt.gd.plans.expected`), by method and loss, and printed as the lines of
`src/mlopt/prices/passes.csv`: by the fewest quantities, and the least penalty, with
which groups left out are foreseen about as well as with any, drawn and real ones
counting alike; a table is in one group. A kind of rows has lines of its own where these
foresee it clearly better. Another one is fitted to what these were off by, so that it
covers four of five, drawn and real. Judge it by `foresight.py`, on fresh seeds.

usage: passes.py FILE [--seed 0] [--drawn 600] [--real 400] [--stop gap|gradient] [--fit]
    [--losses logistic,squared_hinge,squared]
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import warnings
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice, product
from pathlib import Path
from unittest.mock import patch

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # what this one sees is written here
warnings.filterwarnings("ignore")

import datasets
import foresight
import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_svmlight_file
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import RidgeCV

import mlopt
from mlopt.cluster import executor
from mlopt.errors import MloptError
from mlopt.gd import estimator_base, logistic, svm
from mlopt.gd.plans.expected import (
    ANY,
    KINDS,
    QUANTITIES,
    kind_of,
    quantities,
    terms,
)
from mlopt.gd.plans.look import Look, rarest
from mlopt.gd.plans.methods import BY_NAME
from mlopt.gd.plans.outline import Outline
from mlopt.gd.pricing import Shape
from mlopt.rows import Rows

STOPS = ("gap", "gradient")
COMMON = ("lbfgs", "primal-coordinate-descent")
NEWTON = ("newton-cholesky", "dual-newton")
METHODS = {
    "logistic": (*COMMON, *NEWTON, "newton-cg"),
    "squared_hinge": (*COMMON, *NEWTON, "newton-cg", "dual-coordinate-descent"),
    "squared": (*COMMON, "sparse_cg", "sketched_cg"),
}
DUAL = "dual-coordinate-descent"
_SOLVERS = {name: {"solver": name} for name in ("lbfgs", *NEWTON)}
METHODS_OF = {
    "logistic": _SOLVERS | {"newton-cg": {}},
    "multinomial": _SOLVERS,
    "squared_hinge": {
        name: {"dual": name == DUAL} for name in ("lbfgs", *NEWTON, "newton-cg", DUAL)
    },
    "hinge": {DUAL: {"loss": "hinge"}},
}
"""Of estimators: parameters that make them take a method, by loss."""
ESTIMATORS = {
    loss: mlopt.LinearSVC if "hinge" in loss else mlopt.LogisticRegression
    for loss in METHODS_OF
}
VALUES, SECONDS, WIDEST, MOST = 4e6, 8.0, 1200, 1000
"""Stored values of a problem at most, seconds of a run, unknowns that Newton factors, and
passes of an estimator."""
WIDE, LOW, HIGH = 0.25, (1.7, 3.0), 4.0
"""The share of drawn problems with more columns than rows; logarithms to base 10 of their
rows, and of their columns at most."""
TEXT = 0.5
"""The share of drawn sparse problems whose rows are weighted, and have length one, as those
of texts."""
VOCABULARY, WORDS = (3.0, 4.8), (1.0, 2.2)
"""Of half of these, logarithms to base 10 of their columns, and of values in a row."""
MANY = 0.5
"""Of logistic problems of estimators: the share with more classes than two."""
FOLDS, FEWEST, COVERED = 8, 30, 0.8
"""Of problems left out; problems of a fit; the share that its doubt covers."""
OF_A_KIND = 60
"""Problems of a kind of rows that are fitted by themselves: some for each quantity."""
LEAST = 0.1
"""Of a logarithm: what is always doubted."""
RARE = 0.02
"""The share of problems beyond either end of what counts as seen."""
PENALTIES = np.logspace(-1, 3, 9)
USED = [
    np.isin(QUANTITIES, [*QUANTITIES[:7], *more])
    for more in (["rare"], ["rare", "scaled_alike", "scaled_least"], QUANTITIES)
]
"""Sets of quantities: as rows are, as columns of one scale are, too, and all of them."""
ALIKE = 1.05
"""What errors may differ by that count as equal."""


FIELDS = 0.5
"""The share of drawn sparse problems whose columns are levels of fields, one a row each."""


def fields(rng, problem):
    """Columns that are about as common as each other: categories, hashed words."""
    count, levels = (int(10 ** rng.uniform(*both)) for both in ((0.6, 2.0), (0.7, 3.0)))
    n = int(min(10 ** rng.uniform(2.7, 4.7), VALUES / count))
    found = (levels * rng.random((n, count)) ** (1 + 2 * rng.random())).astype(np.int32)
    columns = (found + levels * np.arange(count, dtype=np.int32)).ravel()
    values = rng.random(n * count) if rng.random() < 0.5 else np.ones(n * count)
    rows = np.repeat(np.arange(n, dtype=np.int32), count)
    X = sp.csr_array((values, (rows, columns)), shape=(n, count * levels))
    d = X.shape[1]
    signal = X @ (rng.normal(size=d) * (rng.random(d) < 10 ** rng.uniform(-1.5, 0)))
    signal = signal / max(float(signal.std()), 1e-12)
    signal += 10 ** rng.uniform(-1, 0.3) * rng.normal(size=n)
    if problem.loss != "squared":
        signal = (signal > np.quantile(signal, 1 - problem.share)).astype(int)
        signal[:2] = (0, 1)
    return X, signal


def drawn(rng):
    """A problem as `foresight.py` draws it: (name, X, y, loss, l2, gap)."""
    problem = foresight.draw(rng, VALUES)
    if problem.density < 1 and rng.random() < FIELDS:
        X, y = fields(rng, problem)
        return "drawn", X, y, problem.loss, problem.l2, problem.tolerance
    if rng.random() < WIDE:
        n = 10 ** rng.uniform(*LOW)
        d = 10 ** rng.uniform(np.log10(n), min(HIGH, np.log10(VALUES / n)))
        problem = replace(problem, n=int(n), d=int(d), density=1.0)
    text = problem.density < 1 and rng.random() < TEXT
    if text and rng.random() < 0.5:
        d, each = (10 ** rng.uniform(*both) for both in (VOCABULARY, WORDS))
        n = min(10 ** rng.uniform(2.7, 4.5), VALUES / each)
        problem = replace(problem, n=int(n), d=int(d), density=min(each / d, 0.9))
    X, y = foresight.rows_of(problem)
    if text:
        X = sp.csr_array(TfidfTransformer().fit_transform(X))
    return "drawn", X, y, problem.loss, problem.l2, problem.tolerance


def tables():
    """Real ones by name: (X, y), of two classes or a few."""
    folder, found = datasets.FOLDER, {}
    cancer, digits = load_breast_cancer(), load_digits()
    found["cancer"] = cancer.data, cancer.target
    found["digits"] = digits.data, digits.target
    for name, header in (
        ("covtype/covtype.csv", 0), ("spambase/spambase.data", None),
        ("california_housing/housing.csv", 0), ("letter/letter-recognition.data", None),
        ("diamonds/diamonds.csv", 0), ("adult/adult.data", None),
    ):  # fmt: skip
        if (file := folder / f"{name}.gz").exists():
            found[name.partition("/")[0]] = read(file, header)
    for name in ("a9a/a9a.gz", "agaricus/agaricus.txt.train.gz"):
        if (file := folder / name).exists():
            X, y = load_svmlight_file(str(file))
            found[name.partition("/")[0]] = sp.csr_array(X), (y > 0).astype(int)
    if (file := folder / "imdb/imdb_train.jsonl.gz").exists():
        with gzip.open(file, "rt") as lines:  # in order of their labels
            reviews = [json.loads(line) for line in islice(lines, 0, None, 4)]
        X = TfidfVectorizer(min_df=3).fit_transform([one["text"] for one in reviews])
        found["imdb"] = sp.csr_array(X), np.array([int(one["label"]) for one in reviews])
    return found


def read(file: Path, header):
    """Numbers and one-hot columns; classes by the last column, its median or its values."""
    table = pd.read_csv(file, nrows=60_000, header=header)
    if "letter" in file.name:
        table = table.iloc[:, ::-1]
    y = table.iloc[:, -1]
    many = y.dtype != object and y.nunique() > 30
    y = (y > y.median()) if many else y.astype("category").cat.codes
    X = pd.get_dummies(table.iloc[:, :-1]).astype(float).fillna(0)
    return X.to_numpy(), y.to_numpy().astype(int)


def part(name, X, y, rng):
    """A problem of some rows and columns of a table; None where it is too large."""
    n = int(min(X.shape[0], 10 ** rng.uniform(2.7, 4.6)))
    d = int(min(X.shape[1], 10 ** rng.uniform(0.7, np.log10(X.shape[1]) + 0.5)))
    rows = np.sort(rng.permutation(X.shape[0])[:n])
    X, y = X[rows][:, np.sort(rng.permutation(X.shape[1])[:d])], y[rows]
    if not sp.issparse(X):
        if rng.random() < 0.5:
            X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
        if rng.random() < 0.3:
            X = X * np.exp(rng.normal(size=d))
    loss = str(rng.choice(foresight.LOSSES))
    if loss == "squared":
        y = y + 0.1 * rng.normal(size=n)
    elif len(np.unique(y)) < 2:
        return None
    if (X.nnz if sp.issparse(X) else X.size) > VALUES:
        return None
    return name, X, y, loss, 10 ** rng.uniform(-7, -2), 10.0 ** rng.integers(-6, -1)


def split(X, y, rng):
    """More classes of drawn rows: each of two in halves, by a few columns."""
    side = X @ (rng.normal(size=X.shape[1]) * (rng.random(X.shape[1]) < 0.3))
    return 2 * y + (side > np.median(side))


def too_large(method, n, d, columns=1):
    """Whether it would factor more than it is for."""
    unknowns = {NEWTON[0]: d, NEWTON[1]: n if n < d else np.inf}.get(method, 0)
    return unknowns * columns > WIDEST


def look(name, X, y, loss, l2, gap):
    """What every method took: a record."""
    found = {}
    for method in METHODS[loss]:
        if too_large(method, *X.shape):
            continue
        task = mlopt.gd.Task(loss, l2=l2)
        try:
            plan = mlopt.gd.plan(
                task, X, y, tolerance=gap, n_jobs=1, methods=[method], speculation=False
            )
        except MloptError:
            continue  # not for such rows
        result = plan.chosen.run(time_limit=SECONDS)
        found[method] = result.n_iter, result.converged
    return record(name, (X, y), loss, l2, gap, "gap", found)


def look_at_estimators(name, X, y, loss, l2, tol):
    """What the methods of an estimator took: a record."""
    if loss == "squared":
        loss, y = "hinge", (y > np.median(y)).astype(int)
    columns = len(np.unique(y))
    columns = columns if columns > 2 else 1
    if columns > 1 and loss == "logistic":
        loss = "multinomial"
    kind, found, first = ESTIMATORS[loss], {}, 1.0
    for method, given in METHODS_OF[loss].items():
        if too_large(method, *X.shape, columns):
            continue
        model = kind(C=1 / (X.shape[0] * l2), tol=tol, max_iter=MOST, **given)
        # Not all have names that users may give them.
        alone = patch.object(logistic, "SOLVERS", (method,))
        with alone, patch.dict(svm._NAMES, {False: (method,)}):
            model.fit(X, y)
            first = min(first, first_of(model, X, y))
        steps = int(np.max(model.n_iter_))
        found[method] = steps + BY_NAME[method].free, steps < MOST
    return record(name, (X, y), loss, l2, tol, "gradient", found, columns, first)


def first_of(model, X, y):
    """What the ``tol`` of an estimator is relative to."""
    with closing(executor()) as where:
        rows = estimator_base.read(model, X, y, None, executor=where, numeric=False)
        return model._asks(model._problem(rows))[1].first


def record(name, data, loss, l2, tol, stop, found, columns=1, first=1.0):
    """A problem and what was found, for a file."""
    X, y = data
    n, d = X.shape
    counts = np.unique_counts(y).counts if loss != "squared" else np.ones(2)
    nonzero = int(X.nnz) if sp.issparse(X) else n * d
    seen = Look.of(Rows.of(X), rarest(counts))
    return {
        "src": name, "stop": stop, "columns": columns, "loss": loss, "l2": float(l2),
        "tolerance": float(tol), "first": float(first), "n": n, "d": d, "nnz": nonzero,
        "look": asdict(seen), "sparse": bool(sp.issparse(X)), "passes": found,
    }  # fmt: skip


def collect(file: Path, seed: int, count: int, real: int, stop: str):
    """Solve problems and append what they took to a file."""
    rng, known = np.random.default_rng([seed, 1]), list(tables().items())
    problems = [lambda: drawn(rng)] * count
    for number in range(real):
        name, (X, y) = known[number % len(known)]
        problems.append(lambda name=name, X=X, y=y: part(name, X, y, rng))
    with file.open("a") as out:
        for problem in problems:
            if (found := problem()) is None:
                continue
            name, X, y, loss, *rest = found
            many = stop == "gradient" and loss == "logistic" and rng.random() < MANY
            if many and name == "drawn":
                y = split(X, y, rng)
            elif loss != "squared" and not many:
                y = (y == np.bincount(y).argmax()).astype(int)
            how = look if stop == "gap" else look_at_estimators
            out.write(json.dumps(how(name, X, y, loss, *rest)) + "\n")
            out.flush()


def fit(records):
    """Print the lines of passes.csv."""
    head = [f"{end}.{name}" for end in ("low", "high") for name in QUANTITIES]
    first, second = np.triu_indices(len(QUANTITIES))
    pairs = [f"{QUANTITIES[i]}*{QUANTITIES[j]}" for i, j in zip(first, second, strict=True)]
    what = [
        f"{of}.{term}" for of in ("passes", "doubt") for term in ("1", *QUANTITIES, *pairs)
    ]
    print(",".join(["method", "loss", "stop", "rows", *head, *what]))
    kinds = {(r["loss"], r["stop"], m): None for r in records for m in r["passes"]}
    for loss, stop, method in sorted(kinds):
        own = [r for r in records if r["loss"] == loss and r["stop"] == stop]
        own = [r for r in own if took(r, method) > 0]
        if len(own) >= FEWEST:
            line(method, loss, stop, own)


def took(record, method):
    """Passes; twice as many where these were not enough."""
    passes, ended, *_ = record["passes"].get(method, (0, True))
    return passes if ended else 2 * passes


def asked(record, method):
    """Of the gap or the gradient; of a dual, whose violations count, as it was given."""
    dual = BY_NAME[method].bounds
    return record["tolerance"] * (1.0 if dual else record.get("first", 1.0))


def line(method, loss, stop, own):
    """Fits, of all problems and of kinds of rows, and beside them on stderr how good."""
    every = Problems.of(own, method)
    every.told(method, loss, stop, ANY)
    kinds = np.array([kind_of(outline(one).shape) for one in own])
    for kind in KINDS:
        some = every.take(kinds == kind)
        if len(some.logs) < OF_A_KIND:
            continue
        if ALIKE * some.error(some.off) < some.error(every.off[kinds == kind]):
            some.told(method, loss, stop, kind)


@dataclass(frozen=True, eq=False)
class Problems:
    """Quantities (m, 12), logarithms of passes (m,), and groups (m,) to leave out."""

    found: np.ndarray
    logs: np.ndarray
    groups: np.ndarray

    @staticmethod
    def of(records, method):
        found = np.array([
            quantities(outline(one), asked(one, method), Look(**one["look"]))
            for one in records
        ])  # fmt: skip
        names = [one["src"] for one in records]
        tables = sorted(set(names))
        groups = [
            number % FOLDS if name == "drawn" else FOLDS + tables.index(name)
            for number, name in enumerate(names)
        ]
        logs = np.log([took(one, method) for one in records])
        return Problems(found, logs, np.array(groups))

    def take(self, which):
        """Some of them."""
        return Problems(self.found[which], self.logs[which], self.groups[which])

    @property
    def sources(self):
        """Which are drawn, and which are real: those of them that there are."""
        drawn = self.groups < FOLDS
        return [one for one in (drawn, ~drawn) if one.any()]

    def error(self, off):
        """Of logarithms, drawn and real ones counting alike."""
        return np.mean([off[one].mean() for one in self.sources])

    @cached_property
    def best(self):
        """Quantities and penalty, the fewest and the least that do, and what they are off
        by."""
        tried = [
            (used, penalty, left_out(self.found, self.logs, self.groups, penalty, used))
            for used, penalty in product(USED, PENALTIES)
        ]
        enough = ALIKE * min(self.error(off) for *_, off in tried)
        return next(one for one in tried if self.error(one[2]) <= enough)

    @property
    def off(self):
        """By how much logarithms are off (m,), each where its group was left out."""
        return self.best[2]

    def told(self, method, loss, stop, kind):
        """Print the line."""
        used, penalty, off = self.best
        low, high, model = fitted(self.found, self.logs, penalty, used)
        # Of those that are far off, the same quadratic says where they are.
        doubt = fitted(self.found, off, PENALTIES, used)[2]
        wide = np.maximum(terms(self.found, low, high) @ doubt, LEAST)
        times = max(np.quantile((off / wide)[one], COVERED) for one in self.sources)
        numbers = (*low, *high, *model, *(times * doubt))
        print(",".join([method, loss, stop, kind, *(f"{one:.4g}" for one in numbers)]))
        shares = [f"{np.mean(off[one] < np.log(2)):.0%}" for one in self.sources]
        text = f"{len(off)} problems, within 2x: drawn and real {' and '.join(shares)}"
        by = f"{sum(used)} quantities, penalty {penalty:g}"
        print(f"# {method}, {loss}, {stop}, {kind}: {text}, {by}", file=sys.stderr)


def left_out(found, logs, groups, penalty, used):
    """By how much logarithms are off where others were fitted: one group after another."""
    off = np.empty(len(logs))
    for group in np.unique(groups):
        out = groups == group
        low, high, model = fitted(found[~out], logs[~out], penalty, used)
        off[out] = np.abs(logs[out] - terms(found[out], low, high) @ model)
    return off


def outline(record):
    """Of a record."""
    shape = Shape(
        n=record["n"], d=record["d"], columns=record["columns"], nonzero=record["nnz"],
        itemsize=8, sparse=record["sparse"], blocks=1,
    )  # fmt: skip
    return Outline(record["loss"], shape, l2=record["l2"])


def fitted(found, logs, penalties, used):
    """Lowest and highest of each quantity, no range of one not used, and coefficients."""
    low, high = np.quantile(found, (RARE, 1 - RARE), axis=0) * used
    inputs = terms(found, low, high)
    model = RidgeCV(np.atleast_1d(penalties)).fit(inputs[:, 1:], logs)
    return low, high, np.concatenate([[model.intercept_], model.coef_])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--drawn", type=int, default=600)
    parser.add_argument("--real", type=int, default=400)
    parser.add_argument("--stop", choices=STOPS, default="gap")
    parser.add_argument("--losses", default=",".join(foresight.LOSSES), help="to draw from")
    parser.add_argument("--fit", action="store_true")
    options = parser.parse_args()
    foresight.LOSSES = tuple(options.losses.split(","))
    if options.fit:
        fit([json.loads(text) for text in options.file.read_text().splitlines()])
    else:
        collect(*(getattr(options, n) for n in ("file", "seed", "drawn", "real", "stop")))
