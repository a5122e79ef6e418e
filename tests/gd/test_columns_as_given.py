"""A CSC matrix is what methods that go from column to column read: it is used as it is."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import mlopt
from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.rows import Rows
from mlopt.rows.block import Block, as_csr
from mlopt.rows.columnwise import Columnwise

RNG = np.random.default_rng(0)
ROWS = sparse.random_array((300, 60), density=0.1, format="csr", rng=RNG)
y = ROWS @ RNG.normal(size=60) + 0.1 * RNG.normal(size=300)
MODELS = [
    mlopt.Lasso(alpha=1e-3),
    mlopt.ElasticNet(alpha=1e-3, positive=True),
    mlopt.LinearSVC(penalty="l1", loss="squared_hinge", dual=False),
    mlopt.LinearSVC(loss="hinge", random_state=0, max_iter=100_000),
]


def target(model: Any) -> Any:
    return y > 0 if isinstance(model, mlopt.LinearSVC) else y


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("make", [sparse.csc_array, sparse.csc_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fits_are_those_of_rows(model: Any, make: Any, dtype: Any) -> None:
    X = ROWS.astype(dtype)
    weights = np.r_[np.zeros(5), np.linspace(0.5, 2.0, 295)]
    for given in ((), (weights,)):
        there = model.fit(X, target(model), *given).coef_.copy()
        here = model.fit(make(X), target(model), *given).coef_
        np.testing.assert_array_equal(here, there)


def test_rows_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise AssertionError("rows were made")

    monkeypatch.setattr("mlopt.rows.columnwise.as_csr", fails)
    mlopt.Lasso(alpha=1e-3).fit(sparse.csc_array(ROWS), y)


@pytest.mark.parametrize("wide", [False, True])
def test_entries_in_any_order_and_twice_are_read_and_stay_as_they_are(wide: bool) -> None:
    once = sparse.csc_array(ROWS)
    index = np.int64 if wide else np.int32
    # Each value in two halves, each column from its end.
    places = np.concatenate([
        np.repeat(np.arange(a, b)[::-1], 2)
        for a, b in zip(once.indptr, once.indptr[1:], strict=False)
    ])  # fmt: skip
    arrays = once.data[places] / 2, once.indices[places].astype(index)
    pointers = 2 * once.indptr.astype(index)
    X = sparse.csc_array((*arrays, pointers), shape=once.shape)
    parts = X.data, X.indices, X.indptr
    before = [part.copy() for part in parts]
    for part in parts:
        part.flags.writeable = False
    found = mlopt.Lasso(alpha=1e-3).fit(X, y).coef_
    for part, old in zip(parts, before, strict=True):
        np.testing.assert_array_equal(part, old)
    there = mlopt.Lasso(alpha=1e-3).fit(ROWS, y).coef_
    np.testing.assert_allclose(found, there, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_named_by_its_column(bad: float) -> None:
    X = sparse.csc_array(ROWS)
    X.data[X.indptr[7]] = bad
    with pytest.raises(InputError, match="column number 7 has"):
        mlopt.Lasso().fit(X, y)


def test_rows_of_columns_are_rows_as_all_others() -> None:
    rows = Rows.by_columns(sparse.csc_array(ROWS), executor=Threads(1))
    rows = rows.attach(targets=y[:, None])
    other = Rows.of(ROWS, executor=Threads(1), block_rows=300).attach(targets=y[:, None])
    for name in ("n", "d", "dtype", "nonzero", "nbytes"):
        assert getattr(rows, name) == getattr(other, name)
    np.testing.assert_array_equal(rows.take([3, 1]).toarray(), ROWS[[3, 1]].toarray())
    assert rows.in_doubles() is rows
    single = Rows.by_columns(sparse.csc_array(ROWS.astype(np.float32)), executor=Threads(1))
    assert single.in_doubles().take([0]).dtype == np.float64
    again = pickle.loads(pickle.dumps(Columnwise.of(sparse.csc_array(ROWS))))
    np.testing.assert_array_equal(again.X.toarray(), ROWS.toarray())
    assert isinstance(again.beside({"y": y}), Block)
    assert "X" not in vars(Columnwise.of(sparse.csc_array(ROWS)).beside({"y": y}))


def test_rows_are_made_once_for_all_that_is_beside_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []

    def counted(matrix: Any) -> Any:
        made.append(matrix)
        return as_csr(matrix)

    monkeypatch.setattr("mlopt.rows.columnwise.as_csr", counted)
    classes = np.arange(300) % 4
    model = mlopt.LinearSVC(loss="hinge", random_state=0, max_iter=100_000)
    model.fit(sparse.csc_array(ROWS), classes)
    assert len(made) <= 1


def test_a_block_that_travelled_is_writeable_and_makes_no_rows() -> None:
    X = sparse.csc_array(ROWS)
    X.data.flags.writeable = False
    block = Columnwise.of(X).beside({"y": y})
    assert block.X.nnz == X.nnz
    again = pickle.loads(pickle.dumps(block))
    assert again.by_columns.data.flags.writeable
    assert "rows" not in vars(again.given)
    assert (again.rows, again.nbytes) == (block.rows, block.nbytes)
    np.testing.assert_array_equal(again.X.toarray(), block.X.toarray())
