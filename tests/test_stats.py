"""The one sampler, and what it says of data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mlopt.errors import InputError
from mlopt.pipeline.profiling.shapes import stats_of
from mlopt.stats import Stats, sample_block, sample_rows, sample_shares

lengths = st.lists(st.integers(0, 500), min_size=1, max_size=12)


@given(lengths, st.integers(0, 3000), st.integers(0, 2**32))
def test_a_sample_has_its_size_and_repeats_no_row(
    lengths: list[int], size: int, seed: int
) -> None:
    taken = sample_rows(lengths, size, seed)
    assert sum(map(len, taken)) == min(size, sum(lengths))
    for length, rows in zip(lengths, taken, strict=True):
        assert np.all(np.diff(rows) > 0)
        assert rows.size == 0 or (rows[0] >= 0 and rows[-1] < length)


@given(lengths, st.integers(0, 3000))
def test_every_block_gives_its_fair_share_within_one_row(
    lengths: list[int], size: int
) -> None:
    total = max(1, sum(lengths))
    for length, share in zip(lengths, sample_shares(lengths, size), strict=True):
        assert abs(share - min(size, sum(lengths)) * length / total) < 1


@given(lengths, st.integers(0, 3000), st.integers(0, 2**32))
def test_a_sample_is_the_same_wherever_its_blocks_are_drawn(
    lengths: list[int], size: int, seed: int
) -> None:
    shares = sample_shares(lengths, size)
    for block, whole in enumerate(sample_rows(lengths, size, seed)):
        alone = sample_block(lengths[block], shares[block], seed, block)
        assert np.array_equal(whole, alone)


def test_every_row_is_as_likely_as_any_other() -> None:
    counts = np.zeros(60)
    for seed in range(2000):
        first, second = sample_rows([20, 40], 15, seed)
        counts[first] += 1
        counts[20 + second] += 1
    expected = 2000 * 15 / 60
    chi2 = ((counts - expected) ** 2 / expected).sum()
    assert chi2 < 100  # 59 degrees of freedom; sampling without repeats varies less


def test_another_seed_and_another_block_draw_other_rows() -> None:
    first, second = sample_rows([1000, 1000], 200, 0)
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, sample_rows([1000, 1000], 200, 1)[0])


def test_dense_and_sparse_forms_have_the_same_shape_and_density() -> None:
    X = np.diag(np.arange(1.0, 51.0))
    dense, csr = (stats_of(one, 50, 1) for one in (X, sparse.csr_array(X)))
    assert (dense.rows, dense.columns) == (csr.rows, csr.columns) == (50, 50)
    assert dense.density == csr.density == 0.02
    assert (dense.sparse, csr.sparse) == (False, True)
    assert dense.nonzeros == 50


def test_numbers_that_share_a_place_fill_it_once() -> None:
    places = np.zeros(8, int), np.arange(0, 9, 2)
    X = sparse.csr_array((np.ones(8), *places), shape=(4, 1))
    assert stats_of(X, 4, 1).density == 1.0


def test_bytes_of_a_shape_are_those_of_the_array() -> None:
    X = np.ones((300, 7), np.float32)
    assert Stats(300, 7, dtype="float32").bytes == stats_of(X, 300, 1).bytes == X.nbytes
    random = sparse.random_array((400, 90), density=0.1, format="csr", rng=1)
    parts = random.data, random.indices, random.indptr
    expected = sum(part.nbytes for part in parts)
    assert Stats(400, 90, density=0.1, sparse=True).bytes == expected


def test_shapes_that_cannot_be_are_refused() -> None:
    with pytest.raises(InputError, match="at least"):
        Stats(-1, 2)
    with pytest.raises(InputError, match="`density`"):
        Stats(1, 2, density=1.5)
    with pytest.raises(InputError, match="`size` and `lengths`"):
        sample_rows([3], -1, 0)
