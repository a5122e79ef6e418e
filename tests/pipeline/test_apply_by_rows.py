"""What a fitted pipeline is applied to in blocks: where every step is known to allow it."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import dask.array as da
import numpy as np
import pytest
import sklearn
import sklearn.pipeline
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfVectorizer,
)
from sklearn.neural_network import BernoulliRBM
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mlopt
from mlopt.errors import InputError
from mlopt.pipeline.running import applying
from mlopt.plan import format_bytes

X = np.random.default_rng(0).normal(size=(6000, 3))
Y = (X[:, 0] > 0).astype(int)


class AboveMean(ClassifierMixin, BaseEstimator):
    """Looks at all rows it predicts."""

    def fit(self, X: Any, y: Any) -> AboveMean:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return (X[:, 0] > X[:, 0].mean()).astype(int)


class Above0(AboveMean):
    """Looks at each row by itself, and says so."""

    def predict(self, X: Any) -> Any:
        return (X[:, 0] > 0).astype(int)


mlopt.register(Above0, row_wise=True)


@pytest.mark.parametrize(
    "last", [AboveMean(), DummyClassifier(strategy="stratified", random_state=0)], ids=str
)
def test_a_model_that_looks_at_all_rows_is_given_all(last: Any) -> None:
    rows = np.sort(X, axis=0)  # blocks are unlike each other
    theirs = sklearn.pipeline.make_pipeline(StandardScaler(), last).fit(X, Y).predict(rows)
    pipe = mlopt.make_pipeline(StandardScaler(), last).fit(X, Y)
    assert np.array_equal(pipe.predict(rows), theirs)
    lazy = da.from_array(rows, chunks=(1500, 3))
    assert np.array_equal(np.asarray(pipe.predict(lazy)), theirs)


def test_what_draws_a_column_of_each_row_is_given_all_rows() -> None:
    rows = (np.random.default_rng(0).random((6000, 16)) > 0.5).astype(float)
    rbm = BernoulliRBM(n_components=4, n_iter=1, random_state=0)
    pipe = mlopt.Pipeline([("rbm", rbm)]).fit(rows)
    theirs = pipe.export()
    assert np.array_equal(pipe.score_samples(rows), theirs.score_samples(rows))


@pytest.mark.parametrize("given", [{}, {"with_mean": False}, {"with_std": False}], ids=str)
def test_small_numbers_are_scaled_to_the_last_bit(given: dict[str, bool]) -> None:
    far = (1e9 + 1000 * X).astype(np.float32)  # means that are no float32
    pipe = mlopt.make_pipeline(StandardScaler(**given)).fit(far)
    found = pipe.transform(da.from_array(far, chunks=(1500, 3))).compute()
    assert found.dtype == np.float32
    assert np.array_equal(found, pipe.export().transform(far))


@pytest.mark.parametrize(
    "step",
    [CountVectorizer(), TfidfVectorizer(), HashingVectorizer(n_features=16)],
    ids=str,
)
@pytest.mark.parametrize("interface", ["spmatrix", "sparray"])
def test_texts_become_the_sparse_rows_that_are_configured(
    step: Any, interface: str
) -> None:
    documents = ["red apple", "green pear", "red pear"] * 2000
    pipe = mlopt.Pipeline([("terms", step)]).fit(documents)
    with sklearn.config_context(sparse_interface=interface):
        found, theirs = pipe.transform(documents), pipe.export().transform(documents)
    assert type(found) is type(theirs)
    assert (found != theirs).nnz == 0


class OnCores(Above0):
    """Notes how many rows each call has."""

    calls: ClassVar[list[int]] = []

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def predict(self, X: Any) -> Any:
        if len(X) > 8:  # a few tell what comes out
            self.calls.append(len(X))
        return super().predict(X)


mlopt.register(OnCores, row_wise=True)


@pytest.mark.parametrize("n_jobs", [None, -1])
def test_a_model_on_several_cores_uses_them_for_all_rows(n_jobs: int | None) -> None:
    rows = np.tile(X, (10, 2))
    pipe = mlopt.make_pipeline(StandardScaler(), OnCores(n_jobs)).fit(rows, np.tile(Y, 10))
    OnCores.calls.clear()
    assert np.array_equal(pipe.predict(rows), (rows[:, 0] > rows[:, 0].mean()).astype(int))
    assert sum(OnCores.calls) == len(rows)
    assert (len(OnCores.calls) == 1) == (n_jobs == -1)


def test_a_model_that_is_declared_row_wise_predicts_lazily() -> None:
    pipe = mlopt.make_pipeline(StandardScaler(), Above0()).fit(X, Y)
    found = pipe.predict(da.from_array(X, chunks=(1500, 3)))
    assert isinstance(found, da.Array)
    assert np.array_equal(found.compute(), pipe.predict(X))


def by_maximum(rows: Any) -> Any:
    return rows / np.abs(rows).max(axis=0)


def test_rows_that_do_not_fit_are_not_gathered(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read: list[int] = []

    def block(rows: Any) -> Any:
        read.append(len(rows))
        return rows

    steps = [("part", FunctionTransformer(by_maximum)), ("last", DummyClassifier())]
    pipe = mlopt.Pipeline(steps).fit(X, Y)
    lazy = da.from_array(X, chunks=(1500, 3)).map_blocks(block, dtype=float, meta=X[:0])
    monkeypatch.setattr(applying, "memory_limit", lambda: X.nbytes - 1)
    says = r"`part`.*takes \d+ KiB.*or declare it"
    with pytest.raises(InputError, match=says) as refused:
        pipe.predict(lazy)
    with pytest.raises(InputError) as foreseen:
        pipe.explain(lazy, method="predict")
    assert str(foreseen.value) == str(refused.value)
    assert not read
    monkeypatch.setattr(applying, "memory_limit", lambda: X.nbytes)
    with caplog.at_level(logging.WARNING, "mlopt"):
        plan = pipe.explain(lazy, method="predict")
    assert not caplog.text
    gathered = f"all rows of X are gathered for `predict`, {format_bytes(X.nbytes)}"
    assert any("Step `part`" in note and gathered in note for note in plan.notes)
    assert len(pipe.predict(lazy)) == len(X)
