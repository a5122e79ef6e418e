"""A `Cacher` pins rows: made once, whatever the rules would keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import mlopt
from mlopt.errors import InputError
from mlopt.pipeline.fits.record import Record
from mlopt.pipeline.fits.registry import RECORDS
from mlopt.pipeline.library.util import Cacher, Identity

N, CHUNK = 6000, 1500
X = np.random.default_rng(0).normal(size=(N, 5))
Y = (X[:, 0] + 0.3 * X[:, 1] ** 2 > 0).astype(int)


class Counting(TransformerMixin, BaseEstimator):
    """Doubles numbers, and writes down how many rows it was given."""

    def __init__(self, log: str) -> None:
        self.log = log

    def fit(self, X: Any, y: Any = None) -> Counting:
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        with Path(self.log).open("a") as file:
            file.write(f"{len(X)}\n")
        return 2.0 * X


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where rows are counted; the class counts as one that goes row by row."""
    monkeypatch.setitem(RECORDS, Counting, Record(row_wise=True))
    path = tmp_path / "rows"
    path.touch()
    return path


def large_calls(log: Path) -> int:
    """How many whole chunks were transformed: samples are smaller."""
    return sum(int(line) == CHUNK for line in log.read_text().split())


def fitted(log: Path, pin: Any, **settings: Any) -> Any:
    steps = [Counting(str(log)), pin, LogisticRegression(C=0.7)]
    lazy = da.from_array(X, (CHUNK, 5))
    return mlopt.make_pipeline(*steps, **settings).fit(lazy, da.from_array(Y, CHUNK))


def test_pinned_rows_are_made_once_a_block_where_nothing_else_is_kept(log: Path) -> None:
    pinned = fitted(log, Cacher(), optimize=False)
    once = large_calls(log)
    log.write_text("")
    unpinned = fitted(log, Identity(), optimize=False)

    assert once == N // CHUNK
    assert large_calls(log) > 2 * once
    assert np.allclose(pinned[-1].coef_, unpinned[-1].coef_, rtol=1e-6)


def test_the_plan_says_what_is_pinned(log: Path) -> None:
    lazy = da.from_array(X, (CHUNK, 5))
    pipe = mlopt.make_pipeline(Counting(str(log)), Cacher(), LogisticRegression())
    plan = pipe.explain(lazy, da.from_array(Y, CHUNK))

    (cacher,) = (choice for choice in plan.choices if "Cacher" in choice.operator)
    assert cacher.notes == ("kept in memory: output (234 KiB)",)
    assert cacher.notes[0] in str(plan)


def test_rows_that_are_pinned_must_fit() -> None:
    lazy = da.from_array(X, (CHUNK, 5))
    pipe = mlopt.make_pipeline(Cacher(), LogisticRegression(), memory_budget=20_000)
    with pytest.raises(InputError, match=r"pinned by a `Cacher`.*take 234 KiB"):
        pipe.fit(lazy, da.from_array(Y, CHUNK))


@pytest.mark.parametrize("rows", [400, 3000, N])
def test_a_cacher_changes_no_prediction(rows: int) -> None:
    ours = mlopt.make_pipeline(Cacher(), LogisticRegression(C=0.3, tol=1e-8))
    theirs = make_pipeline(LogisticRegression(C=0.3, tol=1e-8))
    ours.fit(X[:rows], Y[:rows])
    theirs.fit(X[:rows], Y[:rows])

    assert np.allclose(ours[-1].coef_, theirs[-1].coef_, rtol=1e-3, atol=1e-5)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.999
