"""What a few rows tell of the passes that methods take."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mlopt.cluster import Threads
from mlopt.gd.plans.look import Look
from mlopt.gd.plans.task import Task, problem_of
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
    assert sparser.centred_least == pytest.approx(dense.centred_least, abs=1e-9)
    assert sparser.scaled_alike == pytest.approx(dense.scaled_alike)
    assert sparser.spread == pytest.approx(dense.spread)


@pytest.mark.parametrize(("n", "d"), [(200, 30), (60, 300)])
def test_a_look_is_that_of_rows_centred_and_of_columns_scaled(n: int, d: int) -> None:
    rng = np.random.default_rng(0)
    scales = 10 ** rng.normal(size=d)
    X = (rng.normal(size=(n, d)) + 3.0) * scales
    look, roots = Look.of(Rows.of(X)), np.sqrt(np.mean(X**2, axis=0))
    centred, scaled = X - X.mean(axis=0), X / roots
    assert look.centred_length == pytest.approx(np.sum(centred**2) / n)
    least = np.linalg.svd(centred, compute_uv=False)[min(n, d) - 1] ** 2 / n
    near = 1e-9 * look.centred_length
    assert look.centred_least == pytest.approx(least, rel=1e-4, abs=near)
    least = np.linalg.svd(scaled, compute_uv=False)[min(n, d) - 1] ** 2 / n
    assert look.scaled_least == pytest.approx(least / d, rel=1e-6)
    other = Look.of(Rows.of(scaled))
    assert look.scaled_alike == pytest.approx(other.alike)
    assert look.spread == pytest.approx(np.log10(roots).std())
    assert other.spread == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("many", [False, True])
def test_the_rarest_class_of_all_rows_counts(many: bool) -> None:
    X = np.random.default_rng(0).normal(size=(500, 3))
    y = np.repeat([0, 1, 2], [400, 75, 25]) if many else np.arange(500) < 40
    task = Task("multinomial" if many else "logistic", l2=1e-3)
    look = problem_of(task, X, y, Threads(1)).outline.look
    assert look is not None
    assert look().rare == pytest.approx(0.05 if many else 0.08)


def test_one_row_and_rows_of_nothing_can_be_looked_at() -> None:
    assert Look.of(Rows.of(np.ones((1, 3)))).alike == 1.0
    nothing = Look(0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    assert Look.of(Rows.of(np.zeros((50, 3)))) == nothing


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("size", [1e-170, 1e90, 1e170])
def test_values_of_any_size_can_be_looked_at(size: float) -> None:
    look = Look.of(Rows.of(size * np.random.default_rng(0).normal(size=(50, 3))))
    assert look.length >= 0.0
    assert np.isfinite([look.alike, look.least]).all()


def test_a_centre_takes_no_curvature_of_rows_that_are_not_looked_at() -> None:
    X = np.random.default_rng(0).normal(size=(4000, 900)) + 3.0
    look = Look.of(Rows.of(X))
    assert look.least < look.centred_least < 2 * look.least
    wide = Look.of(Rows.of(X[:800]))
    assert wide.centred_least == pytest.approx(0.0, abs=1e-9 * wide.length)
