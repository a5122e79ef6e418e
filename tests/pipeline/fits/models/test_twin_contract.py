"""What every twin owes: scikit-learn's fitted estimator, found by another algorithm."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.svm import LinearSVC
from tests.pipeline.fits.models.twin_cases import Case, cases
from tests.pipeline.fits.same import learnt

from mlopt.cluster import Threads
from mlopt.pipeline.fits.few import Few
from mlopt.pipeline.fits.models.table import MODELS
from mlopt.pipeline.fits.models.twin import Twin
from mlopt.pipeline.fits.telling import listening
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats

CASES = list(cases())
every = pytest.mark.parametrize("case", CASES, ids=str)

NEWTON = ("newton-cg", LogisticRegression)
_COUNTS = ("n_iter_", "solver_")
"""How a solution was found is the solver's own affair; that it is there is not."""


def ours(case: Case) -> Any:
    with threads() as where:
        rows = Rows.of(case.X, executor=where, block_rows=70)
        return case.way.fit(case.estimator, rows, case.y, case.weight)


@contextmanager
def threads() -> Iterator[Threads]:
    where = Threads(2)
    yield where
    where.close()


def theirs(case: Case, dtype: Any) -> Any:
    """scikit-learn's own fit."""
    beside = {} if case.weight is None else {"sample_weight": case.weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(case.estimator).fit(case.X.astype(dtype), case.y, **beside)


def tolerance(case: Case) -> float:
    # LIBLINEAR computes in doubles whatever the rows are, and so gives coefficients.
    single = case.dtype == "float32" and not isinstance(case.estimator, LinearSVC)
    return 2e-3 if single else 1e-5


@every
def test_a_twin_is_what_scikit_learn_would_have_fitted(case: Case) -> None:
    found, wanted = ours(case), theirs(case, np.float64)
    plain = wanted if case.dtype == "float64" else theirs(case, case.dtype)
    assert type(found) is type(wanted)
    for name, value in learnt(plain).items():
        mine = getattr(found, name)
        if name not in _COUNTS:
            assert np.asarray(mine).dtype == np.asarray(value).dtype, name
            # In float64, so that only our own error is seen.
            assert_close(name, mine, getattr(wanted, name), tolerance(case))
    assert_predicts_alike(case, pickle.loads(pickle.dumps(found)), wanted)


def assert_close(name: str, found: Any, wanted: Any, rtol: float) -> None:
    assert np.shape(found) == np.shape(wanted), name
    if np.asarray(wanted).dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
        return
    scale = float(np.abs(wanted).max(initial=1e-3))
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * scale, err_msg=name)


def assert_predicts_alike(case: Case, found: Any, wanted: Any) -> None:
    verb = "transform" if case.y is None else "predict"
    given, expected = getattr(found, verb)(case.X), getattr(wanted, verb)(case.X)
    if np.asarray(expected).dtype.kind == "f":
        np.testing.assert_allclose(given, expected, atol=50 * tolerance(case))
    else:
        assert np.mean(given == expected) > 0.98


def test_cost_and_passes_are_positive_and_finite() -> None:
    for case in CASES:
        cost = case.way.cost(case.estimator, case.stats, Resources())
        assert cost is not None, str(case)
        assert 0 < cost.seconds(Resources()) < np.inf, str(case)
        assert 1 <= case.way.passes(case.estimator, case.stats) < np.inf, str(case)


def test_every_twin_has_cases() -> None:
    assert {case.way for case in CASES} == {way for way in MODELS if isinstance(way, Twin)}


@pytest.mark.slow
def test_fitted_models_load_without_mlopt(tmp_path: Path) -> None:
    by_kind = {type(case.estimator): case for case in CASES if case.layout == "dense"}
    path = tmp_path / "models.pickle"
    path.write_bytes(pickle.dumps([(ours(c), c.X[:5]) for c in by_kind.values()]))
    assert not any(learnt(case.estimator) for case in by_kind.values())
    program = f"""
import pickle, sys
sys.modules["mlopt"] = sys.modules["dask"] = None
for model, X in pickle.load(open({str(path)!r}, "rb")):
    getattr(model, "predict" if hasattr(model, "predict") else "transform")(X)
"""
    subprocess.run([sys.executable, "-I", "-c", program], check=True)


def test_names_of_columns_are_those_of_the_rows() -> None:
    case = next(case for case in CASES if not sp.issparse(case.X))
    frame = pd.DataFrame(case.X, columns=[f"c{i}" for i in range(case.X.shape[1])])
    with threads() as where:
        rows = Rows.of(frame, executor=where)
        found = case.way.fit(case.estimator, rows, case.y, None)
    np.testing.assert_array_equal(found.feature_names_in_, list(frame.columns))


def test_passes_on_a_sample_foretell_those_on_all_rows() -> None:
    random = np.random.default_rng(5)
    X = random.normal(size=(6000, 40)) @ random.normal(size=(40, 40))
    y = (X @ random.normal(size=40) + 20 * random.normal(size=len(X)) > 0).astype(int)
    told = 0
    for way in MODELS:
        for estimator in (LogisticRegression(), Ridge(), RidgeClassifier()):
            if not isinstance(way, Twin) or type(estimator) not in way.kinds:
                continue
            guess = way.speculate(estimator, Few(X[:600], y[:600]), Stats(*X.shape))
            priced = way.priced(estimator, Stats(*X.shape), Resources())
            if guess is None or isinstance(priced, str):
                continue
            passes, doubt = guess
            if passes > way.most(estimator):
                continue  # a pipeline leaves it for another
            fitted = way.fit(estimator, Rows.of(X), y, None)
            taken = np.max(fitted.n_iter_)
            off = max(doubt, 2.0)
            assert taken / off <= passes <= off * taken, (way.name, passes, taken)
            told += 1
    assert told == 5


def test_a_solver_that_disappoints_is_left_for_another_and_the_plan_says_so() -> None:
    random = np.random.default_rng(5)
    X = random.normal(size=(6000, 40)) @ random.normal(size=(40, 40))
    y = (X @ random.normal(size=40) + 20 * random.normal(size=len(X)) > 0).astype(int)
    way = next(one for one in MODELS if (one.name, one.kinds[0]) == NEWTON)
    assert isinstance(way, Twin)
    with listening() as told:
        fitted = way.fit(LogisticRegression(), Rows.of(X), y, None)
    assert fitted.n_iter_ <= 100
    # Which others go on, and how many, is a matter of the speeds of this machine.
    assert told[0].startswith(f"took {fitted.n_iter_[0]} passes by newton-cg")
    assert ", and then " in told[0]
    named = clone(way.learner(LogisticRegression(), Rows.of(X))).set_params(solver="lbfgs")
    assert "by" not in named.fit(X, y).plan_.choices[0].notes[0]
