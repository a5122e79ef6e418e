"""What a few rows tell of the passes that methods take."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mlopt.gd.plans.look import Look
from mlopt.rows import Rows


@pytest.mark.parametrize(("n", "d"), [(1000, 20), (100, 3000)])
def test_noise_lies_in_as_many_directions_as_there_are_columns(n: int, d: int) -> None:
    look = Look.of(Rows.of(2.0 * np.random.default_rng(0).normal(size=(n, d))))
    assert look.length == pytest.approx(4.0 * d, rel=0.05)
    assert look.alike == pytest.approx(1.0 / d, rel=0.1)
    assert 0.0 < look.least < look.length


def test_multiples_of_one_row_lie_in_one_direction() -> None:
    look = Look.of(Rows.of(np.outer(np.ones(300), np.arange(5.0))))
    assert look.alike == pytest.approx(1.0)
    assert look.least == pytest.approx(0.0, abs=1e-9 * look.length)


def test_sparse_rows_tell_what_they_tell_as_dense_ones() -> None:
    X = sparse.random_array((400, 60), density=0.1, rng=np.random.default_rng(0))
    sparser, dense = Look.of(Rows.of(X.tocsr())), Look.of(Rows.of(X.toarray()))
    assert sparser.length == pytest.approx(dense.length)
    assert sparser.alike == pytest.approx(dense.alike)
    assert sparser.least == pytest.approx(dense.least, abs=1e-9)


def test_one_row_and_rows_of_nothing_can_be_looked_at() -> None:
    assert Look.of(Rows.of(np.ones((1, 3)))).alike == 1.0
    assert Look.of(Rows.of(np.zeros((50, 3)))) == Look(0.0, 1.0, 0.0)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("size", [1e-170, 1e90, 1e170])
def test_values_of_any_size_can_be_looked_at(size: float) -> None:
    look = Look.of(Rows.of(size * np.random.default_rng(0).normal(size=(50, 3))))
    assert look.length >= 0.0
    assert np.isfinite([look.alike, look.least]).all()
