"""The weighted Gram matrix of sparse rows is that of the dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mlopt.kernels import linear
from mlopt.kernels.linear import sparse_gram


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_it_is_the_product_of_dense_rows(dtype: Any, index: Any) -> None:
    rng = np.random.default_rng(0)
    X = sparse.random(200, 30, density=0.2, format="csr", rng=rng).astype(dtype)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    h, dense = rng.random(200), X.toarray().astype(np.float64)
    found = sparse_gram(X, h)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, dense.T @ (h[:, None] * dense), atol=1e-6)
    np.testing.assert_array_equal(found, found.T)


def test_columns_that_are_stored_twice_or_in_any_order_add_up() -> None:
    X = sparse.csr_array(
        (np.array([3.0, 1.0, 2.0, 5.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])),
        shape=(2, 3),
    )
    dense = X.toarray()
    found = sparse_gram(X, np.array([2.0, 0.5]))
    np.testing.assert_allclose(found, dense.T @ np.diag([2.0, 0.5]) @ dense)


@pytest.mark.parametrize("columns", [1, 7, 90])
@pytest.mark.parametrize("sorts", [True, False])
def test_a_large_matrix_is_filled_band_by_band(
    columns: int, sorts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear, "_BAND", 8 * 90 * columns)
    monkeypatch.setattr(linear, "_COMING", 0.01)
    rng = np.random.default_rng(0)
    X = sparse.random(70, 90, density=0.3, format="csr", rng=rng)
    dense, h = X.toarray(), rng.random(70)
    if not sorts:
        for row in range(70):
            part = slice(*X.indptr[row : row + 2])
            X.indices[part], X.data[part] = X.indices[part][::-1], X.data[part][::-1]
        X.has_sorted_indices = False
    before = X.indices.copy()
    np.testing.assert_allclose(sparse_gram(X, h), dense.T @ (h[:, None] * dense))
    np.testing.assert_array_equal(X.indices, before)


def test_no_rows_and_empty_rows_add_nothing() -> None:
    assert not sparse_gram(sparse.csr_array((0, 4)), np.empty(0)).any()
    assert not sparse_gram(sparse.csr_array((3, 4)), np.ones(3)).any()


def test_rows_that_cannot_be_written_to_compile_nothing_anew() -> None:
    X = sparse.random_array((50, 9), density=0.3, format="csr", rng=0)
    before = sparse_gram(X, np.ones(50))
    known = len(linear._accumulate.signatures)
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    np.testing.assert_array_equal(sparse_gram(X, np.ones(50)), before)
    assert len(linear._accumulate.signatures) == known
