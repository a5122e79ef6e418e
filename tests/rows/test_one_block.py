"""Rows that lie together in memory are one block without a copy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mlopt.cluster import Threads
from mlopt.rows import Rows
from mlopt.rows.block import as_matrix


def matrix(index: type = np.int32) -> sp.csr_array:
    values = np.random.default_rng(0).normal(size=(5000, 40))
    values[np.abs(values) < 1.5] = 0.0
    values[:700] = 0.0  # blocks without a value
    X = sp.csr_array(values)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


def test_sparse_rows_in_one_block_are_no_copy() -> None:
    X, y = matrix(), np.arange(5000.0)
    rows = Rows.of(X, block_rows=300, executor=Threads(2)).attach(y=y)
    assert len(rows.lengths) > 2
    (block,) = rows.in_one_block().map(lambda block: block)
    assert np.shares_memory(block.X.data, X.data)
    assert np.shares_memory(block.X.indices, X.indices)
    assert abs(block.X - X).max() == 0.0
    np.testing.assert_array_equal(block.X.indptr, X.indptr)
    np.testing.assert_array_equal(block.extra["y"], y)


def test_sparse_rows_that_lie_apart_are_put_together() -> None:
    X = matrix().astype(np.float32)
    rows = Rows.of(X, block_rows=1000, executor=Threads(2)).in_doubles()
    (block,) = rows.in_one_block().map(lambda block: block)
    assert block.X.dtype == np.float64
    assert abs(block.X - X).max() == 0.0


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_indices_are_as_narrow_as_they_can_be(index: type) -> None:
    X = matrix(index)
    found = as_matrix(X)
    assert found.indices.dtype == found.indptr.dtype == np.int32
    assert X.indices.dtype == X.indptr.dtype == index
    assert np.shares_memory(found.data, X.data)
    assert np.shares_memory(found.indices, X.indices) == (index is np.int32)
