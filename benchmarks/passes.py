"""How many passes methods take: problems drawn and real, and the fit of what is expected.

Problems are those that `foresight.py` draws, by seeds of its own, a share of them made wide
and of the sparse ones a share with rows of length one, and parts of the tables that
`tables` finds: some rows, some columns, some rescaled, any loss, penalty and gap; or, for
the estimators, a gradient; with --texts, all drawn rows are as those of texts. Each method
that iterates solves each of them; what has not ended in the time, or in the passes, counts
as twice the passes so far. Passes do not depend on the machine or on what else it does.

With --fit a folder, that of `src/mlopt/prices/passes`, gets the problems of FILE, and for
each method and loss what `mlopt.gd.plans.expected` needs to know to foresee one from those
that are nearest: lengths, fitted to logarithms of passes, and how many deviations cover
four of five where groups are left out, drawn and real ones counting alike; a table is in
one group. Judge it by `foresight.py`, on fresh seeds.

usage: passes.py FILE [--seed 0] [--drawn 600] [--real 400] [--stop gap|gradient]
    [--losses logistic,squared_hinge,squared] [--texts]
       passes.py FILE --fit FOLDER
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import warnings
from contextlib import closing
from dataclasses import asdict, replace
from itertools import islice
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
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

import mlopt
from mlopt.cluster import executor
from mlopt.errors import MloptError
from mlopt.gd import estimator_base, logistic, svm
from mlopt.gd.plans.expected import (
    QUANTITIES,
    RARE,
    Scale,
    Seen,
    quantities,
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
    "logistic": (*COMMON, *NEWTON, "newton-cg", "dual-logistic"),
    "squared_hinge": (*COMMON, *NEWTON, "newton-cg", "dual-coordinate-descent"),
    "squared": (*COMMON, "sparse_cg", "sketched_cg"),
}
DUAL = "dual-coordinate-descent"
_SOLVERS = {name: {"solver": name} for name in ("lbfgs", *NEWTON)}
METHODS_OF = {
    "logistic": _SOLVERS | {"newton-cg": {}, "dual-logistic": {}},
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
KEPT, FITTED, LENGTHS, NOISE, PLACES, NARROW = 1500, 500, (0.3, 100.0), (0.02, 1.0), 2, 0.01
"""Problems of a loss and a stop that are kept, those of them that lengths are fitted to,
lengths and noise that are tried, in standard deviations and of the variance, digits of
quantities that are kept, and a deviation that is none."""


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


def drawn(rng, texts):
    """A problem as `foresight.py` draws it: (name, X, y, loss, l2, gap)."""
    sparse = {"share": 1.0} if texts else {}
    problem = foresight.draw(rng, VALUES, **sparse)
    if problem.density < 1 and not texts and rng.random() < FIELDS:
        X, y = fields(rng, problem)
        return "drawn", X, y, problem.loss, problem.l2, problem.tolerance
    if not texts and rng.random() < WIDE:
        n = 10 ** rng.uniform(*LOW)
        d = 10 ** rng.uniform(np.log10(n), min(HIGH, np.log10(VALUES / n)))
        problem = replace(problem, n=int(n), d=int(d), density=1.0)
    text = problem.density < 1 and (texts or rng.random() < TEXT)
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


def collect(file: Path, seed: int, count: int, real: int, stop: str, *, texts: bool):
    """Solve problems and append what they took to a file."""
    rng, known = np.random.default_rng([seed, 1]), list(tables().items())
    problems = [lambda: drawn(rng, texts)] * count
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


def fit(records, folder: Path):
    """Write the files of `mlopt/prices/passes`."""
    rng, lines = np.random.default_rng(0), []
    for loss, stop in sorted({(one["loss"], one["stop"]) for one in records}):
        own = [r for r in records if r["loss"] == loss and r["stop"] == stop]
        own = [own[i] for i in sorted(rng.permutation(len(own))[:KEPT])]
        methods = sorted({name for one in own for name in one["passes"]})
        solved = {m: [one for one in own if took(one, m) > 0] for m in methods}
        methods = [name for name in methods if len(solved[name]) >= FEWEST]
        lines += [line(name, loss, stop, solved[name]) for name in methods]
        rows = []
        for one in own:
            # Duals may be asked for another number, which makes another row.
            for tol in dict.fromkeys(asked(one, name) for name in methods):
                alike = {name for name in methods if asked(one, name) == tol}
                passes = [
                    took(one, name) or "" if name in alike else "" for name in methods
                ]
                if any(passes):
                    found = np.round(quantities_of(one, alike.pop()), PLACES) + 0.0
                    rows.append(",".join((*(f"{q:g}" for q in found), *map(str, passes))))
        head = ",".join((*QUANTITIES, *methods))
        (folder / f"{loss}.{stop}.csv").write_text("\n".join((head, *rows)) + "\n")
    head = ",".join(("method", "loss", "stop", "variance", "noise", "doubt", *QUANTITIES))
    (folder / "scales.csv").write_text("\n".join((head, *lines)) + "\n")


def took(record, method):
    """Passes; twice as many where these were not enough."""
    passes, ended, *_ = record["passes"].get(method, (0, True))
    return passes if ended else 2 * passes


def asked(record, method):
    """Of the gap or the gradient; of a dual, whose violations count, as it was given."""
    dual = BY_NAME[method].bounds
    return record["tolerance"] * (1.0 if dual else record.get("first", 1.0))


def quantities_of(record, method):
    """Of a record, as the planner sees them for a method."""
    return quantities(outline(record), asked(record, method), Look(**record["look"]))


def line(method, loss, stop, own):
    """Of a method, a `Scale` of `mlopt.gd.plans.expected`; on stderr, how good it is."""
    found = np.array([quantities_of(one, method) for one in own])
    found = np.clip(found, *np.quantile(found, (RARE, 1 - RARE), axis=0))
    logs, spread = np.log([took(one, method) for one in own]), found.std(axis=0)
    spread[spread < NARROW] = 1.0  # the same for all
    kernel = ConstantKernel(1.0, (0.1, 100.0)) * Matern(
        [3.0] * len(spread), LENGTHS, nu=1.5
    )
    rest = logs - logs.mean()
    some = np.random.default_rng(0).permutation(len(own))[:FITTED]
    process = GaussianProcessRegressor(kernel + WhiteKernel(0.1, NOISE))
    process.fit((found / spread)[some], rest[some] / rest.std())
    inner, noise = process.kernel_.k1, process.kernel_.k2.noise_level
    squares = rest.var()
    scale = Scale(
        inner.k1.constant_value * squares,
        noise * squares,
        1.0,
        inner.k2.length_scale * spread,
    )
    names = [one["src"] for one in own]
    tables = sorted(set(names))
    groups = np.array([
        number % FOLDS if name == "drawn" else FOLDS + tables.index(name)
        for number, name in enumerate(names)
    ])  # fmt: skip
    off, wide = np.empty((2, len(own)))
    for group in np.unique(groups):
        out = groups == group
        seen = Seen.of(found[~out], logs[~out], scale)
        middle, wide[out] = np.transpose([seen.foresee(one) for one in found[out]])
        off[out] = np.abs(logs[out] - middle)
    sources = [one for one in (groups < FOLDS, groups >= FOLDS) if one.any()]
    shares = np.linspace(0.0, 1.0, 101)  # so that drawn and real ones count alike
    doubt = np.quantile(
        [np.quantile((off / wide)[one], shares) for one in sources], COVERED
    )
    shares = [f"{np.mean(off[one] < np.log(2)):.0%}" for one in sources]
    text = f"{len(off)} problems, within 2x: drawn and real {' and '.join(shares)}"
    print(f"# {method}, {loss}, {stop}: {text}", file=sys.stderr, flush=True)
    numbers = (scale.variance, scale.noise, doubt, *scale.lengths)
    return ",".join([method, loss, stop, *(f"{one:.4g}" for one in numbers)])


def outline(record):
    """Of a record."""
    shape = Shape(
        n=record["n"], d=record["d"], columns=record["columns"], nonzero=record["nnz"],
        itemsize=8, sparse=record["sparse"], blocks=1,
    )  # fmt: skip
    return Outline(record["loss"], shape, l2=record["l2"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--drawn", type=int, default=600)
    parser.add_argument("--real", type=int, default=400)
    parser.add_argument("--stop", choices=STOPS, default="gap")
    parser.add_argument("--losses", default=",".join(foresight.LOSSES), help="to draw from")
    parser.add_argument("--texts", action="store_true", help="rows as of texts alone")
    parser.add_argument("--fit", type=Path, help="a folder for what was found")
    options = parser.parse_args()
    foresight.LOSSES = tuple(options.losses.split(","))
    if options.fit:
        lines = options.file.read_text().splitlines()
        fit([json.loads(text) for text in lines], options.fit)
    else:
        given = (getattr(options, n) for n in ("file", "seed", "drawn", "real", "stop"))
        collect(*given, texts=options.texts)
